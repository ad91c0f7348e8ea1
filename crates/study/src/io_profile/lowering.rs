//! From the file types of a block load to the load itself: defaults, ranges that depend on other keys, contradictions.
//!
//! One way for a file of its own and for an `[[io-profile]]` of a study. Reading TOML is not done here.

use std::collections::HashSet;
use std::ops::Range;

use underlay_workload::arrivals;
use underlay_workload::block::{
    BlockStream, BlockWorkload, Concurrency, ContentSpec, FlushPolicy, IoJob, IoProfile, Locality,
    Pace, Provenance, Region, Runs, SizeShare, Zone,
};

use crate::entry::{Entry, Section};
use crate::file::io_profile::{self as file, WriteMode};
use crate::plan::Arrivals;
use crate::report::Report;

/// Makes block loads of file types, reporting what is wrong with them.
pub(crate) struct Lowering<'r> {
    /// Where problems go.
    pub report: &'r mut Report,
    /// Where the load stands: the first byte of a file of its own, or its section of a study. What is missing from
    /// the whole load is shown there.
    pub place: Range<usize>,
    /// What stands before the names of its tables in remedies: nothing, or `io-profile.`.
    pub prefix: &'static str,
}

impl Lowering<'_> {
    /// The load, unless it has a problem.
    pub fn profile(&mut self, file: &file::IoProfile) -> Option<IoProfile> {
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
        let remedy = format!("add a [[{0}job]] with a [[{0}job.stream]]", self.prefix);
        let sections = self.filled(file, None, "job", &remedy)?;
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
        let remedy = format!("add a [[{}job.stream]] with size = \"4KiB\"", self.prefix);
        let streams =
            self.filled(&file.streams, file.span.clone(), "stream", &remedy).and_then(|sections| {
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
                let message = "threads that share one sequential run need a single size";
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

    fn durability(&mut self, file: &Section<file::Stream>) -> Option<FlushPolicy> {
        let every = file.flush_every.get().map_or(1, |every| *every as u32);
        match file.durability {
            Entry::Refused => None,
            Entry::Given { value: WriteMode::Flush, .. } => Some(FlushPolicy::FlushEvery(every)),
            Entry::Absent if file.flush_every.is_absent() => Some(FlushPolicy::Cached),
            Entry::Absent => Some(FlushPolicy::FlushEvery(every)),
            Entry::Given { value, .. } => {
                if let Some(span) = file.flush_every.span() {
                    let message = format!("`flush-every` with durability `{}`", value.as_str());
                    let remedy = "write durability = \"flush\", or leave flush-every out";
                    self.report.at(&span, "conflict", message, "nothing is flushed", remedy);
                }
                Some(match value {
                    WriteMode::WriteThrough => FlushPolicy::WriteThrough,
                    _ => FlushPolicy::Cached,
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
        let span = place.unwrap_or_else(|| self.place.clone());
        self.report.at(&span, "missing-key", format!("`{key}` is missing"), "here", remedy);
    }
}
