//! What happened over time.

use serde::Serialize;

/// What happened over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Timelines {
    /// What is drawn, in the order of the layers from the user down.
    pub series: Vec<TimelineSeries>,
    /// One per run and series that has data.
    pub lines: Vec<TimelineLine>,
}

/// A derived series.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TimelineSeries {
    /// Stable name: `headline`, `latency.new_order.p99`, `volume.data.read_iops`, `wait.log`.
    pub name: String,
    /// For readers.
    pub title: String,
    /// `driver`, `database`, `host`, `block`, `datastore` or `underlay`.
    pub layer: String,
    /// Unit of the values: `1/min`, `1/s`, `ns`, `bytes/s`, `share`, `sessions`, `bytes`, `cores`.
    pub unit: String,
    /// Series that belong into one chart have the same group: `throughput`, `latency`, `budget`.
    pub group: String,
    /// The part of the storage it is of, `null` where it is not of a part: `h0`, `h0/g0`, `h0/g0/disk0`. Series of one group
    /// that have a part are the lines of one chart.
    pub entity: Option<String>,
}

/// The values of one series in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TimelineLine {
    /// The run (position in [`crate::analysis::Analysis::runs`]).
    pub run: usize,
    /// The series (position in [`Timelines::series`]).
    pub series: usize,
    /// Begin of the first bucket, seconds since the begin of the run.
    pub begin_s: f64,
    /// Length of a bucket, seconds. At most 1800 buckets.
    pub step_s: f64,
    /// Mean of each bucket.
    pub mean: Vec<Option<f64>>,
    /// Smallest and largest second of each bucket; `null` when each bucket holds one second.
    pub min: Option<Vec<Option<f64>>>,
    /// See `min`.
    pub max: Option<Vec<Option<f64>>>,
}
