//! Block loads as TOML files: those that come with Underlay, and those of users, read with all problems at once.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::OnceLock;

use underlay_workload::arrivals;
use underlay_workload::block::{
    BlockStream, BlockWorkload, Concurrency, ContentSpec, Durability, IoJob, IoProfile, Locality,
    Pace, Provenance, Region, Runs, SizeShare, Zone,
};

use crate::builtin::Builtin;
use crate::entry::{Entry, Section};
use crate::file::io_profile::{self as file, WriteMode};
use crate::parse::{Syntax, read_text};
use crate::plan::Arrivals;
use crate::problem::{Problems, Source};
use crate::report::Report;
use crate::suggest::nearest;

macro_rules! embedded {
    ($($name:literal,)*) => { &[$(($name, include_str!(concat!("../builtin/io/", $name, ".toml")))),*] };
}

/// File name without its ending, and text, of every profile that comes with Underlay.
const PROFILES: &[(&str, &str)] = embedded!(
    "128k-sequential-read",
    "128k-sequential-write",
    "16k-sequential-read",
    "16k-sequential-write",
    "256k-sequential",
    "4k-random-70-30",
    "4k-random-75-25",
    "4k-random-read",
    "4k-random-write",
    "64k-random-70-30",
    "64k-sequential-90-10",
    "64k-sequential-read",
    "64k-sequential-write",
    "8k-random-70-30",
    "8k-random-90-10",
    "hcibench-256k-read",
    "hcibench-256k-write",
    "hcibench-4k-70-30",
    "hcibench-4k-read",
    "hcibench-4k-write",
    "hcibench-8k-50-50",
    "oracle",
    "oracle-80-20",
    "oracle-90-10",
    "redo-log",
    "redo-log-and-data",
    "redo-log-write-through",
    "sql",
    "sql-80-20",
    "sql-90-10",
    "sql-vmfleet",
    "vdi-full-clone-boot",
    "vdi-initial-login",
    "vdi-knowledge-worker",
    "vdi-linked-clone-boot",
    "vdi-monday-login",
    "vdi-power-worker",
    "vdi-task-worker",
    "vdi-vmfleet",
    "vmfleet-general",
    "vmfleet-peak",
    "xray-1m-sequential-read",
    "xray-1m-sequential-write",
    "xray-8k-random-read",
    "xray-8k-random-write",
    "xray-big-data-ingest",
    "xray-dss",
    "xray-oltp",
    "xray-oltp-medium",
);

/// The block loads that come with Underlay, sorted by name.
pub fn builtin_io_profiles() -> &'static [Builtin] {
    static LIST: OnceLock<Vec<Builtin>> = OnceLock::new();
    LIST.get_or_init(|| {
        let builtin = |((_, text), profile): (&(&str, &str), &IoProfile)| Builtin {
            name: profile.name.clone(),
            title: profile.title.clone(),
            text: text.to_string(),
        };
        PROFILES.iter().zip(read_builtin()).map(builtin).collect()
    })
}

/// The block load of that name that comes with Underlay.
pub fn find_io_profile(name: &str) -> Option<&'static IoProfile> {
    read_builtin().iter().find(|profile| profile.name == name)
}

/// The name of a built-in block load that `typed` may have meant.
pub fn suggest_io_profile(typed: &str) -> Option<&'static str> {
    nearest(typed, PROFILES.iter().map(|(name, _)| *name))
}

fn read_builtin() -> &'static [IoProfile] {
    static READ: OnceLock<Vec<IoProfile>> = OnceLock::new();
    READ.get_or_init(|| {
        let read = |(name, text): &(&str, &str)| {
            let source = Source { name: format!("{name}.toml"), text: text.to_string() };
            // Embedded files are part of the program; the tests read each of them.
            parse_io_profile(&source)
                .unwrap_or_else(|problems| panic!("{}", problems.render(100, crate::Colour::Plain)))
        };
        PROFILES.iter().map(read).collect()
    })
}

/// Reads a block load.
///
/// # Errors
/// Every problem of the file: syntax, unknown and missing keys, types, units, ranges, contradictions.
pub fn parse_io_profile(source: &Source) -> Result<IoProfile, Problems> {
    let mut report = Report::default();
    let (file, syntax) = read_text(&source.text, &mut report, file::read);
    let lowered = match syntax {
        Syntax::Sound => Lowering { report: &mut report }.profile(&file),
        Syntax::Broken => None,
    };
    match (Problems::from_drafts(source, report.into_drafts()), lowered) {
        (None, Some(profile)) => Ok(profile),
        (Some(problems), _) => Err(problems),
        (None, None) => unreachable!("a profile is refused only with a problem"),
    }
}

