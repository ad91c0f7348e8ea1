//! Counters of one volume, named as in the published performance service where it has a name.

use crate::request::Operation;
use underlay_core::{Histogram, Nanos};

/// Cumulative counters of one volume: rates are differences between two readings.
#[derive(Clone, Debug, Default)]
pub struct VolumeCounters {
    /// Finished reads, writes, flushes, discards, in the order of [`Operation::ALL`].
    pub operations: [u64; 4],
    /// Bytes of finished requests, in the same order.
    pub bytes: [u64; 4],
    /// Requests that ended with an I/O error. One of blocks that no member has any more counts with the finished ones too.
    pub errors: u64,
    /// Latency of successful reads and writes in nanoseconds, from submission.
    pub latency_read: Histogram,
    /// The same for writes.
    pub latency_write: Histogram,
    /// Total time finished requests waited, in nanoseconds.
    pub queue_ns: u64,
    /// Total time from submission to completion, in nanoseconds.
    pub latency_ns: u64,
    /// Normalised (32 KiB) I/Os, where the volume has a limit.
    pub normalised: u64,
    /// Normalised I/Os that the limit made wait.
    pub normalised_delayed: u64,
    /// Requests in flight now.
    pub outstanding: u32,
    /// Writes that congestion held back at the ingress.
    pub congested: u64,
    /// Total time congestion held writes back, in nanoseconds.
    pub congestion_ns: u64,
}

impl VolumeCounters {
    /// Counts a successful request.
    pub(super) fn finished(&mut self, operation: Operation, bytes: u32, took: Nanos, queue: Nanos) {
        self.operations[operation.index()] += 1;
        self.bytes[operation.index()] += u64::from(bytes);
        self.latency_ns += took.0;
        self.queue_ns += queue.0;
        match operation {
            Operation::Read => self.latency_read.record(took.0),
            Operation::Write => self.latency_write.record(took.0),
            Operation::Flush | Operation::Discard => {}
        }
    }
}
