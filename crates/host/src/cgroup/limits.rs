//! The limits of a group: whether they make sense, and how they are written into the group's files.
//!
//! Limits that the kernel did not accept are returned as [`Unenforced`], with the reason and a
//! remedy.

use std::fs;
use std::path::Path;
use std::thread;

use underlay_core::Bytes;

use super::paths::{CgroupPaths, CgroupVersion};
use crate::error::HostError;

/// Below this a server cannot even start.
const SMALLEST_MEMORY: Bytes = Bytes::from_mib(16);
/// The kernel's smallest quota is 1 ms per period.
const SMALLEST_CPUS: f64 = 0.05;

/// A throttled group is stopped until its period ends, so the period bounds the pause that a CPU
/// limit adds to a latency. The kernel's default of 100 ms would be seen in every percentile.
const PERIOD_US: u64 = 10_000;
/// For limits whose share of the short period would fall below the kernel's smallest quota.
const LONG_PERIOD_US: u64 = 100_000;

const AS_ROOT: &str = "run as root (sudo)";

/// What the processes of a group may use together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CgroupLimits {
    /// Memory, page cache included; at least 16 MiB.
    pub memory: Option<Bytes>,
    /// CPU time per time: 1.5 is one and a half CPUs; at least 0.05.
    pub cpus: Option<f64>,
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

/// Refuses limits under which nothing runs.
pub(super) fn check_limits(limits: &CgroupLimits) -> Result<(), HostError> {
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

/// `why_not` is asked when there is no place for the controller.
pub(super) fn limit_memory(
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
pub(super) fn limit_cpus(
    paths: &CgroupPaths,
    cpus: f64,
    why_not: impl Fn() -> String,
) -> Option<Unenforced> {
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

/// The processors that the group may use together; `None` = all, or unknown.
pub(super) fn cpus_in_force(paths: &CgroupPaths) -> Option<f64> {
    let dir = paths.cpu.as_ref()?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number > 0.0);
    let (quota, period) = match paths.version {
        CgroupVersion::V1 => (
            fs::read_to_string(dir.join("cpu.cfs_quota_us")).ok()?,
            fs::read_to_string(dir.join("cpu.cfs_period_us")).ok()?,
        ),
        CgroupVersion::V2 => {
            let text = fs::read_to_string(dir.join("cpu.max")).ok()?;
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.to_string(), period.to_string())
        }
    };
    // Without a limit version 1 says -1, and version 2 `max`.
    Some(number(&quota)? / number(&period)?)
}

/// Changes the limit of a group that exists; `None` lifts it.
pub(super) fn change_cpus(paths: &CgroupPaths, cpus: Option<f64>) -> Result<(), HostError> {
    let Some(dir) = &paths.cpu else {
        return Err(HostError::LimitOutOfRange {
            limit: "a CPU limit",
            value: format!("{cpus:?}"),
            accepted: "no limit at all: the group has no cpu controller",
        });
    };
    let write = |file: &str, text: String| {
        let path = dir.join(file);
        fs::write(&path, text).map_err(HostError::file("write", &path))
    };
    match (paths.version, cpus.map(|cpus| quota(cpus.max(SMALLEST_CPUS)))) {
        (CgroupVersion::V1, None) => write("cpu.cfs_quota_us", "-1".to_string()),
        (CgroupVersion::V1, Some((quota_us, period_us))) => {
            write("cpu.cfs_period_us", period_us.to_string())?;
            write("cpu.cfs_quota_us", quota_us.to_string())
        }
        (CgroupVersion::V2, None) => write("cpu.max", "max".to_string()),
        (CgroupVersion::V2, Some((quota_us, period_us))) => {
            write("cpu.max", format!("{quota_us} {period_us}"))
        }
    }
}

/// Quota and period in microseconds, rounded down.
fn quota(cpus: f64) -> (u64, u64) {
    let period_us = if cpus < 0.2 { LONG_PERIOD_US } else { PERIOD_US };
    ((cpus * period_us as f64) as u64, period_us)
}

/// Why a controller is of no use.
pub(super) fn no_controller(controller: &str, obstacles: &[String]) -> String {
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
        CgroupLimits, change_cpus, check_limits, cpus_in_force, limit_cpus, limit_memory,
        no_controller, quota,
    };
    use crate::cgroup::{CgroupPaths, CgroupVersion};
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

    #[test]
    fn a_limit_can_be_changed_read_and_lifted() {
        for version in [CgroupVersion::V1, CgroupVersion::V2] {
            let dir = tempfile::tempdir().unwrap();
            let paths = paths(version, dir.path());
            assert_eq!(cpus_in_force(&paths), None);
            change_cpus(&paths, Some(0.5)).unwrap();
            assert_eq!(cpus_in_force(&paths), Some(0.5));
            change_cpus(&paths, Some(0.001)).unwrap();
            assert_eq!(cpus_in_force(&paths), Some(0.05), "the smallest that there is");
            change_cpus(&paths, None).unwrap();
            assert_eq!(cpus_in_force(&paths), None);
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
