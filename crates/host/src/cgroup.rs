//! Control groups: limits on the memory (page cache included) and CPU of a server.

use std::path::PathBuf;

use underlay_core::Bytes;

use crate::error::HostError;
use crate::teardown::Teardown;

/// What the processes of a group may use together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CgroupLimits {
    /// Memory, page cache included.
    pub memory: Option<Bytes>,
    /// CPU time per time: 1.5 is one and a half CPUs.
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
    /// `memory 512 MiB`, `cpus 1.5`, `swap`.
    pub limit: String,
    /// Why not.
    pub reason: String,
    /// What would help.
    pub remedy: String,
}

/// A control group. Clones name the same group.
#[derive(Clone, Debug)]
pub struct Cgroup {
    paths: CgroupPaths,
}

impl Cgroup {
    /// Creates a group with these limits; what cannot be enforced is said, not an error. `None`
    /// when this host offers no group at all.
    pub fn create(
        _teardown: &Teardown,
        _name: &str,
        _limits: &CgroupLimits,
    ) -> Result<(Option<Cgroup>, Vec<Unenforced>), HostError> {
        Ok((None, Vec::new()))
    }

    /// Its directories.
    pub fn paths(&self) -> &CgroupPaths {
        &self.paths
    }

    /// Kills what is still inside and removes the group.
    pub fn release(self) -> Result<(), HostError> {
        Ok(())
    }
}
