//! Numbers with their intervals.

use serde::Serialize;

/// A number with its 95 % interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Estimate {
    /// The best single number: the mean over the runs, or the quantile of the merged distribution.
    pub value: Option<f64>,
    /// Lower end of the interval; `null` when no interval is possible.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// What the interval covers.
    pub basis: Basis,
    /// The number in each run, in the order of execution; `null` where a run lacks it.
    pub runs: Vec<Option<f64>>,
}

/// What an interval covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Variation from run to run: Student's t over the runs.
    Runs,
    /// Variation within one run only (batch means): says nothing about the next run.
    WithinRun,
    /// Variation within the runs: bootstrap over blocks of 10 s of the merged histograms.
    Bootstrap,
    /// No interval.
    #[default]
    None,
}
