//! Control groups: limits on the memory (page cache included) and CPU of a server.
//!
//! The kernel charges a page of the page cache to the group of the process that first reads or
//! writes it. A server in a group with a memory limit therefore has `limit` bytes for its own memory
//! *and* for its files together, and a database larger than that really reads from storage, provided
//! nobody else has cached its files before (see [`crate::page_cache`]).
//!
//! Version 1, version 2 and hosts with both are known. Groups are made at the root of each
//! hierarchy: the group that Underlay itself is in belongs to whoever started it.
//!
//! What cannot be enforced is never an error: it is returned as [`Unenforced`], and the record
//! carries it.

mod hierarchy;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use underlay_core::Bytes;

use crate::error::HostError;
use crate::process_table::kill_pids;
use crate::teardown::{Removal, Resource, Teardown, Ticket, new_marker};

pub(crate) use hierarchy::Hierarchies;
use hierarchy::v1_parent;

/// Below this a server cannot even start.
const SMALLEST_MEMORY: Bytes = Bytes::from_mib(16);
/// The kernel's smallest quota is 1 ms per period.
const SMALLEST_CPUS: f64 = 0.05;

/// A throttled group stands still until its period ends, so the period bounds the pause that a CPU
/// limit adds to a latency. The kernel's default of 100 ms would be seen in every percentile.
const PERIOD_US: u64 = 10_000;
/// For limits whose share of the short period would fall below the kernel's smallest quota.
const LONG_PERIOD_US: u64 = 100_000;

/// A group whose last process was killed takes a moment to become empty.
const REMOVE_LIMIT: Duration = Duration::from_secs(10);

const AS_ROOT: &str = "run as root (sudo)";

/// What the processes of a group may use together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CgroupLimits {
    /// Memory, page cache included; at least 16 MiB.
    pub memory: Option<Bytes>,
    /// CPU time per time: 1.5 is one and a half CPUs; at least 0.05.
    pub cpus: Option<f64>,
}

/// Which interface of the kernel the group's limits are set through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// One hierarchy per controller.
    V1,
    /// One hierarchy.
    V2,
}

/// The directories of a group; on version 2 they are all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPaths {
    /// Of the hierarchy that carries the memory controller.
    pub version: CgroupVersion,
    /// Where `memory.*` is.
    pub memory: Option<PathBuf>,
    /// Where `cpu.*` is.
    pub cpu: Option<PathBuf>,
    /// Where `cpuacct.*` is (version 1), or `cpu.stat` (version 2).
    pub cpuacct: Option<PathBuf>,
    /// Where `blkio.*` is (version 1), or `io.stat` (version 2).
    pub blkio: Option<PathBuf>,
    /// The group in the version 2 tree, which has `cpu.stat` and `*.pressure` even on hosts whose
    /// controllers are all version 1.
    pub unified: Option<PathBuf>,
}

/// A limit that was asked for and is not in force. The record carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unenforced {
    /// `memory 512 MiB`, `cpus 1.5`, `swap 0 B`.
    pub limit: String,
    /// Why not.
    pub reason: String,
    /// What would help.
    pub remedy: String,
}

/// A control group. Clones name the same group. It stays when this is dropped: the teardown stack
/// removes it.
#[derive(Clone, Debug)]
pub struct Cgroup {
    teardown: Teardown,
    ticket: Arc<Mutex<Option<Ticket>>>,
    paths: CgroupPaths,
}

impl Cgroup {
    /// Creates a group with these limits in every hierarchy that is of use, also without limits:
    /// telemetry reads it. What cannot be enforced is said, not an error. `None` when this host
    /// offers us no group at all.
    pub fn create(
        teardown: &Teardown,
        name: &str,
        limits: &CgroupLimits,
    ) -> Result<(Option<Cgroup>, Vec<Unenforced>), HostError> {
        check_limits(limits)?;
        let (wanted, obstacles) = choose_places(&new_marker(&format!("underlay_{name}")))?;
        let ticket =
            teardown.register(Resource::Cgroup { paths: wanted.all().into_iter().collect() })?;
        let (paths, failures) = make_directories(wanted.clone());
        let why_not = |place: &Option<PathBuf>, controller: &str| {
            let failure = place.as_ref().and_then(|path| failures.get(path)).cloned();
            failure.unwrap_or_else(|| no_controller(controller, &obstacles))
        };
        let mut unenforced = Vec::new();
        if let Some(memory) = limits.memory {
            unenforced.extend(limit_memory(&paths, memory, || why_not(&wanted.memory, "memory")));
        }
        if let Some(cpus) = limits.cpus {
            unenforced.extend(limit_cpus(&paths, cpus, || why_not(&wanted.cpu, "cpu")));
        }
        if paths.all().is_empty() {
            teardown.forget(ticket);
            return Ok((None, unenforced));
        }
        let ticket = Arc::new(Mutex::new(Some(ticket)));
        Ok((Some(Cgroup { teardown: teardown.clone(), ticket, paths }), unenforced))
    }

