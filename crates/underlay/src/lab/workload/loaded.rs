//! The load of a population: how far it is, and what it came to. What is loaded is the workload's.

use std::time::Duration;

use serde_json::json;
use underlay_core::Nanos;
use underlay_database::load_report::LoadReport;

/// A population that was loaded.
pub struct Loaded {
    /// How long it took, and how much it was.
    pub report: LoadReport,
    /// What it takes in the database, where that is known.
    pub stored_bytes: Option<u64>,
}

impl From<LoadReport> for Loaded {
    fn from(report: LoadReport) -> Loaded {
        Loaded { report, stored_bytes: None }
    }
}

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Share of the whole, 0 to 1.
    pub share: f64,
    /// Rows sent.
    pub rows: u64,
}

/// The record's document of a load that took `total` with the server's start and stop.
pub fn load_document(report: &LoadReport, total: Duration) -> serde_json::Value {
    json!({
        "rows": report.rows,
        "bytes": report.bytes,
        "rows_ns": Nanos::from(report.rows_duration).0,
        "keys_ns": Nanos::from(report.keys_duration).0,
        "settle_ns": Nanos::from(report.settle_duration).0,
        "total_ns": Nanos::from(total).0,
    })
}
