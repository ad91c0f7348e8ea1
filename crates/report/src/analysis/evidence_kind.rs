//! The kind of evidence a number is: no page shows one without it.

use serde::{Deserialize, Serialize};

/// The kind of evidence a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Evidence"))]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// A real database on a real datastore.
    Measured,
    /// A real database on modelled devices.
    Emulated,
    /// Virtual time.
    Simulated,
    /// Of a whole record whose designs are of different kinds; each design says its own.
    Mixed,
}

impl EvidenceKind {
    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            EvidenceKind::Measured => "measured",
            EvidenceKind::Emulated => "emulated",
            EvidenceKind::Simulated => "simulated",
            EvidenceKind::Mixed => "mixed",
        }
    }
}
