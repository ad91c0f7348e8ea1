//! What the reader must know: findings, differences, settings.

use serde::Serialize;

/// Something the reader must know.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Finding {
    /// How grave it is.
    pub severity: FindingSeverity,
    /// Stable word.
    pub code: String,
    /// The sentence.
    pub text: String,
    /// The design it concerns, if only one.
    pub design: Option<usize>,
    /// The run (position in [`crate::analysis::Analysis::runs`]) it concerns, if only one.
    pub run: Option<usize>,
    /// The rung it concerns, if only one.
    pub users: Option<u32>,
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Severity"))]
#[serde(rename_all = "kebab-case")]
pub enum FindingSeverity {
    /// The result is no evidence for its question.
    Invalid,
    /// Measured, but suspicious.
    Warning,
    /// Worth knowing.
    Information,
}

/// A difference between the designs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Confound {
    /// Where: `engine.settings.wal_level`.
    pub path: String,
    /// The value of each design, in their order; `null` where a design has none.
    pub values: Vec<Option<String>>,
    /// Whether it belongs to what the study asks about (the storage).
    pub asked: bool,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Setting {
    /// `plan`, `engine`, `datastore`, `host` or `software`.
    pub group: String,
    /// Where: `procedure.measure`.
    pub path: String,
    /// The value; when `design` is `null`, of all designs.
    pub value: String,
    /// Where it came from: `study.toml:12`, `default`, `command line`, `in force`.
    pub origin: String,
    /// The design it holds for, if only one.
    pub design: Option<usize>,
}