struct Lowering<'r> {
    report: &'r mut Report,
}

impl Lowering<'_> {
    fn profile(&mut self, file: &file::IoProfile) -> Option<IoProfile> {
        let name = self.name(&file.name, None, "name", "write name = \"my-load\"");
        let jobs = self.jobs(&file.jobs);
        let text = |entry: &Entry<String>| entry.get().cloned().unwrap_or_default();
        let value = |entry: &Entry<f64>| entry.get().copied();
        Some(IoProfile {
            name: name?,
            title: text(&file.title),
            source: text(&file.source),
            provenance: file.kind.get().copied().unwrap_or(Provenance::Model),
            content: ContentSpec {
                compress_ratio: value(&file.data.compress_ratio).unwrap_or(1.0),
                duplicate_share: value(&file.data.duplicate_percent).unwrap_or(0.0) / 100.0,
            },
            jobs: jobs?,
        })
    }

    fn jobs(&mut self, file: &Entry<Vec<Section<file::Job>>>) -> Option<Vec<IoJob>> {
        let remedy = "add a [[job]] with a [[job.stream]]";
        let sections = self.filled(file, None, "job", remedy)?;
        let (mut names, mut jobs) = (HashSet::new(), Vec::new());
        for section in sections {
            jobs.push(self.job(section, sections.len(), &mut names));
        }
        jobs.into_iter().collect()
    }

    fn job(
        &mut self,
        file: &Section<file::Job>,
        jobs: usize,
        names: &mut HashSet<String>,
    ) -> Option<IoJob> {
        if file.refused {
            return None;
        }
        let alone = (jobs == 1 && file.name.is_absent()).then(|| "all".to_string());
        let name = match alone {
            Some(name) => Some(name),
            None => self.name(&file.name, file.span.clone(), "name", "write name = \"data\""),
        };
        self.unique(name.as_ref(), &file.name, names, "job");
        let remedy = "add a [[job.stream]] with size = \"4KiB\"";
        let streams =
            self.filled(&file.streams, file.span.clone(), "stream", remedy).and_then(|sections| {
                let (mut names, mut streams) = (HashSet::new(), Vec::new());
                for section in sections {
                    streams.push(self.stream(section, sections.len(), &mut names));
                }
                streams.into_iter().collect::<Option<Vec<_>>>()
            });
        let count = |entry: &Entry<u64>| entry.get().map_or(1, |count| *count as u32);
        if let (Some(span), true) = (file.arrivals.span(), file.rate_per_second.is_absent()) {
            let remedy = "add rate-per-second, or leave arrivals out";
            self.report.at(
                &span,
                "no-rate",
                "`arrivals` without a rate",
                "there is no clock",
                remedy,
            );
        }
        let pace = match file.rate_per_second.get() {
            None => Pace::CLOSED,
            Some(rate) => Pace::Open {
                rate_per_second: *rate,
                arrivals: match file.arrivals.get() {
                    None | Some(Arrivals::Poisson) => arrivals::Arrivals::Poisson,
                    Some(Arrivals::Uniform) => arrivals::Arrivals::Uniform,
                },
            },
        };
        Some(IoJob {
            workload: BlockWorkload { name: name?, streams: streams? },
            concurrency: Concurrency {
                threads: count(&file.threads),
                queue_depth: count(&file.queue_depth),
            },
            pace,
        })
    }

    fn stream(
        &mut self,
        file: &Section<file::Stream>,
        streams: usize,
        names: &mut HashSet<String>,
    ) -> Option<BlockStream> {
        if file.refused {
            return None;
        }
        let alone = (streams == 1 && file.name.is_absent()).then(|| "all".to_string());
        let name = match alone {
            Some(name) => Some(name),
            None => self.name(&file.name, file.span.clone(), "name", "write name = \"log\""),
        };
        self.unique(name.as_ref(), &file.name, names, "stream");
        let sizes = self.sizes(file);
        let region = self.region(&file.region_percent);
        let locality = self.locality(file);
        let durability = self.durability(file);
        let share = |entry: &Entry<f64>| entry.get().map_or(1.0, |percent| percent / 100.0);
        let random_share = share(&file.random_percent);
        let single = sizes.as_ref().is_none_or(|sizes| sizes.len() == 1);
        let runs = match file.runs.get() {
            Some(Runs::Interleaved) if !single => {
                let span = file.runs.span().expect("it was given");
                let message = "threads that take turns along one run need a single size";
                let remedy = "use one size, or runs = \"per-thread\"";
                self.report.at(&span, "conflict", message, "there are several sizes", remedy);
                return None;
            }
            Some(runs) => *runs,
            None if random_share == 0.0 && single => Runs::Interleaved,
            None => Runs::PerThread,
        };
        Some(BlockStream {
            name: name?,
            weight: file.weight.get().copied().unwrap_or(1.0),
            read_share: share(&file.read_percent),
            sizes: sizes?,
            random_share,
            locality: locality?,
            runs,
            region: region?,
            durability: durability?,
        })
    }

    fn sizes(&mut self, file: &Section<file::Stream>) -> Option<Vec<SizeShare>> {
        match (&file.size, &file.sizes) {
            (Entry::Given { value, .. }, Entry::Absent) => {
                Some(vec![SizeShare { bytes: value.0 as u32, weight: 1.0 }])
            }
            (Entry::Absent, Entry::Given { value, span }) if !value.is_empty() => {
                let mut sizes = Vec::new();
                for section in value {
                    let place = section.span.clone().unwrap_or_else(|| span.clone());
                    let size = self.required(&section.size, Some(place.clone()), "size");
                    let weight = self.required(&section.weight, Some(place), "weight");
                    sizes.push(size.zip(weight));
                }
                let share = |(bytes, weight): (underlay_core::Bytes, f64)| SizeShare {
                    bytes: bytes.0 as u32,
                    weight,
                };
                sizes.into_iter().map(|size| size.map(share)).collect()
            }
            (Entry::Refused, _) | (_, Entry::Refused) => None,
            (Entry::Given { .. }, Entry::Given { span, .. }) => {
                let remedy = "keep `size` for a single size, `sizes` for a mix";
                self.report.at(
                    span,
                    "conflict",
                    "`size` and `sizes` exclude each other",
                    "here",
                    remedy,
                );
                None
            }
            (Entry::Absent, _) => {
                let remedy =
                    "write size = \"4KiB\", or sizes = [{ size = \"8KiB\", weight = 90 }, ...]";
                self.missing(file.span.clone(), "size", remedy);
                None
            }
        }
    }

    fn region(&mut self, file: &Entry<Vec<f64>>) -> Option<Region> {
        match file {
            Entry::Absent => Some(Region::WHOLE),
            Entry::Refused => None,
            Entry::Given { value, span } => match value[..] {
                [begin, end] if begin < end => {
                    Some(Region { begin: begin / 100.0, end: end / 100.0 })
                }
                _ => {
                    let message =
                        "`region-percent` must be where the region begins and where it ends";
                    let remedy = "write two percentages in ascending order: [0, 90]";
                    self.report.at(span, "out-of-range", message, "not such a pair", remedy);
                    None
                }
            },
        }
    }

    fn locality(&mut self, file: &Section<file::Stream>) -> Option<Locality> {
        match (&file.zipf_exponent, &file.zones) {
            (Entry::Refused, _) | (_, Entry::Refused) => None,
            (Entry::Absent, Entry::Absent) => Some(Locality::Uniform),
            (Entry::Given { value, .. }, Entry::Absent) => {
                Some(Locality::Zipf { exponent: *value })
            }
            (Entry::Given { .. }, Entry::Given { span, .. }) => {
                let message = "`zipf-exponent` and `zones` exclude each other";
                self.report.at(span, "conflict", message, "here", "keep one of them");
                None
            }
            (Entry::Absent, Entry::Given { value, span }) => self.zones(value, span),
        }
    }

    fn zones(&mut self, file: &[Section<file::Zone>], span: &Range<usize>) -> Option<Locality> {
        let mut zones = Vec::new();
        for section in file {
            let place = section.span.clone().unwrap_or_else(|| span.clone());
            let space = self.required(&section.space_percent, Some(place.clone()), "space-percent");
            let access = self.required(&section.access_percent, Some(place), "access-percent");
            zones.push(space.zip(access));
        }
        let zones: Vec<Zone> = zones
            .into_iter()
            .map(|zone| {
                zone.map(|(space, access)| Zone {
                    space_share: space / 100.0,
                    access_share: access / 100.0,
                })
            })
            .collect::<Option<_>>()?;
        let is_one = |sum: f64| (sum - 1.0).abs() < 1e-6;
        let space: f64 = zones.iter().map(|zone| zone.space_share).sum();
        let access: f64 = zones.iter().map(|zone| zone.access_share).sum();
        if is_one(space) && is_one(access) && zones.iter().all(|zone| zone.space_share > 0.0) {
            return Some(Locality::Zones(zones));
        }
        self.report.at(
            span,
            "out-of-range",
            "the zones must cover the region and all accesses",
            format!("{:.4} % of the space, {:.4} % of the accesses", space * 100.0, access * 100.0),
            "make space-percent and access-percent add up to 100 each, with some space in every zone",
        );
        None
    }

    fn durability(&mut self, file: &Section<file::Stream>) -> Option<Durability> {
        let every = file.flush_every.get().map_or(1, |every| *every as u32);
        match file.durability {
            Entry::Refused => None,
            Entry::Given { value: WriteMode::Flush, .. } => Some(Durability::FlushEvery(every)),
            Entry::Absent if file.flush_every.is_absent() => Some(Durability::Cached),
            Entry::Absent => Some(Durability::FlushEvery(every)),
            Entry::Given { value, .. } => {
                if let Some(span) = file.flush_every.span() {
                    let message = format!("`flush-every` with durability `{}`", value.as_str());
                    let remedy = "write durability = \"flush\", or leave flush-every out";
                    self.report.at(&span, "conflict", message, "nothing is flushed", remedy);
                }
                Some(match value {
                    WriteMode::WriteThrough => Durability::WriteThrough,
                    _ => Durability::Cached,
                })
            }
        }
    }

    fn name(
        &mut self,
        entry: &Entry<String>,
        place: Option<Range<usize>>,
        key: &'static str,
        remedy: &str,
    ) -> Option<String> {
        match entry {
            Entry::Refused => None,
            Entry::Absent => {
                self.missing(place, key, remedy);
                None
            }
            Entry::Given { value, span } => {
                let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                if !value.is_empty() && value.len() <= 64 && value.chars().all(fits) {
                    return Some(value.clone());
                }
                let message = "a name has lower case letters, digits and `-`, at most 64";
                self.report.at(span, "out-of-range", message, "not such a name", remedy);
                None
            }
        }
    }

    fn unique(
        &mut self,
        name: Option<&String>,
        entry: &Entry<String>,
        names: &mut HashSet<String>,
        what: &str,
    ) {
        let (Some(name), Some(span)) = (name, entry.span()) else { return };
        if !names.insert(name.clone()) {
            let message = format!("another {what} is called `{name}`");
            self.report.at(
                &span,
                "duplicate-name",
                message,
                "the second one",
                "rename one of them",
            );
        }
    }

    fn filled<'f, T>(
        &mut self,
        entry: &'f Entry<Vec<T>>,
        place: Option<Range<usize>>,
        key: &'static str,
        remedy: &str,
    ) -> Option<&'f Vec<T>> {
        match entry {
            Entry::Refused => None,
            Entry::Given { value, .. } if !value.is_empty() => Some(value),
            Entry::Given { span, .. } => {
                self.missing(Some(span.clone()), key, remedy);
                None
            }
            Entry::Absent => {
                self.missing(place, key, remedy);
                None
            }
        }
    }

    fn required<T: Copy>(
        &mut self,
        entry: &Entry<T>,
        place: Option<Range<usize>>,
        key: &'static str,
    ) -> Option<T> {
        if entry.is_absent() {
            self.missing(place, key, &format!("add `{key}`"));
        }
        entry.get().copied()
    }

    fn missing(&mut self, place: Option<Range<usize>>, key: &str, remedy: &str) {
        // What is missing from the whole file is shown at its first byte.
        let span = place.unwrap_or(0..0);
        self.report.at(&span, "missing-key", format!("`{key}` is missing"), "here", remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        PROFILES, builtin_io_profiles, find_io_profile, parse_io_profile, suggest_io_profile,
    };
    use crate::problem::Source;
    use underlay_core::Bytes;
    use underlay_workload::block::{Durability, Locality, Provenance, Runs};

    fn codes(text: &str) -> Vec<(&'static str, usize)> {
        let source = Source { name: "p.toml".to_string(), text: text.to_string() };
        let problems = parse_io_profile(&source).expect_err("it has problems");
        let place = |problem: &crate::Problem| (problem.code, problem.position().unwrap().0);
        problems.as_slice().iter().map(place).collect()
    }

    #[test]
    fn every_profile_is_usable_sourced_and_named_as_its_file() {
        let names: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for (builtin, file) in builtin_io_profiles().iter().zip(names) {
            assert_eq!(builtin.name, file);
            let profile = find_io_profile(file).expect("listed");
            assert_eq!(profile.problems(Bytes::from_gib(8)), [], "{file}");
            assert!(!profile.title.is_empty() && !profile.title.ends_with('.'), "{file}");
            assert!(profile.source.len() > 20, "{file} has no source");
        }
    }

    #[test]
    fn published_parameters_are_kept() {
        let sql = find_io_profile("sql").unwrap();
        assert_eq!(sql.jobs[0].concurrency.in_flight(), 26);
        assert_eq!(sql.jobs[0].workload.streams[0].read_share, 0.97);
        let oracle = find_io_profile("oracle").unwrap();
        let log = &oracle.jobs[0].workload.streams[1];
        assert_eq!((log.weight, log.read_share, log.bytes_max()), (1.0, 0.01, 65536));
        assert_eq!(log.runs, Runs::Interleaved);
        let fleet = find_io_profile("sql-vmfleet").unwrap();
        assert!(
            matches!(fleet.jobs[0].workload.streams[0].locality, Locality::Zones(ref z) if z.len() == 3)
        );
        let rates: Vec<_> = fleet.jobs.iter().map(|job| job.rate_per_second()).collect();
        assert_eq!(rates, [Some(1500.0), Some(300.0)]);
        let redo = find_io_profile("redo-log").unwrap();
        assert_eq!(redo.jobs[0].workload.streams[0].durability, Durability::FlushEvery(1));
        assert!(redo.is_durable() && !sql.is_durable());
        assert_eq!(find_io_profile("vdi-monday-login").unwrap().provenance, Provenance::Model);
        assert_eq!(find_io_profile("hcibench-8k-50-50").unwrap().content.compress_ratio, 2.0);
    }

    #[test]
    fn a_typing_error_is_understood() {
        assert_eq!(suggest_io_profile("orcale"), Some("oracle"));
    }

    #[test]
    fn all_problems_come_at_once_with_their_lines() {
        let text = "name = \"My Load\"\n\
            [data]\ncompress-ratio = 100\n\
            [[job]]\nname = \"a\"\niodepth = 4\narrivals = \"poisson\"\n\
            [[job.stream]]\nread-percent = 120\n\
            [[job.stream]]\nname = \"x\"\nsize = \"1000B\"\n\
            [[job]]\nname = \"a\"\n\
            [[job.stream]]\nsize = \"4KiB\"\nsizes = [{ size = \"8KiB\" }]\nregion-percent = [50, 10]\n\
            zones = [{ space-percent = 50, access-percent = 100 }]\ndurability = \"cached\"\nflush-every = 2\n";
        assert_eq!(
            codes(text),
            [
                ("out-of-range", 1),
                ("out-of-range", 3),
                ("unknown-key", 6),
                ("no-rate", 7),
                ("missing-key", 8),
                ("missing-key", 8),
                ("out-of-range", 9),
                ("out-of-range", 12),
                ("duplicate-name", 14),
                ("conflict", 17),
                ("out-of-range", 18),
                ("out-of-range", 19),
                ("conflict", 21),
            ]
        );
    }

    #[test]
    fn an_empty_file_says_what_is_missing() {
        assert_eq!(codes(""), [("missing-key", 1), ("missing-key", 1)]);
    }

    #[test]
    fn interleaved_runs_need_one_size() {
        let text = "name = \"x\"\n[[job]]\n[[job.stream]]\nruns = \"interleaved\"\n\
            sizes = [{ size = \"8KiB\", weight = 1 }, { size = \"4KiB\", weight = 1 }]\n";
        assert_eq!(codes(text), [("conflict", 4)]);
    }
}
