//! Searches for the highest rate that meets a latency target: what was offered, seen and concluded.

use serde::Serialize;

/// The search of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RateSearch {
    /// The run (position in [`crate::analysis::Analysis::runs`]).
    pub run: usize,
    /// The design.
    pub design: usize,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// The target in words: `p99 <= 10 ms`.
    pub slo: String,
    /// The quantile, `0..1`.
    pub quantile: Option<f64>,
    /// What it may be at most, nanoseconds.
    pub limit_ns: Option<u64>,
    /// `rate`, `at-least` (the load generator was saturated first) or `nothing`.
    pub found: String,
    /// The highest rate that held, per second.
    pub holds_per_second: Option<f64>,
    /// The lowest rate that did not, per second.
    pub fails_per_second: Option<f64>,
    /// The rates tried, in their order.
    pub steps: Vec<RateStep>,
}

/// One rate that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RateStep {
    /// Offered, per second.
    pub rate_per_second: f64,
    /// Carried out, per second.
    pub delivered_per_second: Option<f64>,
    /// The quantile that was seen, nanoseconds.
    pub observed_ns: Option<u64>,
    /// The share of transactions that were late.
    pub late_share: Option<f64>,
    /// Lower end of its interval (95 % one-sided).
    pub late_share_low: Option<f64>,
    /// Upper end.
    pub late_share_high: Option<f64>,
    /// `met`, `exceeded`, `undecided`, `not delivered` or `generator saturated`.
    pub verdict: String,
    /// Whether it counts as holding; `null` when it was to be measured longer, or says nothing.
    pub holds: Option<bool>,
    /// The windows could not tell, and the point estimate decided.
    pub by_point_estimate: bool,
    /// `bracket`, `bisect` or `confirm`.
    pub purpose: String,
    /// Begin of the measured time, seconds since the begin of the run.
    pub begin_s: Option<f64>,
    /// Its end.
    pub end_s: Option<f64>,
}
