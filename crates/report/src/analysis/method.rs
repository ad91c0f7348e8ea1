//! How the numbers were made.

use serde::Serialize;

/// How the numbers were made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Method {
    /// The metrics that occur in `rungs`, `windows` and `comparisons`.
    pub metrics: Vec<Metric>,
    /// Terms and what they mean here.
    pub definitions: Vec<(String, String)>,
    /// What the results must not be taken for.
    pub disclaimer: String,
    /// Where the workload deviates from the standard it is derived from.
    pub deviations: Vec<String>,
}

/// A metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Metric {
    /// Its name in maps.
    pub name: String,
    /// For readers.
    pub title: String,
    /// Unit: `1/min`, `1/s`, `ns`, `bytes/s`, `share`, `cores`, `requests`.
    pub unit: String,
    /// Which direction is better.
    pub better: Direction,
    /// How it is computed.
    pub definition: String,
}

/// Which direction of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither.
    Neither,
}
