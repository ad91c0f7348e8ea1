//! Results of each of several databases under test.

use serde::Serialize;

use super::ladder::Rung;
use super::workload::Workload;

/// One of the databases of a study that has several.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Database {
    /// Its name in the study.
    pub name: String,
    /// What it does: what the whole study does, or a job beside it.
    pub workload: Workload,
    /// Its part of the rungs of [`crate::analysis::Analysis::rungs`], ordered by design, then users. Counts of all databases add
    /// up to those of the rung. Users are its own. A job is in no total: its rungs hold its result beside so many users of others.
    pub rungs: Vec<Rung>,
}
