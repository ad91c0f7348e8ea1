//! The rungs of a design: throughput, latency, load of the volumes and of the load generator.

use std::collections::BTreeMap;

use serde::Serialize;

use super::estimate::Estimate;

/// One design at one number of users, over all its counted runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Rung {
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// Metric name -> number; see [`crate::analysis::Method::metrics`] for titles, units and definitions.
    pub metrics: BTreeMap<String, Estimate>,
    /// Latency per transaction type, in the order of the standard.
    pub latencies: Vec<LatencyRow>,
    /// Load and latency per volume.
    pub volumes: Vec<VolumeRow>,
    /// What its users touch of the database; `null` where that is not known.
    pub working_set: Option<WorkingSet>,
    /// What the volumes of a cluster's host share and requests occupy nearly all the time.
    pub busy_parts: Vec<BusyPart>,
}

/// A part of a cluster's host that requests occupy nearly all the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct BusyPart {
    /// `storage stack`, `sending link` or `receiving link`.
    pub kind: String,
    /// The host's name.
    pub host: String,
    /// Share of the time; above 1 where a part of a scaled host served a burst on credit.
    pub share: f64,
}

/// What the users of a rung touch of the database, and how much of it memory holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WorkingSet {
    /// Share of the database.
    pub share: f64,
    /// Bytes of the loaded database that they touch.
    pub touched_bytes: Option<f64>,
    /// Bytes of memory for it: the server's limit, or what of it the engine caches pages in; `null` without a limit.
    pub memory_bytes: Option<f64>,
    /// The same in words: `touches 0.9 GB, 0.3 GB fits`.
    pub text: String,
}

/// The best rung of a design.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Peak {
    /// The design.
    pub design: usize,
    /// Where its mean throughput is highest.
    pub users: u32,
    /// New orders per minute there.
    pub headline: Estimate,
    /// The transaction type whose 90th percentile exceeds the limit of the standard there, if one does.
    pub exceeds_limit: Option<String>,
}

/// Latency of one transaction type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LatencyRow {
    /// The type: `new_order`.
    pub transaction: String,
    /// Transactions counted over all runs.
    pub count: u64,
    /// Response time: nanoseconds from the intended start.
    pub p50: Estimate,
    /// 95th percentile.
    pub p95: Estimate,
    /// 99th percentile.
    pub p99: Estimate,
    /// The mean, exact.
    pub mean_ns: Option<f64>,
    /// The largest, exact.
    pub max_ns: Option<u64>,
    /// 99th percentile of the service time (from the actual start).
    pub service_p99_ns: Option<u64>,
    /// Errors of all classes.
    pub errors: u64,
}

/// Load and latency of one volume, or of a device that volumes share.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct VolumeRow {
    /// The volume: `data`, `wal`, ...; or `whole device`.
    pub volume: String,
    /// The volumes on a device that is not one volume's alone: the numbers are all that it did, for these volumes and for
    /// whatever else it serves. Empty where they are the volume's.
    pub shared_by: Vec<String>,
    /// Metric name -> number.
    pub metrics: BTreeMap<String, Estimate>,
}

/// A response time distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Distribution {
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// The transaction type.
    pub transaction: String,
    /// Transactions counted.
    pub count: u64,
    /// Share of the transactions that took at most the time in `nanos`; ascending, the last is 1.
    pub shares: Vec<f64>,
    /// Response times, nanoseconds; same length as `shares`.
    pub nanos: Vec<u64>,
}

/// What the load generator cost at one rung.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DriverLoad {
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// Processors it used, mean.
    pub cores: Option<f64>,
    /// The same as a share of the host's processors.
    pub share_of_host: Option<f64>,
    /// CPU-seconds per 10,000 of what the headline counts.
    pub cpu_seconds_per_10000: Option<f64>,
    /// 99th percentile of actual minus intended dispatch, nanoseconds.
    pub dispatch_lag_p99_ns: Option<u64>,
    /// Whether the generator was the limit.
    pub saturated: Option<bool>,
}
