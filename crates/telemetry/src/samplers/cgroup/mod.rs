//! The control group of the database server: memory with its page cache, CPU with throttling, I/O,
//! pressure.
//!
//! * **Reads** whatever of the files of versions 1 and 2 is there, one `pread` each.
//! * **Emits** the same series names for both versions.
//! * **Costs** about 95 us per tick, mostly `memory.stat`.
//! * **Needs** a control group. On a hybrid host the controllers are on version 1 and pressure comes
//!   from a group in the version 2 hierarchy, if the server is in one.
//!
//! There is no question of version in the code: every known file is tried in every given folder and
//! the first that has a series provides it. It sets no limits and moves no process.

mod parse;
mod series;

pub(crate) use series::DOC;

use crate::identity::{Identity, identify};
use crate::kernel_file::KernelFile;
use crate::source::{SampleError, Sampler, Status};
use crate::targets::CgroupTarget;
use parse::Extract;
use series::ENTRIES;
use std::path::PathBuf;
use underlay_core::series::SeriesSpec;

/// Prefixes of series names whose absence is reported.
const GROUPS: [(&str, &str); 4] = [
    ("memory.", "no memory controller"),
    ("cpu.", "no CPU controller"),
    ("io.", "no I/O controller"),
    ("pressure.", "no pressure (version 1 groups have none; needs one in the version 2 hierarchy)"),
];

/// An open file and the series taken from it.
struct Source {
    file: KernelFile,
    /// Index of the series, and how.
    taken: Vec<(usize, Extract)>,
}

/// The sampler.
struct Cgroup {
    identity: Identity,
    sources: Vec<Source>,
}

/// The sampler of this group.
pub(crate) fn sampler(target: Option<&CgroupTarget>) -> Box<dyn Sampler> {
    let Some(target) = target else {
        let mut identity = Identity::available(&DOC, Vec::new());
        identity.status =
            Status::Absent("the database server runs in no control group of its own".to_string());
        return Box::new(Cgroup { identity, sources: Vec::new() });
    };
    let (sources, series) = discover(&folders(target));
    let gaps: Vec<String> = GROUPS
        .iter()
        .filter(|(prefix, _)| !series.iter().any(|series| series.name.starts_with(prefix)))
        .map(|(_, reason)| format!("{reason} in {target:?}"))
        .collect();
    Box::new(Cgroup { identity: Identity::with_gaps(&DOC, series, &gaps), sources })
}

/// The distinct folders of a group.
fn folders(target: &CgroupTarget) -> Vec<PathBuf> {
    let CgroupTarget { memory, cpu, cpuacct, blkio, unified } = target;
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in [memory, cpu, cpuacct, blkio, unified].into_iter().flatten() {
        if !folders.contains(folder) {
            folders.push(folder.clone());
        }
    }
    folders
}

/// Tries every entry in every folder.
fn discover(folders: &[PathBuf]) -> (Vec<Source>, Vec<SeriesSpec>) {
    let mut sources: Vec<Source> = Vec::new();
    let mut series: Vec<SeriesSpec> = Vec::new();
    for (name, wanted, extract) in ENTRIES {
        for folder in folders {
            if series.iter().any(|known| known.name == *wanted) {
                break;
            }
            let path = folder.join(name);
            let known = sources.iter().position(|source| source.file.path() == path);
            let index = match (known, KernelFile::open(&path)) {
                (Some(index), _) => index,
                (None, Ok(file)) => {
                    sources.push(Source { file, taken: Vec::new() });
                    sources.len() - 1
                }
                (None, Err(_)) => continue,
            };
            let offered = sources[index].file.text().is_ok_and(|text| extract.is_offered_by(text));
            if offered {
                sources[index].taken.push((series.len(), *extract));
                let doc = DOC.series.iter().find(|doc| doc.name == *wanted);
                series.push(doc.expect("a test compares the entries with the declaration").spec());
            }
        }
    }
    sources.retain(|source| !source.taken.is_empty());
    (sources, series)
}

