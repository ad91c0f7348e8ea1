//! Background work: what uses volumes alongside the databases, without being one of them.
//!
//! Plain values, as in [`crate::spec`]. Not here: when it begins
//! ([`crate::Simulation::begin_background`]), and how it goes (`background_work`).

use crate::volume_use::VolumeUse;
use underlay_core::Nanos;
use underlay_workload::block::{IoJob, WorkloadProblem};

/// One piece of background work.
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundSpec {
    /// Unique in the scenario.
    pub name: String,
    /// The host whose processors carry out its requests, by its number in the scenario.
    pub host: usize,
    /// What a request costs that host.
    pub cpu_per_io: Nanos,
    /// What it does.
    pub work: VolumeWork,
}

/// What background work does.
#[derive(Clone, Debug, PartialEq)]
pub enum VolumeWork {
    /// A copy, until every block was copied.
    Copy(CopySpec),
    /// Block loads, until they are stopped.
    Loads(Vec<LoadSpec>),
}

/// A copy in large pieces: each place in the queue reads a block, and writes it where it is to go.
#[derive(Clone, Debug, PartialEq)]
pub struct CopySpec {
    /// What is read, from its first block to its last.
    pub from: VolumeUse,
    /// Where it is written, over and over again; `None` = it leaves the storage.
    pub to: Option<VolumeUse>,
    /// Size of a request.
    pub block_bytes: u32,
    /// Blocks that are being copied at once.
    pub queue_depth: u32,
    /// The most that is copied per second; `None` = as fast as it goes.
    pub bytes_per_second: Option<u64>,
}

/// A block load on a part of a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSpec {
    /// What is asked, how much at once, and how fast.
    pub job: IoJob,
    /// Where.
    pub place: VolumeUse,
}

impl BackgroundSpec {
    /// The parts of volumes that it uses, each with requests of its own.
    pub fn parts(&self) -> Vec<VolumeUse> {
        match &self.work {
            VolumeWork::Copy(copy) => [Some(copy.from), copy.to].into_iter().flatten().collect(),
            VolumeWork::Loads(loads) => loads.iter().map(|load| load.place).collect(),
        }
    }

    /// What block loads cannot do on their parts.
    pub(crate) fn workload_problems(&self) -> Vec<WorkloadProblem> {
        let VolumeWork::Loads(loads) = &self.work else { return Vec::new() };
        let of_load = |load: &LoadSpec| {
            let IoJob { workload, concurrency, .. } = &load.job;
            workload.problems(load.place.length, *concurrency)
        };
        loads.iter().flat_map(of_load).collect()
    }

    pub(crate) fn check(&self, check: &mut impl FnMut(&'static str, f64, bool, &'static str)) {
        let VolumeWork::Copy(copy) = &self.work else { return };
        let depth = copy.queue_depth;
        check("queue depth", f64::from(depth), depth > 0, "at least 1");
        let rate = copy.bytes_per_second.unwrap_or(1);
        check("bytes per second", rate as f64, rate > 0, "at least 1");
        let block = copy.block_bytes;
        let has_room = copy.to.is_none_or(|to| u64::from(block) <= to.length.0);
        let holds = block > 0 && has_room;
        check("block size", f64::from(block), holds, "at least 1, at most what it is written to");
    }
}
