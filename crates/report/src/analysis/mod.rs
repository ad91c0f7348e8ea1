//! The analysis of a record as plain, serialisable values: what pages, terminals and programs show.
//!
//! Conventions of the JSON form, everywhere:
//!
//! - Times are seconds since the begin of their run, latencies nanoseconds, shares lie in `0..=1`, rates are
//!   per second or per minute as their metric's unit says ([`Metric`]).
//! - A value that could not be computed is `null`, never zero.
//! - Enumerations are lower-case words with hyphens.
//! - Designs, runs and series are referred to by their position in [`Analysis::designs`],
//!   [`Analysis::runs`] and [`Timelines::series`].
//!
//! What is deliberately not here: any computation (see the other modules) and any wording of pages beyond
//! the sentences that must be the same everywhere.

mod axis;
mod block_load;
mod bottleneck;
mod causal;
mod comparison;
mod curve;
mod database;
mod design;
mod estimate;
mod evidence_kind;
mod finding;
mod ladder;
mod method;
mod operation;
mod rate_search;
mod run;
mod study;
mod timeline;
#[cfg(test)]
mod typescript_tests;
mod validity;
mod verdict;
mod window;
mod workload;

use serde::Serialize;
use serde_json::Value;

pub use axis::{Axis, AxisPoint};
pub use block_load::{BlockLoad, BlockLoads, Delivery, SteadyRounds};
pub use bottleneck::{Bottleneck, BudgetPart, Gate, GateState, LimitMode, RuledOut, TimeClass};
pub use causal::{Agreement, CausalCheck, NotPerturbed, Reaction, Sensitivity, WhatIf};
pub use comparison::{Comparison, Outcome, RatioMethod, Scope};
pub use curve::{CurvePoint, CurveReading, RateCurve};
pub use database::Database;
pub use design::{Design, Published};
pub use estimate::{Basis, Estimate};
pub use evidence_kind::EvidenceKind;
pub use finding::{Confound, Finding, FindingSeverity, Setting};
pub use ladder::{
    BusyPart, Distribution, DriverLoad, LatencyRow, Peak, Rung, VolumeRow, WorkingSet,
};
pub use method::{Direction, Method, Metric};
pub use operation::Operation;
pub use rate_search::{RateSearch, RateStep};
pub use run::{Check, Emulation, Event, Phase, Run, Source, Stage, StageKind};
pub use study::Study;
pub use timeline::{TimelineLine, TimelineSeries, Timelines};
pub use validity::{Ceiling, ClassExcess, HostFactors, RungValidity, Validity};
pub use verdict::{Answer, Aspect, Confidence, Ratio, Verdict};
pub use window::{Steady, SteadyState, Window};
pub use workload::Workload;

/// Version of the JSON form: raised when a field changes its meaning or disappears.
pub const ANALYSIS_FORMAT: u32 = 2;

/// Everything that a report shows about one record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Analysis {
    /// [`ANALYSIS_FORMAT`].
    pub format: u32,
    /// What was executed.
    pub study: Study,
    /// What drove it.
    pub workload: Workload,
    /// The answer to the study's question.
    pub verdict: Verdict,
    /// What was varied besides designs and users, in the order of the study.
    pub axes: Vec<Axis>,
    /// The designs, in the order of the plan; with axes the variants: each design at each combination of points.
    pub designs: Vec<Design>,
    /// Every pair of designs, per rung and at their peaks; with axes every pair of variants that differ in one thing.
    pub comparisons: Vec<Comparison>,
    /// One per design and number of users, ordered by design, then users.
    pub rungs: Vec<Rung>,
    /// The databases under test, where a study has several; empty otherwise.
    pub databases: Vec<Database>,
    /// The best rung of each design.
    pub peaks: Vec<Peak>,
    /// Where the sessions' time went and what limits, one per rung; same order as `rungs`.
    pub bottlenecks: Vec<Bottleneck>,
    /// Whether the emulated designs or this host were measured, one per rung of an emulated design; in the order of `rungs`.
    pub validity: Vec<RungValidity>,
    /// What limits by experiment, one per counted run with a causal check; in the order of execution.
    pub causal_checks: Vec<CausalCheck>,
    /// The searches for the highest rate that meets a target, one per counted run that has one.
    pub searches: Vec<RateSearch>,
    /// Loads of block I/O, one per counted run that is one.
    pub block_loads: Vec<BlockLoads>,
    /// Rate curves of a study's block load, one per design that has one.
    pub curves: Vec<RateCurve>,
    /// Backups and restores: one per design, kind and cycle; empty where none were taken.
    pub operations: Vec<Operation>,
    /// Response time distributions per design, users and transaction type.
    pub distributions: Vec<Distribution>,
    /// All runs, also replaced and failed ones, in the order of execution.
    pub runs: Vec<Run>,
    /// The measured windows: one per counted run and rung.
    pub windows: Vec<Window>,
    /// What happened over time in each counted run.
    pub timelines: Timelines,
    /// Consistency checks of all runs that were not replaced, also of failed ones.
    pub checks: Vec<Check>,
    /// Everything the reader must know, gravest first.
    pub findings: Vec<Finding>,
    /// Everything that differs between the designs, asked or not.
    pub confounds: Vec<Confound>,
    /// Every setting: plan, engine, datastore, host.
    pub settings: Vec<Setting>,
    /// The sources of ticks per run and whether they worked.
    pub sources: Vec<Source>,
    /// How well the emulated datastore kept its times, per counted run; empty when nothing is emulated.
    pub emulation: Vec<Emulation>,
    /// What the load generator itself cost, one per rung; same order as `rungs`.
    pub driver: Vec<DriverLoad>,
    /// Results published by others for these designs.
    pub published: Vec<Published>,
    /// Facts about the host, as recorded.
    #[cfg_attr(test, ts(type = "unknown"))]
    pub host: Value,
    /// Versions, as recorded.
    #[cfg_attr(test, ts(type = "unknown"))]
    pub software: Value,
    /// Definitions, the disclaimer and the deviations from the standard.
    pub method: Method,
}
