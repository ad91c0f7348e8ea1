//! Rate curves of block loads: response time against the rate that is delivered.

use serde::Serialize;

use super::estimate::Estimate;

/// The curve of one design, over all its counted runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RateCurve {
    /// The design.
    pub design: usize,
    /// The mean response time that is looked for, nanoseconds.
    pub limit_ns: u64,
    /// I/Os per second at which the mean response time reaches the limit; what it says is in `found`.
    pub rate_at_limit: Estimate,
    /// How that rate is to be read.
    pub found: CurveReading,
    /// The points in their order, without the load that found the maximum.
    pub points: Vec<CurvePoint>,
}

/// How the rate at the limit is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum CurveReading {
    /// It lies between two points of each run.
    Interpolated,
    /// No point of some run reached the limit: the rate is a bound from below, without an interval.
    AtLeast,
    /// The lowest rate of some run was above the limit: there is no rate.
    Never,
}

/// One point: what the same share of each run's maximum came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CurvePoint {
    /// `70 %` of the maximum.
    pub label: String,
    /// What was offered, I/Os per second.
    pub offered_per_second: Estimate,
    /// What was done of it.
    pub done_per_second: Estimate,
    /// The same in bytes.
    pub bytes_per_second: Estimate,
    /// Mean response time from the intended start, nanoseconds.
    pub mean_ns: Estimate,
    /// Its 99th percentile.
    pub p99_ns: Estimate,
    /// Whether less than 98 % of the offer was done in some run.
    pub saturated: bool,
}
