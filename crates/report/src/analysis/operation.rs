//! Backups and restores of a job that takes them.

use serde::Serialize;

use super::estimate::Estimate;

/// The backup or restore of one cycle of a design, over its counted runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Operation {
    /// The design.
    pub design: usize,
    /// `backup` or `restore`.
    pub kind: String,
    /// Its cycle, from 1.
    pub cycle: u32,
    /// From its begin until what it wrote was durable, seconds.
    pub seconds: Estimate,
    /// What it wrote, per second.
    pub bytes_per_second: Estimate,
    /// Mean time of a read of the volume that it read.
    pub read_latency_ns: Estimate,
    /// Mean time of a write to the volume that it wrote.
    pub write_latency_ns: Estimate,
}
