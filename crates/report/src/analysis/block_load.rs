//! Results of block I/O loads.

use serde::Serialize;

/// The loads of one run, in the order in which they ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct BlockLoads {
    /// The run (position in [`crate::analysis::Analysis::runs`]).
    pub run: usize,
    /// The design.
    pub design: usize,
    /// Whether the last rounds were steady; `null` where it was not asked or could not be judged.
    pub steady: Option<bool>,
    /// What a steady state was judged by; `null` where it was not asked.
    pub steady_state: Option<SteadyRounds>,
    /// How many loads were to be run: the points of a curve; `null` where that was not fixed.
    pub planned: Option<u64>,
    /// Whether the user ended it before its time.
    pub interrupted: bool,
    /// Delivery of the reported open loop; `null` in a closed loop, and of a curve.
    pub delivery: Option<Delivery>,
    /// Requests that failed, whenever that was.
    pub errors: u64,
    /// Whether a thread of the load generator used a whole processor, so that it may have been the limit.
    pub generator_busy: bool,
    /// One load, the rounds until it was steady, or the points of a curve.
    pub loads: Vec<BlockLoad>,
}

/// What a steady state was judged by.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SteadyRounds {
    /// Rounds that were run.
    pub rounds: u64,
    /// Rounds after which it was to be given up.
    pub rounds_max: Option<u64>,
    /// Of the last five: largest minus smallest, over their mean; `null` where there were fewer.
    pub range_share: Option<f64>,
    /// Of the last five: how far a line through them moves, over their mean.
    pub excursion_share: Option<f64>,
}

/// Requests of an open loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Delivery {
    /// That fell due.
    pub due: u64,
    /// Of those, never started.
    pub undelivered: u64,
}

/// One load. Times are response times of reads and writes from the intended start, nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct BlockLoad {
    /// `load`, `round 3`, `maximum`, `70 %`.
    pub label: String,
    /// Requests that could be in flight at once.
    pub in_flight: u64,
    /// Whether it belongs to what is reported: not a point of a curve, nor a round before the steady ones.
    pub counts: bool,
    /// What an open loop asked for, per second; `null` in a closed one.
    pub offered_per_second: Option<f64>,
    /// Reads and writes that were done, per second.
    pub done_per_second: f64,
    /// Bytes read and written, per second.
    pub bytes_per_second: f64,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// Half were faster.
    pub p50_ns: Option<u64>,
    /// 95 % were faster.
    pub p95_ns: Option<u64>,
    /// 99 % were faster.
    pub p99_ns: Option<u64>,
    /// 99.9 % were faster.
    pub p999_ns: Option<u64>,
    /// Whether less than 98 % of the offer was done; `null` of a load that ended before its time.
    pub saturated: Option<bool>,
    /// Whether it ended before its time.
    pub ended_early: bool,
}
