//! Answers of devices to pieces of operations, and of the group to requests whose last piece has
//! completed.

use super::group::DiskGroup;
use super::member::NEVER;
use super::operations::Work;
use super::piece::Sent;
use super::request::{GroupFinished, GroupIo, GroupOutcome};
use crate::request::Operation;
use underlay_core::Nanos;

impl DiskGroup {
    #[inline]
    pub(super) fn answer(&mut self, member: usize, sent: Sent) {
        if self.members[member].is_stuck() {
            return self.parked[member].push(sent);
        }
        self.members[member].came_back(self.clock, &sent);
        // What an operation waits for ends with the latest of its pieces.
        let until = self.clock + sent.early;
        let op = self.operations.get(sent.op);
        op.ends = op.ends.max(until);
        self.piece_done(sent.op, sent.outcome(member), sent.service);
        if self.members[member].lanes.is_empty() {
            self.set_wake(member, NEVER);
        } else {
            self.pump(member);
        }
    }

    #[inline]
    pub(super) fn piece_done(&mut self, index: u32, outcome: GroupOutcome, service: Nanos) {
        let op = self.operations.get(index);
        debug_assert!(op.pieces > 0, "each piece comes back once");
        op.pieces -= 1;
        if op.outcome == GroupOutcome::Ok {
            op.outcome = outcome;
        }
        if op.pieces > 0 {
            return;
        }
        op.service += service;
        let early = op.ends.saturating_sub(self.clock);
        (op.early, op.head_start) = (op.early + early, op.head_start.saturating_sub(early));
        op.ends = Nanos::ZERO;
        match op.work {
            Work::Request(io) => self.request_done(index, &io),
            Work::Destage(run) => self.destage_done(index, run),
        }
    }

    #[inline(always)]
    fn request_done(&mut self, op: u32, io: &GroupIo) {
        match io.operation {
            Operation::Read => self.read_done(op, io),
            Operation::Write => self.write_done(op, io),
            Operation::Discard => self.discard_done(op, io),
            Operation::Flush => self.finish(op),
        }
    }

    pub(super) fn finish_with(&mut self, op: u32, outcome: GroupOutcome) {
        self.operations.get(op).outcome = outcome;
        self.finish(op);
    }

    /// Answers a request.
    pub(super) fn finish(&mut self, index: u32) {
        let op = self.operations.get(index);
        let Work::Request(io) = &op.work else {
            unreachable!("a run of the elevator is not answered")
        };
        debug_assert!(self.clock >= op.arrived, "an answer comes after its request");
        let total = self.clock + op.early - op.arrived;
        let service = op.service.min(total);
        let queue = total - service;
        let bytes = u64::from(io.length_bytes);
        let class = &mut self.classes[io.class.index()];
        debug_assert!(class.outstanding > 0 && class.outstanding_bytes >= bytes, "answered once");
        class.outstanding -= 1;
        class.outstanding_bytes -= bytes;
        class.queue_ns += queue.0;
        class.service_ns += service.0;
        class.delayed += u64::from(op.is_delayed);
        class.errors += u64::from(op.outcome != GroupOutcome::Ok);
        match io.operation {
            Operation::Read => {
                (class.reads, class.read_bytes) = (class.reads + 1, class.read_bytes + bytes)
            }
            Operation::Write => {
                (class.writes, class.written_bytes) =
                    (class.writes + 1, class.written_bytes + bytes);
            }
            Operation::Flush | Operation::Discard => class.others += 1,
        }
        self.latencies.record(io.class, io.operation, total);
        self.finished.push(GroupFinished {
            id: io.id,
            at: self.clock + op.early,
            early: op.early,
            queue,
            service,
            outcome: op.outcome,
        });
        self.operations.close(index);
    }
}
