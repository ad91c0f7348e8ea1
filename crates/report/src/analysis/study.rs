//! What was executed: the study, when, and how it ended.

use serde::Serialize;

use super::evidence_kind::EvidenceKind;

/// What was executed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Study {
    /// Key of the study.
    pub name: String,
    /// Title for readers.
    pub title: String,
    /// The question it asks.
    pub question: String,
    /// Of a study that repeats a publication: what differs from it.
    pub deviations: Vec<String>,
    /// Similarity scale, such as `1/16`; `1/1` is the full size.
    pub scale: String,
    /// The weakest kind of evidence among the designs.
    pub evidence: EvidenceKind,
    /// Root seed, decimal (64 bits, therefore text).
    pub seed: String,
    /// Identity of the workload.
    pub identity: String,
    /// Begin, nanoseconds since the Unix epoch (a JSON reader may round it to microseconds).
    pub started_wall_ns: u64,
    /// End; `null` while it is being executed or after its writer was killed.
    pub finished_wall_ns: Option<u64>,
    /// `running`, `finished`, `failed` or `cancelled`.
    pub status: String,
    /// Processes that wrote the record: more than 1 when the execution was resumed.
    pub sessions: u32,
    /// How many times longer it took than its design time, in which all times are; 1 = real time.
    pub time_dilation: u32,
}
