//! Doubts about a study that do not prevent it: they go with the plan into the record and the report.

use std::fmt;

/// A doubt, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Stable name for programs: `no-interval`, `fits-cache`, `fsync-off`, ...
    pub code: &'static str,
    /// What is doubtful.
    pub text: String,
    /// What to do about it.
    pub remedy: String,
    /// Line of the study file it concerns, from 1.
    pub line: Option<usize>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know.
    Note,
    /// The result means less than it seems.
    Warning,
}

impl Severity {
    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
