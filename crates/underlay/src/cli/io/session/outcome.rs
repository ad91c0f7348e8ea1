//! The result of a block load.

use std::path::PathBuf;
use underlay_blockio::TargetKind;
use underlay_blockio::load::LoadResult;
use underlay_blockio::verify::Violation;
use underlay_core::{Bytes, Nanos};
use underlay_workload::block::SteadyState;

use crate::cli::io::medium::Medium;

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
    pub path: PathBuf,
    pub kind: TargetKind,
    pub size: Bytes,
    pub working_set: Bytes,
    pub created: bool,
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
    pub result: LoadResult,
    pub seconds: Vec<Second>,
}

/// One second, all targets together.
pub struct Second {
    pub measured: bool,
    pub begin: Nanos,
    pub end: Nanos,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub bytes: u64,
    pub errors: u64,
    pub p50: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
    pub backlog: u64,
}

/// What was found when everything written was read at the end.
pub struct LastLook {
    pub units: u64,
    pub unit_bytes: u32,
    pub violation_count: u64,
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

    /// Requests of open loops that were due, and those never started.
    pub fn delivery(&self) -> (u64, u64) {
        let phases = self.counted();
        phases.fold((0, 0), |(due, undelivered), phase| {
            (due + phase.result.due, undelivered + phase.result.undelivered)
        })
    }
}
