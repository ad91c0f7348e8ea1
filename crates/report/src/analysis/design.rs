//! The designs, and what others published about them.

use serde::Serialize;

use super::evidence_kind::EvidenceKind;

/// One of the designs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Design {
    /// Key in the study.
    pub name: String,
    /// Name for readers.
    pub title: String,
    /// A sentence or two.
    pub description: String,
    /// Of a variant: name of the design; otherwise the same as `name`.
    pub of: String,
    /// Of a variant: title of the design; otherwise the same as `title`.
    pub of_title: String,
    /// The point of each axis, by position.
    pub coordinates: Vec<usize>,
    /// What kind of evidence its numbers are.
    pub evidence: EvidenceKind,
    /// Facts for readers: name and value.
    pub facts: Vec<(String, String)>,
}

/// Results published by others.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Published {
    /// The design.
    pub design: usize,
    /// One of several databases; empty where it is of all of them, or of the only one.
    pub database: String,
    /// `headline`, `tpm`, `p95`, `volumes.data.read_latency_ns`, ...
    pub metric: String,
    /// Users of each value; of a job its sessions.
    pub users: Vec<u32>,
    /// The values, in the unit of the metric or in their own.
    pub values: Vec<f64>,
    /// Their own unit, such as `%` of another run; empty where it is that of the metric.
    pub unit: String,
    /// Users of the rungs of this record that stand for those; `null` where there is none.
    pub rungs: Vec<Option<u32>>,
    /// The values of this record there.
    pub ours: Vec<Option<f64>>,
    /// Whether agreement says nothing: the model was fitted to them, or the study sets them.
    pub given: bool,
    /// Id of the experiment; may be empty.
    pub experiment: String,
    /// Document and figure.
    pub source: String,
    /// What to know before comparing.
    pub note: String,
}
