//! Block loads as TOML files: those that come with Underlay, and those of users, read with all problems at once.

mod lowering;

use std::sync::OnceLock;

use underlay_workload::block::IoProfile;

use crate::builtin::Builtin;
use crate::file::io_profile as file;
use crate::parse::{Syntax, read_text};
use crate::problem::{Problems, Source};
use crate::report::Report;
use crate::section::Table;
use crate::suggest::nearest;

pub(crate) use lowering::Lowering;

macro_rules! embedded {
    ($($name:literal,)*) => { &[$(($name, include_str!(concat!("../../builtin/io/", $name, ".toml")))),*] };
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
    let (file, syntax) = read_text(&source.text, &mut report, file::IoProfile::read);
    let lowered = match syntax {
        Syntax::Sound => Lowering { report: &mut report, place: 0..0, prefix: "" }.profile(&file),
        Syntax::Broken => None,
    };
    match (Problems::from_drafts(source, report.into_drafts()), lowered) {
        (None, Some(profile)) => Ok(profile),
        (Some(problems), _) => Err(problems),
        (None, None) => unreachable!("a profile is refused only with a problem"),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        PROFILES, builtin_io_profiles, find_io_profile, parse_io_profile, suggest_io_profile,
    };
    use crate::problem::Source;
    use underlay_core::Bytes;
    use underlay_workload::block::{FlushPolicy, Locality, Provenance, Runs};

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
        assert_eq!(redo.jobs[0].workload.streams[0].durability, FlushPolicy::FlushEvery(1));
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
