//! Where a control group is: its directory in each hierarchy.
//!
//! It deliberately neither makes nor removes a directory.

use std::collections::BTreeSet;
use std::path::PathBuf;

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

impl CgroupPaths {
    /// The distinct directories.
    pub fn all(&self) -> BTreeSet<PathBuf> {
        [&self.memory, &self.cpu, &self.cpuacct, &self.blkio, &self.unified]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    pub(super) fn slots(&mut self) -> [&mut Option<PathBuf>; 5] {
        [&mut self.memory, &mut self.cpu, &mut self.cpuacct, &mut self.blkio, &mut self.unified]
    }
}
