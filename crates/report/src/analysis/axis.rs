//! What a study varied besides designs and users.

use serde::Serialize;

/// Something that was varied, and therefore asked about.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Axis {
    /// Name, unique in the study.
    pub name: String,
    /// The keys of the study that it sets.
    pub keys: Vec<String>,
    /// What its numbers are: `bytes`, `ns` or `number`; `null` where its points are names.
    pub unit: Option<String>,
    /// Its points; the others are compared with the first one.
    pub points: Vec<AxisPoint>,
}

/// A point of an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AxisPoint {
    /// As the study has it.
    pub name: String,
    /// As tables and charts have it: at the scale of the execution.
    pub label: String,
    /// As sentences have it: `32 GiB of memory`.
    pub phrase: String,
    /// Its place on a numeric axis.
    pub number: Option<f64>,
}
