//! Control groups: limits on the memory (page cache included) and CPU of a server.
//!
//! The kernel charges a page of the page cache to the group of the process that first reads or
//! writes it. A server in a group with a memory limit therefore has `limit` bytes for its own memory
//! *and* for its files together, and a database larger than that really reads from storage, provided
//! no other process has cached its files before (see [`crate::page_cache`]).
//!
//! Version 1, version 2 and hosts with both are known. Groups are made at the root of each
//! hierarchy: the group that Underlay itself is in belongs to its caller.
//!
//! What cannot be enforced is never an error: it is returned as [`Unenforced`], and the record
//! carries it.

mod hierarchy;
mod limits;
mod paths;
mod removal;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::error::HostError;
use crate::teardown::{Resource, Teardown, Ticket};
use crate::unique_name::new_marker;

pub(crate) use hierarchy::Hierarchies;
pub use limits::{CgroupLimits, Unenforced};
pub use paths::{CgroupPaths, CgroupVersion};
pub(crate) use removal::remove;

use hierarchy::{enable_all_controllers, v1_parent};
use limits::{change_cpus, check_limits, cpus_in_force, limit_cpus, limit_memory, no_controller};

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
    /// telemetry reads it. What cannot be enforced is reported, not an error. `None` when this host
    /// offers us no group at all.
    pub fn create(
        teardown: &Teardown,
        name: &str,
        limits: &CgroupLimits,
    ) -> Result<(Option<Cgroup>, Vec<Unenforced>), HostError> {
        check_limits(limits)?;
        let (wanted, obstacles) = choose_places(&new_marker(&format!("underlay_{name}")))?;
        Cgroup::create_at(teardown, wanted, &obstacles, limits)
    }

    /// The same within this group, whose limits hold for all groups within it together. This group then takes no processes
    /// of its own.
    pub fn create_within(
        &self,
        name: &str,
        limits: &CgroupLimits,
    ) -> Result<(Option<Cgroup>, Vec<Unenforced>), HostError> {
        check_limits(limits)?;
        let marker = new_marker(&format!("underlay_{name}"));
        let mut wanted = self.paths.clone();
        for slot in wanted.slots() {
            *slot = slot.take().map(|parent| parent.join(&marker));
        }
        let handed = self.paths.unified.iter().flat_map(|unified| enable_all_controllers(unified));
        let obstacles: Vec<String> = handed.collect();
        Cgroup::create_at(&self.teardown, wanted, &obstacles, limits)
    }

    fn create_at(
        teardown: &Teardown,
        wanted: CgroupPaths,
        obstacles: &[String],
        limits: &CgroupLimits,
    ) -> Result<(Option<Cgroup>, Vec<Unenforced>), HostError> {
        let ticket =
            teardown.register(Resource::Cgroup { paths: wanted.all().into_iter().collect() })?;
        let (paths, failures) = make_directories(wanted.clone());
        let why_not = |place: &Option<PathBuf>, controller: &str| {
            let failure = place.as_ref().and_then(|path| failures.get(path)).cloned();
            failure.unwrap_or_else(|| no_controller(controller, obstacles))
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

    /// The processors that its processes may use together; `None` where there is no limit.
    pub fn cpus(&self) -> Option<f64> {
        cpus_in_force(&self.paths)
    }

    /// Changes that limit while its processes run; at least 0.05, `None` lifts it.
    ///
    /// # Errors
    /// If the group has no cpu controller, or the kernel refuses.
    pub fn set_cpus(&self, cpus: Option<f64>) -> Result<(), HostError> {
        change_cpus(&self.paths, cpus)
    }

    /// CPU time that its processes have used; `None` where the kernel does not say.
    pub fn cpu_time(&self) -> Option<Duration> {
        let dir = self.paths.cpuacct.as_ref()?;
        if let Ok(text) = fs::read_to_string(dir.join("cpuacct.usage")) {
            return text.trim().parse().ok().map(Duration::from_nanos);
        }
        let text = fs::read_to_string(dir.join("cpu.stat")).ok()?;
        let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        usage.trim().parse().ok().map(Duration::from_micros)
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
