//! What a collector sends: sources, ticks, wait samples, notes. Plain values; nothing is aggregated
//! beyond the second, and nothing is a rate.
//!
//! Times are nanoseconds since the origin `Instant` of [`crate::Targets`].

use crate::source::SourceInfo;
use underlay_core::Nanos;

/// State of a session as the server reports it, and what it waits for.
///
/// Empty strings stand for SQL nulls. A session in state `active` without a wait class is on a CPU
/// *or runnable*: the server does not distinguish them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitKey {
    /// `active`, `idle`, `idle in transaction`, ...; for holders also `prepared transaction`
    /// (no session holds the lock) and `unknown` (the holder was gone when it was looked up). Of a server on this
    /// host with what the kernel says of the session's thread behind a slash: `active/R`, `active/D`, `active/S`.
    pub state: String,
    /// Wait event type: `IO`, `LWLock`, `Lock`, `Client`, ...
    pub class: String,
    /// Wait event: `WALSync`, `DataFileRead`, `transactionid`, ...
    pub event: String,
    /// `client backend`, `checkpointer`, ...
    pub backend_type: String,
}

/// One message of a collector.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A source exists under this number. Sent before its first tick, and again when its series or
    /// its status changed; the latest one is valid.
    Source(usize, SourceInfo),
    /// One reading of a source. `values` has one entry per series of the latest
    /// [`Item::Source`], `NAN` = missing. Read at some moment within `[begin, end]`.
    Tick {
        /// Number of the source.
        source: usize,
        /// Start of the acquisition window.
        begin: Nanos,
        /// End of the acquisition window.
        end: Nanos,
        /// One value per series.
        values: Vec<f64>,
    },
    /// Sampled sessions of one second. Divide a count by its number of samples to get the mean number
    /// of sessions in that state; over all keys of `counts` that is the number of client sessions.
    Waits {
        /// Start of the first sample.
        begin: Nanos,
        /// End of the last sample.
        end: Nanos,
        /// Client backends and their parallel workers, without the collector's own sessions.
        counts: Vec<(WaitKey, u32)>,
        /// How many times the sessions were sampled.
        samples: u32,
        /// For each session that waited on a lock: the state of the session at the root of its chain
        /// of blockers, which itself does not wait on a lock. One count per waiter followed.
        holders: Vec<(WaitKey, u32)>,
        /// Number of samples of lock chains (including those in which no session waited).
        holder_samples: u32,
        /// Server processes other than client backends that were doing something (their idle main
        /// loops are left out). Per `samples`.
        background: Vec<(WaitKey, u32)>,
        /// For each client session that waited for another one's write or flush of the log: the state of the one that
        /// writes. Per `samples`.
        log_holders: Vec<(WaitKey, u32)>,
        /// For each client session that waited for a page that another one reads: the state of the one that reads.
        /// Per `samples`.
        page_holders: Vec<(WaitKey, u32)>,
    },
    /// A note for the record: a fact, a failure, a recovery, missed ticks.
    Note {
        /// When it was noticed.
        at: Nanos,
        /// Number of the source, if it is about one.
        source: Option<usize>,
        /// A lowercase fragment.
        text: String,
    },
}
