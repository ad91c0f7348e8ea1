//! The targets of a block load, and its result.

use std::path::PathBuf;
use underlay_blockio::load::LoadResult;
use underlay_blockio::verify::Violation;
use underlay_blockio::{Target, TargetKind};
use underlay_core::{Bytes, Nanos};
use underlay_workload::block::SteadyState;

/// Above this share of a processor the generator may be the limit.
const BUSY_PERMILLE: u32 = 900;
/// A point of a curve that completes less than this share of its offer is saturated.
const KEPT_SHARE: f64 = 0.98;

/// What a target lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Storage of this host.
    Storage,
    /// One of our own emulated volumes.
    Emulated,
    /// This host's memory: no storage is measured.
    Memory,
}

/// An open target.
pub struct Place {
    /// What requests go to.
    pub target: Target,
    /// Bytes used of it.
    pub working_set: Bytes,
    /// Whether it was created for this load, and must be filled before it is read.
    pub created: bool,
    /// What it lies on.
    pub medium: Medium,
}

/// What came out.
pub struct Outcome {
    /// Where.
    pub targets: Vec<TargetFacts>,
    /// What was run, in order. At least one, unless it was interrupted before.
    pub phases: Vec<Phase>,
    /// Whether the last rounds were steady, when that was asked.
    pub steady: Option<SteadyState>,
    /// Whether what was written was verified.
    pub verified: bool,
    /// The last look.
    pub last_look: Option<LastLook>,
    /// Whether the user ended it.
    pub interrupted: bool,
    /// Why the course ended early, other than by a failed request.
    pub broken: Option<String>,
}

/// A target.
pub struct TargetFacts {
    /// Where it is.
    pub path: PathBuf,
    /// A file or a block device.
    pub kind: TargetKind,
    /// Its size.
    pub size: Bytes,
    /// Bytes used of it.
    pub working_set: Bytes,
    /// Whether it was created for this load.
    pub created: bool,
    /// What it lies on.
    pub medium: Medium,
}

/// One load from its beginning to its end.
pub struct Phase {
    /// `load`, `round 3`, `maximum`, `70 %`.
    pub label: String,
    /// Requests per second over all targets, by a clock.
    pub offered: Option<f64>,
    /// Requests that could be in flight at once, over all targets.
    pub in_flight: u32,
    /// Whether it belongs to what is reported: not a round before the steady ones.
    pub counts: bool,
    /// What came out.
    pub result: LoadResult,
    /// The same second by second, also of the time that was not measured.
    pub seconds: Vec<Second>,
}

/// One second, all targets together.
pub struct Second {
    /// Whether it belongs to the measured time.
    pub measured: bool,
    /// Its begin, since the load began.
    pub begin: Nanos,
    /// Its end.
    pub end: Nanos,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Response time of reads and writes, nanoseconds: half were faster.
    pub p50: Option<u64>,
    /// 99 % were faster.
    pub p99: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
    /// Arrivals that were due and waited at its end.
    pub backlog: u64,
}

/// What was found when everything written was read at the end.
pub struct LastLook {
    /// Blocks that were compared.
    pub units: u64,
    /// Size of a block.
    pub unit_bytes: u32,
    /// Blocks that held something else than what was written, whenever that was seen.
    pub violation_count: u64,
    /// The first of them.
    pub violations: Vec<Violation>,
}

impl Outcome {
    /// The phases that are reported as one: all but those of a curve, and the unsteady rounds.
    pub fn counted(&self) -> impl Iterator<Item = &Phase> {
        self.phases.iter().filter(|phase| phase.counts)
    }

    /// Blocks that did not hold what was written, whenever that was seen.
    pub fn violation_count(&self) -> u64 {
        let seen = self.phases.last().map_or(0, |phase| phase.result.violation_count);
        self.last_look.as_ref().map_or(seen, |look| look.violation_count.max(seen))
    }

    /// Why it ended early.
    pub fn failure(&self) -> Option<String> {
        let failed = self.phases.iter().find_map(|phase| phase.result.failure.clone());
        failed.or_else(|| self.broken.clone())
    }

    /// What is reported, as one result; `None` where nothing was run.
    pub fn merged(&self) -> Option<LoadResult> {
        let mut phases = self.counted();
        let mut result = phases.next()?.result.clone();
        phases.for_each(|phase| result.append(&phase.result));
        Some(result)
    }

    /// Whether a worker was busy all of a load's time, and not because it was to wait awake: it may have been the bottleneck.
    pub fn is_generator_busy(&self, spin: Nanos) -> bool {
        let busy = |phase: &Phase| phase.result.cost.busiest_permille > BUSY_PERMILLE;
        spin == Nanos::ZERO && self.counted().any(busy)
    }

    /// Requests of open loops that were due, and those never started.
    pub fn delivery(&self) -> (u64, u64) {
        let phases = self.counted();
        phases.fold((0, 0), |(due, undelivered), phase| {
            (due + phase.result.due, undelivered + phase.result.undelivered)
        })
    }
}

impl Phase {
    /// Whether it did less than 98 % of what was offered; not known of one that ended before its time.
    pub fn is_saturated(&self) -> Option<bool> {
        let whole = !self.result.interrupted && self.result.failure.is_none();
        whole.then(|| self.offered.is_some_and(|offered| self.result.iops() < KEPT_SHARE * offered))
    }
}
