//! What is to be observed, as plain values handed over by the lab.

use crate::source::Sampler;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use underlay_database::Target;

/// Control group folders of the database server; on version 2 all may name the same folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupTarget {
    /// Folder with `memory.*`.
    pub memory: Option<PathBuf>,
    /// Folder with `cpu.stat`.
    pub cpu: Option<PathBuf>,
    /// Folder with `cpuacct.usage` (version 1 only).
    pub cpuacct: Option<PathBuf>,
    /// Folder with `blkio.throttle.*` or `io.stat`.
    pub blkio: Option<PathBuf>,
    /// Folder in the version 2 hierarchy of a hybrid host, for pressure.
    pub unified: Option<PathBuf>,
}

/// A volume, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeTarget {
    /// Its name.
    pub name: String,
    /// The block device (`loop3`, `/dev/sdb1`), or any absolute path on the volume, whose device is
    /// then looked up.
    pub place: String,
    /// Whether that device serves this volume and nothing else. If not, its counters are not the
    /// volume's, and are recorded as those of the device.
    pub owns_device: bool,
}

/// Everything a collector observes besides the host itself.
pub struct Targets {
    /// Zero of all times of the run.
    pub origin: Instant,
    /// The server whose statistics and sessions are read.
    pub database: Option<Target>,
    /// Instead of it, where a run has several databases: their names, and their servers. Sources of each bear its name before
    /// their own.
    pub databases: Vec<(String, Target, Option<CgroupTarget>)>,
    /// Process trees: name and root pid; descendants are found at every tick.
    pub processes: Vec<(String, u32)>,
    /// Control group of the database server.
    pub cgroup: Option<CgroupTarget>,
    /// The volumes.
    pub volumes: Vec<VolumeTarget>,
    /// Samplers of other crates; each gets a thread of its own.
    pub extra: Vec<Box<dyn Sampler>>,
}

impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Targets")
            .field("database", &self.database)
            .field("databases", &self.databases)
            .field("processes", &self.processes)
            .field("cgroup", &self.cgroup)
            .field("volumes", &self.volumes)
            .field("extra", &self.extra.iter().map(|sampler| sampler.name()).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Where the kernel's files are. Other roots than the real ones serve tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Normally `/proc`.
    pub proc: PathBuf,
    /// Normally `/sys`.
    pub sys: PathBuf,
}

impl Roots {
    /// The running kernel's own.
    pub fn system() -> Roots {
        Roots { proc: PathBuf::from("/proc"), sys: PathBuf::from("/sys") }
    }
}

/// How often samplers look, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingRates {
    /// Distance of ticks, which lie on whole multiples since the origin. Normally 1 s.
    pub interval: Duration,
    /// Session samples per second, 10 to 100 (clamped).
    pub waits_per_second: u32,
    /// Lock chains followed per second, at most `waits_per_second`.
    pub holders_per_second: u32,
    /// The kernel's files.
    pub roots: Roots,
}

impl SamplingRates {
    /// The rates that the cost figures of this crate are about: sessions at 20 Hz, lock chains at 5 Hz.
    pub fn every(interval: Duration) -> SamplingRates {
        SamplingRates {
            interval,
            waits_per_second: 20,
            holders_per_second: 5,
            roots: Roots::system(),
        }
    }
}