impl Sampler for Cgroup {
    identify!();

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        if self.sources.is_empty() {
            return Err(self.identity.absence());
        }
        values.resize(self.identity.series.len(), f64::NAN);
        for source in &mut self.sources {
            let text = source.file.text()?;
            for (index, extract) in &source.taken {
                values[*index] = extract.of(text);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{DOC, ENTRIES, sampler};
    use crate::source::{Sampler, Status};
    use crate::targets::CgroupTarget;
    use std::fs;
    use std::path::Path;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).expect("made");
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("written");
        }
    }

    fn sampled(target: &CgroupTarget) -> (Box<dyn Sampler>, Vec<f64>) {
        let mut sampler = sampler(Some(target));
        let mut values = Vec::new();
        sampler.sample(&mut values).expect("sampled");
        assert_eq!(values.len(), sampler.series().len());
        (sampler, values)
    }

    fn value(sampled: &(Box<dyn Sampler>, Vec<f64>), name: &str) -> f64 {
        let index = sampled.0.series().iter().position(|series| series.name == name);
        sampled.1[index.unwrap_or_else(|| panic!("{name} is declared"))]
    }

    #[test]
    fn version_2_is_read_from_one_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(
            folder.path(),
            &[
                ("memory.current", "1000\n"),
                ("memory.max", "max\n"),
                ("memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n"),
                (
                    "memory.stat",
                    "anon 300\nfile 600\nfile_mapped 5\nshmem 100\nfile_dirty 7\nfile_writeback 8\nworkingset_refault_file 55\npgmajfault 4\n",
                ),
                (
                    "cpu.stat",
                    "usage_usec 10\nuser_usec 6\nsystem_usec 4\nnr_periods 3\nnr_throttled 2\nthrottled_usec 9\n",
                ),
                ("io.stat", "8:0 rbytes=90112 wbytes=1 rios=22 wios=2\n"),
                ("io.pressure", "some avg10=0 total=77\nfull avg10=0 total=66\n"),
                ("cpu.pressure", "some avg10=0 total=5\nfull avg10=0 total=6\n"),
            ],
        );
        let path = Some(folder.path().to_path_buf());
        let target = CgroupTarget {
            memory: path.clone(),
            cpu: path.clone(),
            blkio: path.clone(),
            ..CgroupTarget::default()
        };
        let sampled = sampled(&target);
        assert_eq!(*sampled.0.status(), Status::Available);
        assert_eq!(value(&sampled, "memory.usage"), 1000.0);
        assert!(value(&sampled, "memory.limit").is_nan(), "no limit");
        assert_eq!(value(&sampled, "memory.failures"), 12.0);
        assert_eq!(value(&sampled, "memory.cache"), 600.0);
        assert_eq!(value(&sampled, "memory.oom_kills"), 1.0);
        assert_eq!(value(&sampled, "cpu.usage"), 10_000.0);
        assert_eq!(value(&sampled, "cpu.throttled.time"), 9_000.0);
        assert_eq!(value(&sampled, "io.read.bytes"), 90112.0);
        assert_eq!(value(&sampled, "pressure.io.full"), 66.0);
    }

    #[test]
    fn version_1_gives_the_same_names() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path();
        write(
            &root.join("memory"),
            &[
                ("memory.usage_in_bytes", "1000\n"),
                ("memory.limit_in_bytes", "2000\n"),
                ("memory.failcnt", "3\n"),
                (
                    "memory.stat",
                    "cache 1\nrss 2\ntotal_cache 600\ntotal_rss 300\ntotal_workingset_refault_file 55\n",
                ),
                ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            ],
        );
        write(
            &root.join("cpu"),
            &[("cpu.stat", "nr_periods 3\nnr_throttled 2\nthrottled_time 9\n")],
        );
        write(
            &root.join("acct"),
            &[("cpuacct.usage", "77\n"), ("cpuacct.stat", "user 2\nsystem 1\n")],
        );
        write(
            &root.join("blkio"),
            &[
                ("blkio.throttle.io_service_bytes", "8:0 Read 1\n"),
                (
                    "blkio.throttle.io_service_bytes_recursive",
                    "8:0 Read 100\n8:0 Write 5\nTotal 105\n",
                ),
            ],
        );
        write(
            &root.join("unified"),
            &[("cpu.pressure", "some avg10=0 total=5\n"), ("cpu.stat", "usage_usec 1\n")],
        );
        let target = CgroupTarget {
            memory: Some(root.join("memory")),
            cpu: Some(root.join("cpu")),
            cpuacct: Some(root.join("acct")),
            blkio: Some(root.join("blkio")),
            unified: Some(root.join("unified")),
        };
        let sampled = sampled(&target);
        assert_eq!(*sampled.0.status(), Status::Available);
        assert_eq!(value(&sampled, "memory.limit"), 2000.0);
        assert_eq!(value(&sampled, "memory.cache"), 600.0);
        assert_eq!(value(&sampled, "memory.refaults.file"), 55.0);
        assert_eq!(value(&sampled, "memory.oom_kills"), 2.0);
        assert_eq!(value(&sampled, "cpu.usage"), 77.0, "the first that has it");
        assert_eq!(value(&sampled, "cpu.user"), 2e7);
        assert_eq!(value(&sampled, "cpu.throttled.time"), 9.0);
        assert_eq!(value(&sampled, "io.read.bytes"), 100.0, "recursive before plain");
        assert_eq!(value(&sampled, "pressure.cpu.some"), 5.0);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(matches!(sampler(None).status(), Status::Absent(_)));
        let nowhere = CgroupTarget {
            memory: Some("/sys/fs/cgroup/no/such/group".into()),
            ..CgroupTarget::default()
        };
        let mut absent = sampler(Some(&nowhere));
        assert!(matches!(absent.status(), Status::Absent(why) if why.contains("no/such/group")));
        assert!(absent.sample(&mut Vec::new()).is_err());

        let folder = tempfile::tempdir().expect("a temporary folder");
        write(folder.path(), &[("memory.current", "1\n")]);
        let only_memory =
            CgroupTarget { memory: Some(folder.path().to_path_buf()), ..CgroupTarget::default() };
        let (degraded, _) = sampled(&only_memory);
        assert!(matches!(degraded.status(), Status::Degraded(why) if why.contains("CPU")));
    }

    #[test]
    fn every_entry_names_a_declared_series() {
        for (file, name, _) in ENTRIES {
            assert!(DOC.series.iter().any(|doc| doc.name == *name), "{file} gives {name}");
        }
    }
}
