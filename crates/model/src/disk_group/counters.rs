//! What a group has done: the counters of a performance service.
//!
//! Cumulative wherever a rate is derived, so that a reader chooses the interval and misses nothing between
//! two readings. The names follow those of the performance service of vSAN, whose users know them; each
//! field says its counterpart in quotes where there is one.

use super::log::LogAccount;
use super::request::MemberState;
use crate::scheduler::LANES;
use underlay_core::{Bytes, Nanos};

/// Counters of one disk group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupCounters {
    /// When they were read.
    pub at: Nanos,
    /// Per class of I/O, in the order of [`IoClass::ALL`]: "SchedQueueVM", "...Rec", "...Meta", "...NS".
    pub classes: [ClassCounters; 4],
    /// The write buffer and its elevator.
    pub write_buffer: WriteBufferCounters,
    /// Deduplication and compression.
    pub reduction: ReductionCounters,
    /// Congestion now, 0 to 255: "ssdCongestion".
    pub congestion: u8,
    /// Per device, the cache first.
    pub members: Vec<MemberCounters>,
}

/// Counters of one class of I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Answered reads.
    pub reads: u64,
    /// Answered writes.
    pub writes: u64,
    /// Answered flushes and discards.
    pub others: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub written_bytes: u64,
    /// Answers that were errors, contained in the numbers above.
    pub errors: u64,
    /// Time the answered requests waited, together: "latencyDelaySched" is its mean.
    pub queue_ns: u64,
    /// Time they took, together.
    pub service_ns: u64,
    /// Requests that had to wait for their turn or for room: "iopsDelayPctSched" is their share.
    pub delayed: u64,
    /// Requests not yet answered: "oio".
    pub outstanding: u64,
    /// Their bytes: "outstandingBytesSched".
    pub outstanding_bytes: u64,
}

/// Counters of the write buffer and its elevator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WriteBufferCounters {
    /// Its size: "wbSize".
    pub size: Bytes,
    /// Free share in percent: "wbFreePct".
    pub free_percent: f64,
    /// Every byte: `destaged_bytes` is "ssdBytesDrained", `discarded_bytes` "zeroBytesDrained".
    pub account: LogAccount,
    /// Reads of which all was in the buffer: "iopsWbRead".
    pub read_hits: u64,
    /// Reads of which a part was.
    pub read_partial_hits: u64,
    /// Reads of which nothing was.
    pub read_misses: u64,
    /// Whether the elevator is running.
    pub elevator_is_running: bool,
    /// Sweeps over a whole device finished: "plogElevCycles".
    pub elevator_cycles: u64,
    /// Runs destaged; `destaged_bytes` by these is "avgElevIoSize".
    pub elevator_runs: u64,
    /// Runs that failed and were put back.
    pub elevator_failures: u64,
    /// Moving average of the destage rate: "drainRateMovingAvg". None before there was any.
    pub drain_bytes_per_second: Option<f64>,
}

/// Counters of deduplication and compression. All zero while they are off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReductionCounters {
    /// Blocks that went through.
    pub blocks: u64,
    /// Reads of fingerprints that were not in memory: "numHashmapRd".
    pub hash_map_reads: u64,
    /// Reads of addresses that were not in memory: "numXMapRd".
    pub address_map_reads: u64,
    /// Metadata blocks written: "numDdpMetadataWrites".
    pub metadata_writes: u64,
    /// Bytes stored for the destaged ones, by the ratio told.
    pub stored_bytes: u64,
}

/// Counters of one queue in front of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Requests that the device answered.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time they waited, in this queue and in the device, together.
    pub queue_ns: u64,
    /// Time they took, together.
    pub service_ns: u64,
    /// Requests that wait now.
    pub waiting: u64,
}

impl QueueCounters {
    /// The queues, in the order of [`MemberCounters::queues`]: one per class, and the elevator's.
    pub const WORDS: [&str; LANES] = ["vm", "resync", "metadata", "namespace", "destage"];
}

/// Counters of one device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemberCounters {
    /// Its state, as faults set it.
    pub state: MemberState,
    /// Whether the elevator has given it up after errors.
    pub is_given_up: bool,
    /// Requests it answered: "ioCountDev".
    pub reads: u64,
    /// Likewise writes.
    pub writes: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub written_bytes: u64,
    /// Time its requests waited, in the queues of the group and in the device, together.
    pub queue_ns: u64,
    /// Time they took in the device, together: "latencyDevDAvg" is its mean.
    pub service_ns: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// Requests it has and has not answered.
    pub under_way: u32,
    /// By queue, in the order of [`QueueCounters::WORDS`].
    pub queues: [QueueCounters; LANES],
    /// The limit on resynchronisation, bytes per second, where the policy sets one.
    pub resync_limit_bytes_per_second: Option<u64>,
}
