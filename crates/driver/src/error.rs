//! Why a driver could not be started or directed.

use underlay_database::SessionError;

use crate::process::LostDriver;

/// Why a driver could not be started or directed. What happens to users later is not an error of the
/// driver but part of its result.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// No users.
    #[error("a driver needs users; ask for at least one")]
    NoUsers,
    /// A pool without connections.
    #[error("the pool needs at least one connection; allow one, or leave the limit out")]
    NoConnections,
    /// No threads.
    #[error("a driver needs a thread; ask for at least one, or leave the number out")]
    NoThreads,
    /// Not a factor.
    #[error("keying and think times cannot be multiplied by {0}; use a finite number from 0 up")]
    KeyThink(f64),
    /// Not a rate.
    #[error("{0} transactions per second is not a rate; use a finite number above 0")]
    Rate(f64),
    /// A rate for a closed loop.
    #[error("a closed loop has no rate to set; start the driver with open pacing")]
    NotOpen,
    /// More weights than types.
    #[error("{given} weights were given for {known} types of transactions; give one per type")]
    Weights {
        /// Weights.
        given: usize,
        /// Types.
        known: usize,
    },
    /// A load generator in another process refused.
    #[error("{0}")]
    Refused(String),
    /// A load generator in another process is gone.
    #[error(transparent)]
    Lost(#[from] LostDriver),
    /// The first session could not be opened.
    #[error("the first session with the database could not be opened: {0}")]
    Connect(#[source] SessionError),
    /// Time dilation needs the processor time of sessions.
    #[error(
        "the kernel does not report the CPU time of a session's server process, which time dilation needs"
    )]
    CpuAccount(#[source] std::io::Error),
    /// The system refused a thread or its runtime.
    #[error("the worker thread `{thread}` could not be started")]
    Thread {
        /// Its name.
        thread: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}
