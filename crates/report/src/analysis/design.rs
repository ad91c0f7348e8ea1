//! The designs, and what others published about them.

use serde::Serialize;

use super::EvidenceKind;

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
    /// `headline`, `tpm`, `tpm_per_user`, `cpu_idle`.
    pub metric: String,
    /// Users of each value.
    pub users: Vec<u32>,
    /// The values.
    pub values: Vec<f64>,
    /// Document and figure.
    pub source: String,
    /// What to know before comparing.
    pub note: String,
}
