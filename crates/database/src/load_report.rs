//! The result of loading a population: the same for every workload and engine.

use std::time::Duration;

/// What was loaded, and how long each stage took. Where connections go through the stages table by table, the stages
/// overlap: then the time of all of them is divided as the connections spent theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes sent to the server.
    pub bytes: u64,
    /// Sending rows.
    pub rows_duration: Duration,
    /// Building keys, indexes and references.
    pub keys_duration: Duration,
    /// What the engine does afterwards: vacuum, statistics, checkpoint.
    pub settle_duration: Duration,
}

impl LoadReport {
    /// All stages.
    pub fn duration(&self) -> Duration {
        self.rows_duration + self.keys_duration + self.settle_duration
    }
}
