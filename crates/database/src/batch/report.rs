//! What an insertion did, per session and together.

use std::time::Duration;

use underlay_core::Histogram;
use underlay_workload::batch::Claim;

use super::BatchOptions;
use crate::error::SessionError;

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// All its rows are committed (or, where that was asked for, undone).
    Finished,
    /// It was asked to stop; what was open is undone.
    Stopped,
    /// The database refused something, or went away.
    Failed(SessionError),
}

/// What one session did.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// What may be in the table of its slice.
    pub claim: Claim,
    /// Rows whose statements were answered, or which the server took from the stream: committed or not.
    pub rows: u64,
    /// Time of each `INSERT` from when it was to be sent to its answer, in nanoseconds. Empty for streams.
    pub insert_latency_ns: Histogram,
    /// Time of each commit, in nanoseconds; in implicit mode the `INSERT` itself. Of a stream: from its last row to
    /// the answer to its commit.
    pub commit_latency_ns: Histogram,
    /// `rows` by whole seconds since the begin.
    pub rows_per_second: Vec<u64>,
    /// How it ended.
    pub end: SessionEnd,
}

/// What all sessions did.
#[derive(Clone, Debug)]
pub struct BatchReport {
    /// What was asked for.
    pub options: BatchOptions,
    /// From the first statement to the last answer.
    pub duration: Duration,
    /// The sessions, in the order of their slices.
    pub sessions: Vec<SessionReport>,
    /// Those of all sessions.
    pub insert_latency_ns: Histogram,
    /// Those of all sessions.
    pub commit_latency_ns: Histogram,
    /// Sum over the sessions, by whole seconds since the begin.
    pub rows_per_second: Vec<u64>,
}

impl BatchReport {
    pub(super) fn new(
        options: BatchOptions,
        duration: Duration,
        sessions: Vec<SessionReport>,
    ) -> BatchReport {
        let mut insert_latency_ns = Histogram::new();
        let mut commit_latency_ns = Histogram::new();
        let mut rows_per_second = Vec::new();
        for session in &sessions {
            insert_latency_ns.merge(&session.insert_latency_ns);
            commit_latency_ns.merge(&session.commit_latency_ns);
            for (second, rows) in session.rows_per_second.iter().enumerate() {
                add_at(&mut rows_per_second, second, *rows);
            }
        }
        BatchReport {
            options,
            duration,
            sessions,
            insert_latency_ns,
            commit_latency_ns,
            rows_per_second,
        }
    }

    /// Rows that the server took, committed or not.
    pub fn rows(&self) -> u64 {
        self.sessions.iter().map(|session| session.rows).sum()
    }

    /// Rows that the server said are committed.
    pub fn rows_acknowledged(&self) -> u64 {
        self.sessions.iter().map(|session| u64::from(session.claim.least)).sum()
    }

    /// Whether every session did all it should.
    pub fn is_complete(&self) -> bool {
        self.sessions.iter().all(|session| session.end == SessionEnd::Finished)
    }

    /// The first failure.
    pub fn failure(&self) -> Option<&SessionError> {
        self.sessions.iter().find_map(|session| match &session.end {
            SessionEnd::Failed(error) => Some(error),
            _ => None,
        })
    }

    /// What may be in the table.
    pub fn claims(&self) -> Vec<Claim> {
        self.sessions.iter().map(|session| session.claim).collect()
    }

    /// Rows taken per second over the whole duration.
    pub fn rate_per_second(&self) -> f64 {
        self.rows() as f64 / self.duration.as_secs_f64().max(1e-9)
    }
}

/// Adds to an element of a series, which grows as needed.
pub(super) fn add_at(series: &mut Vec<u64>, index: usize, value: u64) {
    if series.len() <= index {
        series.resize(index + 1, 0);
    }
    series[index] += value;
}
