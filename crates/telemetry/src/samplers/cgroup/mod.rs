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

use crate::declare::{SamplerDoc, SeriesDoc};
use crate::identity::{Identity, identify};
use crate::kernel_file::KernelFile;
use crate::samplers::pressure::Kind;
use crate::source::{SampleError, Sampler, Status};
use crate::targets::CgroupTarget;
use parse::Extract;
use std::path::PathBuf;
use underlay_core::series::{Layer, SeriesSpec};

/// The declaration.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "cgroup",
    layer: Layer::Host,
    reads: "memory.*, cpu.stat, cpuacct.*, blkio.throttle.*, io.stat, *.pressure of the server's group",
    costs: "95 us",
    needs: "a control group for the server; version 1 has no pressure",
    traps: &[
        "memory.usage includes the page cache that the server's reads and writes filled: reaching the limit is normal, failures and refaults are the news",
        "version 1 charges buffered writes to the root group: io.write.* then shows direct writes only, and without a limit in force some kernels count nothing",
        "shared buffers are charged to the process that touched a page first, and stay in memory.shared",
        "cpu.user and cpu.system of version 1 come in steps of 10 ms; cpu.usage is exact",
    ],
    series: &[
        SeriesDoc::gauge(
            "memory.usage",
            "bytes",
            "memory charged to the group, page cache included",
        ),
        SeriesDoc::gauge("memory.limit", "bytes", "its limit; missing when there is none"),
        SeriesDoc::counter(
            "memory.failures",
            "events",
            "charges that hit the limit and had to reclaim",
        ),
        SeriesDoc::gauge("memory.cache", "bytes", "page cache and shared memory of the group"),
        SeriesDoc::gauge("memory.rss", "bytes", "anonymous memory of the group"),
        SeriesDoc::gauge("memory.mapped", "bytes", "mapped file pages"),
        SeriesDoc::gauge(
            "memory.shared",
            "bytes",
            "shared memory and tmpfs: the server's shared buffers",
        ),
        SeriesDoc::gauge("memory.dirty", "bytes", "page cache waiting to be written"),
        SeriesDoc::gauge("memory.writeback", "bytes", "page cache being written"),
        SeriesDoc::counter(
            "memory.refaults.file",
            "pages",
            "file pages read again soon after being evicted: the working set does not fit",
        ),
        SeriesDoc::counter("memory.faults.major", "events", "page faults that read from a device"),
        SeriesDoc::counter(
            "memory.oom_kills",
            "events",
            "processes of the group killed for lack of memory",
        ),
        SeriesDoc::counter("cpu.usage", "ns", "CPU time of the group"),
        SeriesDoc::counter("cpu.user", "ns", "of it in user mode").quantum("10 ms on version 1"),
        SeriesDoc::counter("cpu.system", "ns", "of it in the kernel").quantum("10 ms on version 1"),
        SeriesDoc::counter(
            "cpu.periods",
            "periods",
            "enforcement periods in which the group wanted to run",
        ),
        SeriesDoc::counter(
            "cpu.throttled.periods",
            "periods",
            "of these, periods in which it was stopped by its limit",
        ),
        SeriesDoc::counter(
            "cpu.throttled.time",
            "ns",
            "time in which its CPUs were stopped by its limit",
        ),
        SeriesDoc::counter("io.read.bytes", "bytes", "read from block devices by the group"),
        SeriesDoc::counter("io.write.bytes", "bytes", "written to block devices by the group"),
        SeriesDoc::counter("io.read.ios", "ios", "reads from block devices by the group"),
        SeriesDoc::counter("io.write.ios", "ios", "writes to block devices by the group"),
        SeriesDoc::counter(
            "pressure.cpu.some",
            "us",
            "time in which a task of the group had no CPU",
        ),
        SeriesDoc::counter(
            "pressure.cpu.full",
            "us",
            "time in which all its non-idle tasks had no CPU",
        ),
        SeriesDoc::counter(
            "pressure.memory.some",
            "us",
            "time in which a task of the group waited for memory",
        ),
        SeriesDoc::counter(
            "pressure.memory.full",
            "us",
            "time in which all its non-idle tasks waited for memory",
        ),
        SeriesDoc::counter(
            "pressure.io.some",
            "us",
            "time in which a task of the group waited for I/O",
        ),
        SeriesDoc::counter(
            "pressure.io.full",
            "us",
            "time in which all its non-idle tasks waited for I/O",
        ),
    ],
};

/// Microseconds, and ticks of 10 ms, in nanoseconds.
const MICROSECOND: f64 = 1e3;
const TICK: f64 = 1e7;

