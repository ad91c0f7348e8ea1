//! The contents of a record as plain values, for writing and reading.

use std::collections::BTreeMap;

use serde_json::Value;
use underlay_core::series::{Layer, SeriesSpec};
use underlay_core::{CheckOutcome, Evidence, Nanos};

use crate::stored_histogram::StoredHistogram;
use crate::words::{CheckMoment, PhaseKind, PhaseStatus, RunStatus, Severity, SourceStatus};

/// A run of one design, unique within a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub i64);

/// A phase, unique within a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhaseId(pub i64);

/// A window of time on the clock of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// First instant.
    pub begin: Nanos,
    /// First instant after it.
    pub end: Nanos,
}

impl Interval {
    /// Its length in seconds.
    pub fn seconds(self) -> f64 {
        self.end.saturating_sub(self.begin).as_secs_f64()
    }
}

/// One of the designs being compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// Its position in the plan, from 0.
    pub index: u32,
    /// Its key in the study: `nvme`.
    pub name: String,
    /// Its name for readers: `Kingston DC1500M`.
    pub title: String,
    /// A sentence or two.
    pub description: String,
    /// What kind of evidence its runs are.
    pub evidence: Evidence,
    /// Everything else the plan says about it.
    pub detail: Value,
}

/// A run about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// Index of the design.
    pub design: u32,
    /// Which repeat, from 1. Runs of different designs with the same repeat are pairs.
    pub repeat: u32,
    /// Position in the schedule of the whole execution, from 0.
    pub order: u32,
    /// Begin, on the clock of this run.
    pub at: Nanos,
    /// Wall clock time of the clock's origin (`Nanos(0)`), in nanoseconds since the Unix epoch.
    pub origin_wall_ns: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// When.
    pub at: Nanos,
    /// How. [`RunStatus::Running`] is refused.
    pub status: RunStatus,
    /// The cause, when it did not finish.
    pub reason: Option<String>,
}

/// A run as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its identity.
    pub id: RunId,
    /// Index of the design.
    pub design: u32,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Position in the schedule, from 0.
    pub order: u32,
    /// Begin.
    pub begin: Nanos,
    /// End; `None` while it runs.
    pub end: Option<Nanos>,
    /// Wall clock time of `Nanos(0)`, in nanoseconds since the Unix epoch.
    pub origin_wall_ns: u64,
    /// How far it came.
    pub status: RunStatus,
    /// Why it did not finish.
    pub reason: Option<String>,
    /// The run that replaced it.
    pub superseded_by: Option<RunId>,
}

impl Run {
    /// Whether it counts: finished and not replaced.
    pub fn is_evidence(&self) -> bool {
        self.status == RunStatus::Finished && self.superseded_by.is_none()
    }
}

/// A phase about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPhase {
    /// The run it belongs to; `None` for what is done once for all runs.
    pub run: Option<RunId>,
    /// What it does.
    pub kind: PhaseKind,
    /// For readers: `8 users`.
    pub label: String,
    /// Virtual users, in phases with load.
    pub users: Option<u32>,
    /// Begin.
    pub at: Nanos,
}

/// A phase as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its identity.
    pub id: PhaseId,
    /// The run it belongs to; `None` for what is done once for all runs.
    pub run: Option<RunId>,
    /// What it does.
    pub kind: PhaseKind,
    /// For readers.
    pub label: String,
    /// Virtual users, in phases with load.
    pub users: Option<u32>,
    /// Begin.
    pub begin: Nanos,
    /// End; `None` while it runs.
    pub end: Option<Nanos>,
    /// How far it came.
    pub status: PhaseStatus,
}

impl Phase {
    /// Its span, once it has ended.
    pub fn interval(&self) -> Option<Interval> {
        self.end.map(|end| Interval { begin: self.begin, end })
    }
}

/// Something that happened at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The run it belongs to, if any.
    pub run: Option<RunId>,
    /// When.
    pub at: Nanos,
    /// A word of [`crate::conventions::event`], or another.
    pub kind: String,
    /// For readers.
    pub text: String,
    /// For programs; `Null` when there is nothing to add.
    pub data: Value,
}

