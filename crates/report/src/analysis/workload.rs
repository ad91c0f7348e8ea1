//! The workload of a record, in words for pages.
//!
//! What it deliberately does not do: say how a plan is read (`workload_view`).

use serde::{Deserialize, Serialize};

/// The workload, and what its headline counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Workload {
    /// The word of the file format: `tpcc`.
    pub name: String,
    /// What the headline counts, in the plural: `new orders`.
    pub counted: String,
    /// The headline's unit as it is printed: `NOPM`.
    pub unit: String,
    /// The types that the headline counts.
    pub types: Vec<String>,
    /// The headline in words: `new orders per minute`.
    pub rate: String,
    /// Its unit in charts: `1/min` or `1/s`.
    pub rate_unit: String,
    /// The notice that every page with a result must show.
    pub notice: String,
    /// Whether it has a begin and an end: then it has sessions, and no users.
    pub is_job: bool,
}