    /// Its directories.
    pub fn paths(&self) -> &CgroupPaths {
        &self.paths
    }

    /// How many of its processes the kernel has killed because the memory limit was reached; `None`
    /// where the kernel does not count them.
    pub fn oom_kills(&self) -> Option<u64> {
        let file = match self.paths.version {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        let text = fs::read_to_string(self.paths.memory.as_ref()?.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    }

    /// Kills what is still inside and removes the group, for all its clones.
    pub fn release(self) -> Result<(), HostError> {
        let ticket = self.ticket.lock().unwrap_or_else(PoisonError::into_inner).take();
        ticket.map_or(Ok(()), |ticket| self.teardown.release(ticket))
    }

    /// The files that a process writes `0` to in order to join.
    pub(crate) fn open_procs(&self) -> Result<Vec<File>, HostError> {
        self.paths
            .all()
            .iter()
            .map(|dir| {
                let path = dir.join("cgroup.procs");
                OpenOptions::new().write(true).open(&path).map_err(HostError::file("open", &path))
            })
            .collect()
    }
}

impl CgroupPaths {
    /// The distinct directories.
    pub fn all(&self) -> BTreeSet<PathBuf> {
        [&self.memory, &self.cpu, &self.cpuacct, &self.blkio, &self.unified]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    fn slots(&mut self) -> [&mut Option<PathBuf>; 5] {
        [&mut self.memory, &mut self.cpu, &mut self.cpuacct, &mut self.blkio, &mut self.unified]
    }
}

/// Kills what is in the groups and removes them.
pub(crate) fn remove(paths: &[PathBuf]) -> Result<Removal, HostError> {
    let mut removal = Removal::WasGone;
    for path in paths {
        if remove_one(path)? {
            removal = Removal::Removed;
        }
    }
    Ok(removal)
}

fn remove_one(path: &Path) -> Result<bool, HostError> {
    let deadline = Instant::now() + REMOVE_LIMIT;
    loop {
        kill_members(path)?;
        match fs::remove_dir(path) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(HostError::file("remove", path)(error)),
        }
    }
}

fn kill_members(path: &Path) -> Result<(), HostError> {
    let pids = members(path);
    kill_pids(&pids, "member of a control group", |pid| members(path).contains(&pid)).map(|_| ())
}

fn members(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn check_limits(limits: &CgroupLimits) -> Result<(), HostError> {
    if let Some(memory) = limits.memory.filter(|memory| *memory < SMALLEST_MEMORY) {
        return Err(HostError::LimitOutOfRange {
            limit: "a memory limit",
            value: memory.to_string(),
            accepted: "at least 16 MiB",
        });
    }
    if let Some(cpus) = limits.cpus.filter(|cpus| !(SMALLEST_CPUS..=1e5).contains(cpus)) {
        return Err(HostError::LimitOutOfRange {
            limit: "a CPU limit",
            value: cpus.to_string(),
            accepted: "at least 0.05",
        });
    }
    Ok(())
}

/// Where the group's directories would be, and why some cannot be.
fn choose_places(name: &str) -> Result<(CgroupPaths, Vec<String>), HostError> {
    let hierarchies = Hierarchies::find()?;
    let mut obstacles = Vec::new();
    let mut handed = Vec::new();
    let unified = hierarchies.v2.as_ref().and_then(|unified| {
        let wanted: Vec<&'static str> = ["memory", "cpu", "io"]
            .into_iter()
            .filter(|controller| hierarchies.in_v2(controller))
            .collect();
        match unified.parent_for(&wanted) {
            Ok(parent) => {
                obstacles.extend(parent.obstacles);
                handed = parent.controllers;
                Some(parent.dir.join(name))
            }
            Err(reason) => {
                obstacles.push(reason);
                None
            }
        }
    });
    let place = |v1: &str, v2: &str| {
        if hierarchies.in_v2(v2) {
            return unified.clone().filter(|_| handed.contains(&v2));
        }
        hierarchies.v1.get(v1).map(|mount| v1_parent(mount, v1).join(name))
    };
    let paths = CgroupPaths {
        version: if hierarchies.v1.contains_key("memory") {
            CgroupVersion::V1
        } else {
            CgroupVersion::V2
        },
        memory: place("memory", "memory"),
        cpu: place("cpu", "cpu"),
        // Version 2 counts CPU time without any controller.
        cpuacct: place("cpuacct", "cpu").or_else(|| unified.clone()),
        blkio: place("blkio", "io"),
        unified: unified.clone(),
    };
    if hierarchies.version_word() == "none" {
        obstacles.push("no control groups are mounted".to_string());
    }
    Ok((paths, obstacles))
}

/// Keeps the places that could be made, and says of the others why not.
fn make_directories(mut places: CgroupPaths) -> (CgroupPaths, BTreeMap<PathBuf, String>) {
    let mut failures = BTreeMap::new();
    for path in places.all() {
        if let Err(error) = fs::create_dir(&path) {
            let parent = path.parent().unwrap_or(&path).display();
            failures.insert(path.clone(), format!("no group can be made in `{parent}`: {error}"));
            for slot in places.slots() {
                if slot.as_deref() == Some(path.as_path()) {
                    *slot = None;
                }
            }
        }
    }
    (places, failures)
}

/// `why_not` is asked when there is no place for the controller.
fn limit_memory(
    paths: &CgroupPaths,
    memory: Bytes,
    why_not: impl Fn() -> String,
) -> Vec<Unenforced> {
    let unenforced = |reason: String| {
        vec![Unenforced {
            limit: memory_text(memory),
            reason,
            remedy: format!("{AS_ROOT} on a host with the memory controller"),
        }]
    };
    let Some(dir) = &paths.memory else {
        return unenforced(why_not());
    };
    let file = match paths.version {
        CgroupVersion::V1 => "memory.limit_in_bytes",
        CgroupVersion::V2 => "memory.max",
    };
    if let Err(error) = fs::write(dir.join(file), memory.0.to_string()) {
        return unenforced(format!("could not write `{}`: {error}", dir.join(file).display()));
    }
    // The kernel rounds to pages; anything above what was asked means that it did not take it.
    let in_force =
        fs::read_to_string(dir.join(file)).ok().and_then(|text| text.trim().parse().ok());
    match in_force {
        Some(bytes) if Bytes(bytes) <= memory => limit_swap(paths.version, dir, memory),
        _ => unenforced(format!("the kernel has {in_force:?} bytes in force")),
    }
}

/// Without this a group over its limit is swapped out instead of dropping its page cache.
fn limit_swap(version: CgroupVersion, dir: &Path, memory: Bytes) -> Vec<Unenforced> {
    let (file, value) = match version {
        // Memory and swap together.
        CgroupVersion::V1 => ("memory.memsw.limit_in_bytes", memory.0),
        CgroupVersion::V2 => ("memory.swap.max", 0),
    };
    match fs::write(dir.join(file), value.to_string()) {
        Err(error) if host_has_swap() => vec![Unenforced {
            limit: "swap 0 B".to_string(),
            reason: format!("could not write `{}`: {error}", dir.join(file).display()),
            remedy: "run `swapoff -a`, or boot with swapaccount=1".to_string(),
        }],
        _ => Vec::new(),
    }
}

fn host_has_swap() -> bool {
    // The first line is the heading.
    fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}

/// `why_not` is asked when there is no place for the controller.
fn limit_cpus(paths: &CgroupPaths, cpus: f64, why_not: impl Fn() -> String) -> Option<Unenforced> {
    let unenforced = |reason: String, remedy: &str| {
        Some(Unenforced { limit: cpus_text(cpus), reason, remedy: remedy.to_string() })
    };
    let Some(dir) = &paths.cpu else {
        return unenforced(why_not(), "run as root (sudo) on a host with the cpu controller");
    };
    let (quota_us, period_us) = quota(cpus);
    let written = match paths.version {
        CgroupVersion::V1 => fs::write(dir.join("cpu.cfs_period_us"), period_us.to_string())
            .and_then(|()| fs::write(dir.join("cpu.cfs_quota_us"), quota_us.to_string())),
        CgroupVersion::V2 => fs::write(dir.join("cpu.max"), format!("{quota_us} {period_us}")),
    };
    if let Err(error) = written {
        return unenforced(
            format!("could not set the quota of `{}`: {error}", dir.display()),
            "use a kernel with CFS bandwidth control",
        );
    }
    let available = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cpus > available as f64 {
        return unenforced(
            format!("this host has {available} CPUs"),
            "lower the limit, or scale the study",
        );
    }
    None
}

/// Quota and period in microseconds, rounded down.
fn quota(cpus: f64) -> (u64, u64) {
    let period_us = if cpus < 0.2 { LONG_PERIOD_US } else { PERIOD_US };
    ((cpus * period_us as f64) as u64, period_us)
}

fn no_controller(controller: &str, obstacles: &[String]) -> String {
    if obstacles.is_empty() {
        format!("this host has no {controller} controller")
    } else {
        obstacles.join("; ")
    }
}

fn memory_text(memory: Bytes) -> String {
    format!("memory {memory}")
}

fn cpus_text(cpus: f64) -> String {
    format!("cpus {cpus}")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use underlay_core::Bytes;

    use super::{
        CgroupLimits, CgroupPaths, CgroupVersion, check_limits, limit_cpus, limit_memory,
        no_controller, quota,
    };
    use crate::error::HostError;

    #[test]
    fn quotas_are_above_the_smallest_of_the_kernel() {
        assert_eq!(quota(1.5), (15_000, 10_000));
        assert_eq!(quota(0.2), (2_000, 10_000));
        assert_eq!(quota(0.05), (5_000, 100_000));
    }

    fn paths(version: CgroupVersion, dir: &Path) -> CgroupPaths {
        let place = Some(dir.to_path_buf());
        CgroupPaths {
            version,
            memory: place.clone(),
            cpu: place.clone(),
            cpuacct: place.clone(),
            blkio: place.clone(),
            unified: place,
        }
    }

    /// What is written into a group's files, for want of a host with both versions.
    fn check_files(version: CgroupVersion, expected: &[(&str, &str)]) {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(version, dir.path());
        assert_eq!(limit_memory(&paths, Bytes::from_mib(64), String::new), []);
        assert_eq!(limit_cpus(&paths, 0.5, String::new), None);
        for (file, text) in expected {
            assert_eq!(fs::read_to_string(dir.path().join(file)).unwrap(), *text, "{file}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), expected.len());
    }

    #[test]
    fn writes_the_files_of_its_version() {
        check_files(
            CgroupVersion::V1,
            &[
                ("memory.limit_in_bytes", "67108864"),
                ("memory.memsw.limit_in_bytes", "67108864"),
                ("cpu.cfs_period_us", "10000"),
                ("cpu.cfs_quota_us", "5000"),
            ],
        );
        check_files(
            CgroupVersion::V2,
            &[("memory.max", "67108864"), ("memory.swap.max", "0"), ("cpu.max", "5000 10000")],
        );
    }

    #[test]
    fn says_what_is_not_enforced() {
        let none = CgroupPaths {
            memory: None,
            cpu: None,
            ..paths(CgroupVersion::V2, Path::new("/no/such/group"))
        };
        let obstacle = ["`/x` cannot hand down the memory controller".to_string()];
        let why_not = || no_controller("memory", &obstacle);
        let found = limit_memory(&none, Bytes::from_mib(64), why_not);
        assert_eq!(found[0].limit, "memory 64 MiB");
        assert_eq!(found[0].reason, obstacle[0]);
        let found = limit_cpus(&none, 0.5, || no_controller("cpu", &[])).unwrap();
        assert_eq!(
            (found.limit.as_str(), found.reason.as_str()),
            ("cpus 0.5", "this host has no cpu controller")
        );
        let missing = paths(CgroupVersion::V1, Path::new("/no/such/group"));
        let found = limit_memory(&missing, Bytes::from_mib(64), why_not);
        assert!(found[0].reason.contains("memory.limit_in_bytes"), "{found:?}");
        // More CPUs than there are is no limit.
        let dir = tempfile::tempdir().unwrap();
        let found = limit_cpus(&paths(CgroupVersion::V2, dir.path()), 4096.0, why_not).unwrap();
        assert!(found.reason.contains("this host has"), "{found:?}");
    }

    #[test]
    fn refuses_limits_without_sense() {
        let check = |memory: Option<u64>, cpus: Option<f64>| {
            let limits = CgroupLimits { memory: memory.map(Bytes::from_mib), cpus };
            matches!(check_limits(&limits), Err(HostError::LimitOutOfRange { .. }))
        };
        assert!(check(Some(15), None));
        assert!(check(None, Some(0.0)));
        assert!(check(None, Some(f64::NAN)));
        assert!(check(None, Some(-1.0)));
        assert!(!check(Some(16), Some(0.05)));
        assert!(!check(None, None));
    }
}