/// A source of ticks as declared for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its number in the run.
    pub index: u32,
    /// Its name: `host_cpu`.
    pub name: String,
    /// Its layer.
    pub layer: Layer,
    /// Whether it could be read, and why not.
    pub status: SourceStatus,
    /// What a tick's values mean, in order. May only grow at its end while the run lasts.
    pub series: Vec<SeriesSpec>,
}

/// What a sampled database session was doing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitKey {
    /// Session state as the engine names it: `active`, `idle`, `idle in transaction`. Where the session's thread could be
    /// seen, with what the kernel says of it behind a slash: `active/R` running or runnable, `active/D` asleep in I/O,
    /// `active/S` asleep.
    pub state: String,
    /// Wait class as the engine names it; empty when not waiting (on CPU or runnable).
    pub class: String,
    /// Wait event; empty when not waiting.
    pub event: String,
    /// Kind of server process: `client backend`, `checkpointer`.
    pub backend_type: String,
}

/// How often a [`WaitKey`] was seen within a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitCount {
    /// What the sessions were doing.
    pub key: WaitKey,
    /// Session samples: summed over the samples of the window.
    pub sessions: u32,
}

/// The wait samples of one tick. `sessions / samples` is the mean number of sessions in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitWindow {
    /// The window.
    pub interval: Interval,
    /// Number of session samples.
    pub samples: u32,
    /// Client sessions and their parallel workers, without those of the sampler itself.
    pub clients: Vec<WaitCount>,
    /// Number of samples of lock chains, including those in which no session waited.
    pub holder_samples: u32,
    /// For each session waiting on a lock: what the session at the root of its chain of blockers was
    /// doing. Per `holder_samples`.
    pub holders: Vec<WaitCount>,
    /// Server processes other than client sessions that were doing something. Per `samples`.
    pub background: Vec<WaitCount>,
    /// For each session waiting for another one's write or flush of the log: what the one that writes was doing.
    /// Per `samples`.
    pub log_holders: Vec<WaitCount>,
    /// For each session waiting for a page that another one reads: what the one that reads was doing. Per `samples`.
    pub page_holders: Vec<WaitCount>,
}

/// One transaction type over one tick.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionTick {
    /// The window in which the transactions ended.
    pub interval: Interval,
    /// The type: `new_order`, `payment`, ...
    pub transaction: String,
    /// Committed.
    pub committed: u64,
    /// Rolled back as the workload intends it (TPC-C: 1 % of the new orders).
    pub rolled_back: u64,
    /// Given up after an error that is known to have undone it.
    pub failed: u64,
    /// Given up after an error that may or may not have undone it.
    pub unknown: u64,
    /// Errors of all attempts by class, also of those that were repeated with success.
    pub errors: BTreeMap<String, u64>,
    /// Attempts repeated after an error.
    pub retries: u64,
    /// Nanoseconds from the intended start to the end.
    pub response: StoredHistogram,
    /// Nanoseconds from the actual start to the end.
    pub service: StoredHistogram,
}

/// A distribution other than a transaction's.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramRow {
    /// The window it covers.
    pub interval: Interval,
    /// What it belongs to: a word of [`crate::conventions::histogram_scope`].
    pub scope: String,
    /// Which one: `data.read`, `dispatch_lag`.
    pub name: String,
    /// The counts; nanoseconds unless the name says otherwise.
    pub histogram: StoredHistogram,
}

/// A consistency check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The run.
    pub run: RunId,
    /// Before or after the load.
    pub moment: CheckMoment,
    /// Its short identity: `C1`, `ledger`.
    pub id: String,
    /// What it verifies.
    pub title: String,
    /// What it found.
    pub outcome: CheckOutcome,
}

/// A warning or note on the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The run it concerns, if only one.
    pub run: Option<RunId>,
    /// How grave it is.
    pub severity: Severity,
    /// Its stable word: see [`crate::conventions::finding`].
    pub code: String,
    /// The sentence for readers.
    pub text: String,
    /// The numbers behind it.
    pub data: Value,
}

/// A free-form JSON document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The run it belongs to, if only one.
    pub run: Option<RunId>,
    /// Its name: see [`crate::conventions::document`].
    pub name: String,
    /// Its content.
    pub content: Value,
}
