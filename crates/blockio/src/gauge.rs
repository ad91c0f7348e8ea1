//! Progress counters of running work on a target, for readers in other threads.
//!
//! Counted at each completion, not once a second: a reader sees at any time what has been done so far.

use std::sync::atomic::{AtomicU64, Ordering};

/// What has been done so far. Flushes are no writes: only their errors are counted.
#[derive(Debug, Default)]
pub struct IoGauge {
    /// Reads completed.
    pub reads: AtomicU64,
    /// Writes completed.
    pub writes: AtomicU64,
    /// Bytes of the reads.
    pub read_bytes: AtomicU64,
    /// Bytes of the writes.
    pub write_bytes: AtomicU64,
    /// Requests that failed.
    pub errors: AtomicU64,
}

impl IoGauge {
    pub(crate) fn count_read(&self, bytes: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_write(&self, bytes: u64) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.write_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }
}
