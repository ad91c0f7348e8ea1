//! What a group has done: the counters of a performance service.
//!
//! Cumulative wherever a rate is derived, so that a reader chooses the interval and misses nothing between
//! two readings. The names follow those of the performance service of vSAN, whose users know them; each
//! field says its counterpart in quotes where there is one.

use super::buffered::{BLOCK_BYTES, BufferedBlocks};
use super::congestion;
use super::group::DiskGroup;
use super::log::LogAccount;
use super::member::Done;
use super::request::MemberState;
use super::spec::WriteBufferSpec;
use crate::request::Operation;
use crate::scheduler::{IoClass, LANES, Lane};
use underlay_core::{Bytes, Histogram, Nanos};

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

/// Whose latencies a histogram holds, see [`DiskGroup::take_latencies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyOf {
    /// Requests of a class to the group, from submission to answer.
    Class(IoClass),
    /// Requests to a device, those it had to wait for included; 0 = the cache device.
    Member(usize),
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

impl DiskGroup {
    /// Latencies of the answered reads or writes of a class, from submission to answer, ns. None for other
    /// operations.
    pub fn latencies(&self, class: IoClass, operation: Operation) -> Option<&Histogram> {
        self.latencies.of(class, operation)
    }

    /// Takes the latencies since the last call that are not empty: of the group's requests by class, of its devices.
    /// Resets what [`DiskGroup::latencies`] returns.
    pub fn take_latencies(&mut self) -> Vec<(LatencyOf, Operation, Histogram)> {
        let mut taken = Vec::new();
        let mut take = |of, operation, histogram: &mut Histogram| {
            if !histogram.is_empty() {
                // The memory stays, so that counting goes on without allocation.
                taken.push((of, operation, histogram.clone()));
                histogram.clear();
            }
        };
        for class in IoClass::ALL {
            let [read, write] = &mut self.latencies.0[class.index()];
            take(LatencyOf::Class(class), Operation::Read, read);
            take(LatencyOf::Class(class), Operation::Write, write);
        }
        for (index, member) in self.members.iter_mut().enumerate() {
            take(LatencyOf::Member(index), Operation::Read, &mut member.latencies.read);
            take(LatencyOf::Member(index), Operation::Write, &mut member.latencies.write);
        }
        taken
    }

    /// What the group has done up to `now`.
    pub fn counters(&mut self, now: Nanos) -> GroupCounters {
        self.run_until(now);
        let buffered: u64 = self.blocks.iter().map(BufferedBlocks::buffered_blocks).sum();
        let account = &self.log.account;
        debug_assert!(
            account.is_balanced() && account.buffered_bytes == buffered * BLOCK_BYTES,
            "every byte of the buffer is accounted for: {account:?}, {buffered} blocks"
        );
        let congestion = congestion::value(&self.spec.congestion, self.log.fill());
        let members = self.members.iter().enumerate().map(|(index, member)| {
            let mut counters = MemberCounters {
                is_given_up: self.elevator.is_given_up(index),
                under_way: member.under_way(),
                resync_limit_bytes_per_second: member.resync_limit(),
                ..MemberCounters::new(member.state, &member.done)
            };
            for lane in Lane::ALL {
                counters.queues[lane.index()].waiting = member.lanes.waiting(lane) as u64;
            }
            counters
        });
        GroupCounters {
            at: now,
            classes: self.classes,
            write_buffer: WriteBufferCounters {
                size: self.spec.write_buffer.usable.min(WriteBufferSpec::LOGICAL_LIMIT),
                free_percent: (1.0 - self.log.fill()).max(0.0) * 100.0,
                account: self.log.account,
                read_hits: self.buffer_reads.hits,
                read_partial_hits: self.buffer_reads.partial_hits,
                read_misses: self.buffer_reads.misses,
                elevator_is_running: self.elevator.is_running,
                elevator_cycles: self.elevator.cycles,
                elevator_runs: self.elevator.runs,
                elevator_failures: self.elevator.failures,
                drain_bytes_per_second: self.destage_rate.bytes_per_second(now),
            },
            reduction: self.reducer.as_ref().map(|reducer| reducer.counters).unwrap_or_default(),
            congestion,
            members: members.collect(),
        }
    }
}

impl MemberCounters {
    fn new(state: MemberState, done: &Done) -> MemberCounters {
        MemberCounters {
            state,
            is_given_up: false,
            reads: done.reads,
            writes: done.writes,
            read_bytes: done.read_bytes,
            written_bytes: done.written_bytes,
            queue_ns: done.lanes.iter().map(|lane| lane[2]).sum(),
            service_ns: done.lanes.iter().map(|lane| lane[3]).sum(),
            errors: done.errors,
            under_way: 0,
            queues: done.lanes.map(|[ios, bytes, queue_ns, service_ns]| QueueCounters {
                ios,
                bytes,
                queue_ns,
                service_ns,
                waiting: 0,
            }),
            resync_limit_bytes_per_second: None,
        }
    }
}

/// Latencies of the answered requests of a group, ns, from submission to answer.
#[derive(Clone, Debug)]
pub(crate) struct Latencies([[Histogram; 2]; 4]);

impl Latencies {
    pub(crate) fn new() -> Latencies {
        Latencies(std::array::from_fn(|_| std::array::from_fn(|_| Histogram::new())))
    }

    /// Reads and writes only.
    pub(crate) fn of(&self, class: IoClass, operation: Operation) -> Option<&Histogram> {
        match operation {
            Operation::Read => Some(&self.0[class.index()][0]),
            Operation::Write => Some(&self.0[class.index()][1]),
            Operation::Flush | Operation::Discard => None,
        }
    }

    pub(crate) fn record(&mut self, class: IoClass, operation: Operation, latency: Nanos) {
        let which = match operation {
            Operation::Read => 0,
            Operation::Write => 1,
            Operation::Flush | Operation::Discard => return,
        };
        self.0[class.index()][which].record(latency.0);
    }
}
