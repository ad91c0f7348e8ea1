//! Runs: what they did, whether their data was right, and how well they were observed.

use serde::Serialize;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Run {
    /// Its id in the record.
    pub id: i64,
    /// The design.
    pub design: usize,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Position in the schedule, from 1.
    pub order: u32,
    /// `running`, `finished`, `failed` or `interrupted`.
    pub status: String,
    /// Why it did not finish.
    pub reason: Option<String>,
    /// Whether its numbers are used: finished and not replaced.
    pub counted: bool,
    /// Id of the run that replaced it.
    pub superseded_by: Option<i64>,
    /// Wall clock time of its begin, nanoseconds since the Unix epoch.
    pub begin_wall_ns: u64,
    /// Its length in seconds; `null` while it runs.
    pub seconds: Option<f64>,
    /// Its phases.
    pub phases: Vec<Phase>,
    /// What the datastore's copies (resync) and the load did to each other; empty where copies were made in one stage alone.
    pub stages: Vec<Stage>,
    /// What happened to it: checkpoints, faults, outages.
    pub events: Vec<Event>,
    /// Remarks of samplers: facts found at the start, later failures and recoveries. Not for charts.
    pub notes: Vec<Event>,
}

/// A phase of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Phase {
    /// `restore`, `start`, `warm-up`, `ramp-up`, `measure`, ...
    pub kind: String,
    /// For readers.
    pub label: String,
    /// Virtual users, in phases with load.
    pub users: Option<u32>,
    /// Begin, seconds since the begin of the run.
    pub begin_s: f64,
    /// End; `null` while it runs.
    pub end_s: Option<f64>,
    /// `running`, `finished`, `failed`, `interrupted` or `skipped`.
    pub status: String,
}

/// A stage of a run in which the datastore copied data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Stage {
    /// Which one.
    pub kind: StageKind,
    /// Begin, seconds since the begin of the run.
    pub begin_s: f64,
    /// End.
    pub end_s: f64,
    /// I/Os of the devices for copies, per second; `null` where the datastore does not count its queues.
    pub resync_per_second: Option<f64>,
    /// Bytes of these.
    pub resync_bytes_per_second: Option<f64>,
    /// I/Os of the devices for volumes, per second.
    pub volumes_per_second: Option<f64>,
    /// Bytes of these.
    pub volumes_bytes_per_second: Option<f64>,
    /// What the headline counts, per its period; `null` of a job.
    pub headline: Option<f64>,
}

/// What copies and load did, in the order in which a run comes to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum StageKind {
    /// Copies before any load.
    ResyncAlone,
    /// Copies while the load started and was not measured yet.
    LoadStarts,
    /// Copies beside the measured load.
    LoadStable,
    /// Copies after the load.
    LoadStopped,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "RunEvent"))]
pub struct Event {
    /// Seconds since the begin of the run.
    pub at_s: f64,
    /// End, for events that last (checkpoints); `null` for instants.
    pub until_s: Option<f64>,
    /// Stable word.
    pub kind: String,
    /// For readers.
    pub text: String,
}

/// A consistency check.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Check {
    /// The run (position in [`crate::analysis::Analysis::runs`]).
    pub run: usize,
    /// `before` or `after` the load.
    pub moment: String,
    /// Short identity.
    pub id: String,
    /// What it verifies.
    pub title: String,
    /// `ok`, `violated` or `failed`.
    pub outcome: String,
    /// Rows that violate it.
    pub rows: Option<u64>,
    /// An example, or why the check could not be made.
    pub detail: Option<String>,
}

/// A source of ticks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Source {
    /// The run (position in [`crate::analysis::Analysis::runs`]).
    pub run: usize,
    /// Its name.
    pub name: String,
    /// Its layer.
    pub layer: String,
    /// `available`, `degraded` or `absent`.
    pub status: String,
    /// Why it is not available.
    pub reason: Option<String>,
    /// Number of its series.
    pub series: usize,
    /// Ticks recorded.
    pub ticks: usize,
    /// Longest time between two ticks, seconds.
    pub longest_gap_s: Option<f64>,
}

/// How well an emulated datastore kept its times in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Emulation {
    /// The run (position in [`crate::analysis::Analysis::runs`]).
    pub run: usize,
    /// Whether its timing can be trusted; `null` when the record does not say.
    pub valid: Option<bool>,
    /// Why not.
    pub reason: Option<String>,
    /// Share of the requests that the host itself made late.
    pub host_limited_share: Option<f64>,
    /// Median modelled latency, nanoseconds.
    pub modelled_p50_ns: Option<u64>,
    /// 99th percentile of the modelled latency.
    pub modelled_p99_ns: Option<u64>,
    /// Median of actual completion minus deadline.
    pub lateness_p50_ns: Option<u64>,
    /// Its 99th percentile.
    pub lateness_p99_ns: Option<u64>,
}
