//! Reads what a group has counted, at a moment.
//!
//! What is not here: the counting, which is done where things happen.

use super::buffered::{BLOCK_BYTES, BufferedBlocks};
use super::congestion;
use super::counters::{GroupCounters, MemberCounters, QueueCounters, WriteBufferCounters};
use super::group::DiskGroup;
use super::latencies::LatencyOf;
use super::member::Done;
use super::request::MemberState;
use super::spec::WriteBufferSpec;
use crate::request::Operation;
use crate::scheduler::{IoClass, Lane};
use underlay_core::{Histogram, Nanos};

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