/// File, series, how. Of several entries for a series the first whose file offers it is taken, so
/// that recursive counters come before plain ones.
const ENTRIES: &[(&str, &str, Extract)] = &[
    ("memory.usage_in_bytes", "memory.usage", Extract::Number),
    ("memory.current", "memory.usage", Extract::Number),
    ("memory.limit_in_bytes", "memory.limit", Extract::Limit),
    ("memory.max", "memory.limit", Extract::Limit),
    ("memory.failcnt", "memory.failures", Extract::Number),
    ("memory.events", "memory.failures", Extract::Key(&["max"], 1.0)),
    ("memory.stat", "memory.cache", Extract::Key(&["total_cache", "cache", "file"], 1.0)),
    ("memory.stat", "memory.rss", Extract::Key(&["total_rss", "rss", "anon"], 1.0)),
    (
        "memory.stat",
        "memory.mapped",
        Extract::Key(&["total_mapped_file", "mapped_file", "file_mapped"], 1.0),
    ),
    ("memory.stat", "memory.shared", Extract::Key(&["total_shmem", "shmem"], 1.0)),
    ("memory.stat", "memory.dirty", Extract::Key(&["total_dirty", "dirty", "file_dirty"], 1.0)),
    (
        "memory.stat",
        "memory.writeback",
        Extract::Key(&["total_writeback", "writeback", "file_writeback"], 1.0),
    ),
    (
        "memory.stat",
        "memory.refaults.file",
        Extract::Key(
            &[
                "total_workingset_refault_file",
                "workingset_refault_file",
                "total_workingset_refault",
                "workingset_refault",
            ],
            1.0,
        ),
    ),
    ("memory.stat", "memory.faults.major", Extract::Key(&["total_pgmajfault", "pgmajfault"], 1.0)),
    ("memory.events", "memory.oom_kills", Extract::Key(&["oom_kill"], 1.0)),
    ("memory.oom_control", "memory.oom_kills", Extract::Key(&["oom_kill"], 1.0)),
    ("cpuacct.usage", "cpu.usage", Extract::Number),
    ("cpu.stat", "cpu.usage", Extract::Key(&["usage_usec"], MICROSECOND)),
    ("cpuacct.stat", "cpu.user", Extract::Key(&["user"], TICK)),
    ("cpu.stat", "cpu.user", Extract::Key(&["user_usec"], MICROSECOND)),
    ("cpuacct.stat", "cpu.system", Extract::Key(&["system"], TICK)),
    ("cpu.stat", "cpu.system", Extract::Key(&["system_usec"], MICROSECOND)),
    ("cpu.stat", "cpu.periods", Extract::Key(&["nr_periods"], 1.0)),
    ("cpu.stat", "cpu.throttled.periods", Extract::Key(&["nr_throttled"], 1.0)),
    ("cpu.stat", "cpu.throttled.time", Extract::Key(&["throttled_time"], 1.0)),
    ("cpu.stat", "cpu.throttled.time", Extract::Key(&["throttled_usec"], MICROSECOND)),
    ("blkio.throttle.io_service_bytes_recursive", "io.read.bytes", Extract::PerDevice("Read")),
    ("blkio.throttle.io_service_bytes", "io.read.bytes", Extract::PerDevice("Read")),
    ("io.stat", "io.read.bytes", Extract::Assigned("rbytes")),
    ("blkio.throttle.io_service_bytes_recursive", "io.write.bytes", Extract::PerDevice("Write")),
    ("blkio.throttle.io_service_bytes", "io.write.bytes", Extract::PerDevice("Write")),
    ("io.stat", "io.write.bytes", Extract::Assigned("wbytes")),
    ("blkio.throttle.io_serviced_recursive", "io.read.ios", Extract::PerDevice("Read")),
    ("blkio.throttle.io_serviced", "io.read.ios", Extract::PerDevice("Read")),
    ("io.stat", "io.read.ios", Extract::Assigned("rios")),
    ("blkio.throttle.io_serviced_recursive", "io.write.ios", Extract::PerDevice("Write")),
    ("blkio.throttle.io_serviced", "io.write.ios", Extract::PerDevice("Write")),
    ("io.stat", "io.write.ios", Extract::Assigned("wios")),
    ("cpu.pressure", "pressure.cpu.some", Extract::Pressure(Kind::Some)),
    ("cpu.pressure", "pressure.cpu.full", Extract::Pressure(Kind::Full)),
    ("memory.pressure", "pressure.memory.some", Extract::Pressure(Kind::Some)),
    ("memory.pressure", "pressure.memory.full", Extract::Pressure(Kind::Full)),
    ("io.pressure", "pressure.io.some", Extract::Pressure(Kind::Some)),
    ("io.pressure", "pressure.io.full", Extract::Pressure(Kind::Full)),
];

/// First parts of series names without which the picture has a hole worth naming.
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
