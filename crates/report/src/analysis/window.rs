//! Measured windows, and whether they were steady.

use std::collections::BTreeMap;

use serde::Serialize;

use super::estimate::Estimate;

/// A measured window: one rung in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Window {
    /// The run (position in [`crate::analysis::Analysis::runs`]).
    pub run: usize,
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// Begin, seconds since the begin of the run.
    pub begin_s: f64,
    /// End.
    pub end_s: f64,
    /// New orders per minute, with its batch-means interval.
    pub headline: Estimate,
    /// Metric name -> number in this window.
    pub metrics: BTreeMap<String, Option<f64>>,
    /// Whether throughput was steady.
    pub steady: Steady,
}

/// Whether throughput was steady over a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Steady {
    /// The judgement.
    pub state: SteadyState,
    /// The same in words, with the numbers; also what could not be judged and why.
    pub text: String,
    /// Seconds that MSER-5 would cut from the begin.
    pub trimmed_s: Option<f64>,
    /// Relative change over the window along the trend.
    pub drift: Option<f64>,
    /// Times of level changes, seconds since the begin of the run.
    pub change_points_s: Vec<f64>,
    /// Effective number of independent seconds.
    pub effective_samples: Option<f64>,
}

/// Judgements of steadiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum SteadyState {
    /// Nothing speaks against it.
    Steady,
    /// A trend, a step or a long warm-up lies inside the window.
    NotSteady,
    /// The window is too short to tell.
    TooShort,
}
