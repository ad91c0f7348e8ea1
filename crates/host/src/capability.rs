//! What this host can do, probed by trying: lists of features are often wrong, and an attempt is not.

use std::fs::OpenOptions;
use std::path::Path;
use std::thread;

use rustix::process::geteuid;

use crate::cgroup::Hierarchies;
use crate::facts::{available_memory_bytes, line};
use crate::program::find_program;
use crate::user::unprivileged_user;
use underlay_core::Bytes;

/// One thing that Underlay can use, and whether it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Short and stable: `root`, `fuse`, `loop`, ...
    pub name: String,
    /// Whether it works.
    pub available: bool,
    /// What was found, or what is missing without it.
    pub detail: String,
    /// What to do when it does not work and is wanted; empty when it works.
    pub remedy: String,
}

/// What a probe found.
enum Finding {
    Works(String),
    Missing { detail: String, remedy: String },
}

/// Everything that `doctor` asks, except what the engines add.
pub fn capabilities() -> Vec<Capability> {
    vec![
        capability("root", root()),
        capability("server-user", server_user()),
        capability("fuse", fuse()),
        capability("loop", loop_devices()),
        capability("mkfs.ext4", mkfs_ext4()),
        capability("mkfs.xfs", mkfs_xfs()),
        capability("cgroup-memory", cgroup_memory()),
        capability("cgroup-cpu", cgroup_cpu()),
        capability("realtime", realtime()),
        capability("psi", psi()),
        capability("clocksource", clocksource()),
        capability("memory", memory()),
    ]
}

fn capability(name: &str, finding: Finding) -> Capability {
    let (available, detail, remedy) = match finding {
        Finding::Works(detail) => (true, detail, String::new()),
        Finding::Missing { detail, remedy } => (false, detail, remedy),
    };
    Capability { name: name.to_string(), available, detail, remedy }
}

fn works(detail: impl Into<String>) -> Finding {
    Finding::Works(detail.into())
}

fn missing(detail: impl Into<String>, remedy: &str) -> Finding {
    Finding::Missing { detail: detail.into(), remedy: remedy.to_string() }
}

fn root() -> Finding {
    if geteuid().is_root() {
        works("running as root")
    } else {
        missing(
            "not root: emulated datastores, cgroup limits and file systems are unavailable",
            "run with sudo; `path` datastores work without root",
        )
    }
}

fn server_user() -> Finding {
    match unprivileged_user() {
        Ok(Some(user)) => works(format!("servers run as `{}` (uid {})", user.name, user.uid)),
        Ok(None) => works("servers run as the calling user"),
        Err(error) => missing(error.to_string(), "create a user `postgres`"),
    }
}

fn fuse() -> Finding {
    opens("/dev/fuse", "emulated datastores export through FUSE", "load the module: modprobe fuse")
}

fn loop_devices() -> Finding {
    opens(
        "/dev/loop-control",
        "emulated datastores become block devices through loop",
        "run as root, and load the module: modprobe loop",
    )
}

fn mkfs_ext4() -> Finding {
    program("mkfs.ext4", "apt-get install e2fsprogs")
}

fn mkfs_xfs() -> Finding {
    program("mkfs.xfs", "apt-get install xfsprogs")
}

fn cgroup_memory() -> Finding {
    controller("memory", "memory")
}

fn cgroup_cpu() -> Finding {
    controller("cpu", "cpu")
}

/// On a thread of its own, which takes the policy with it when it ends.
fn realtime() -> Finding {
    let tried = thread::Builder::new().name("realtime-probe".to_string()).spawn(|| {
        let parameters = libc::sched_param { sched_priority: 1 };
        // SAFETY: the parameters live across the call; 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
    });
    match tried.map(thread::JoinHandle::join) {
        Ok(Ok(true)) => works("SCHED_FIFO is allowed"),
        _ => missing(
            "SCHED_FIFO is refused: emulated completions leave later on a busy host",
            "run as root, or raise RLIMIT_RTPRIO",
        ),
    }
}

fn psi() -> Finding {
    match line("/proc/pressure/cpu") {
        Some(_) => works("/proc/pressure is readable"),
        None => missing("no pressure series", "boot with psi=1"),
    }
}

fn clocksource() -> Finding {
    match line("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        // These are read without a system call.
        Some(name)
            if ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"]
                .contains(&name.as_str()) =>
        {
            works(name)
        }
        Some(name) => missing(
            format!("{name}: reading the time is slow, and track_io_timing costs more"),
            "boot with clocksource=tsc if the hardware allows it",
        ),
        None => missing("unknown", "mount /sys"),
    }
}

fn memory() -> Finding {
    match available_memory_bytes().map(Bytes) {
        Some(bytes) => works(format!("{bytes} available")),
        None => missing("unknown", "mount /proc"),
    }
}

fn opens(path: &str, purpose: &str, remedy: &str) -> Finding {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => works(format!("{path} opens")),
        Err(error) => missing(format!("{path}: {error}; {purpose}"), remedy),
    }
}

fn program(name: &str, remedy: &str) -> Finding {
    match find_program(name) {
        Some(path) => works(path.display().to_string()),
        None => missing("not found", remedy),
    }
}

fn controller(v1: &str, v2: &'static str) -> Finding {
    let purpose = format!("a {v1} limit cannot be enforced");
    let hierarchies = match Hierarchies::find() {
        Ok(found) => found,
        Err(error) => return missing(format!("{error}; {purpose}"), "mount /proc"),
    };
    if hierarchies.in_v2(v2) {
        return match hierarchies.v2.as_ref().map(|unified| unified.possible_parent_for(&[v2])) {
            Some(Ok(parent)) if parent.controllers.contains(&v2) => {
                works(format!("version 2, below {}", parent.dir.display()))
            }
            Some(Ok(parent)) => {
                missing(format!("{}; {purpose}", parent.obstacles.join("; ")), "run as root")
            }
            Some(Err(reason)) => missing(format!("{reason}; {purpose}"), "run as root"),
            None => missing(purpose, "mount cgroup2"),
        };
    }
    match hierarchies.v1.get(v1) {
        Some(mount) if writable(mount) => works(format!("version 1, below {}", mount.display())),
        Some(mount) => {
            missing(format!("{} is not writable; {purpose}", mount.display()), "run as root")
        }
        None => missing(format!("no {v1} controller; {purpose}"), "use a kernel that has it"),
    }
}

fn writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::capabilities;

    #[test]
    fn every_finding_explains_itself() {
        for capability in capabilities() {
            assert!(!capability.detail.is_empty(), "{capability:?}");
            assert_eq!(capability.available, capability.remedy.is_empty(), "{capability:?}");
        }
    }
}
