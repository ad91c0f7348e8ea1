//! What loads of block I/O came to.

use serde::Serialize;

/// The loads of one run, in the order in which they ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockLoads {
    /// The run (position in [`crate::analysis::Analysis::runs`]).
    pub run: usize,
    /// The design.
    pub design: usize,
    /// Whether the last rounds were steady; `null` where it was not asked.
    pub steady: Option<bool>,
    /// One load, the rounds until it was steady, or the points of a curve.
    pub loads: Vec<BlockLoad>,
}

/// One load. Times are response times of reads and writes from the intended start, nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// Whether less than 98 % of the offer was done.
    pub saturated: bool,
}
