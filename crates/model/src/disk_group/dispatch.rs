//! Pieces of operations on their way to the devices: sent immediately, or queued and sent later.

use super::flights::Event;
use super::group::{DiskGroup, Task};
use super::member::NEVER;
use super::piece::{Piece, Sent};
use super::request::GroupOutcome;
use crate::scheduler::{Lane, Policy};
use underlay_core::Nanos;

impl DiskGroup {
    /// Queues the next pieces of an operation. A piece for a lost device comes back at once.
    pub(super) fn enqueue(&mut self, op: u32, tasks: &[Task]) {
        self.operations.get(op).pieces += tasks.len() as u32;
        for task in tasks {
            self.enqueue_piece(op, task);
        }
    }

    /// The same for an operation that waits for one piece only.
    pub(super) fn enqueue_one(&mut self, op: u32, task: Task) {
        self.operations.get(op).pieces += 1;
        self.enqueue_piece(op, &task);
    }

    #[inline]
    fn enqueue_piece(&mut self, op: u32, task: &Task) {
        let member = &mut self.members[task.member];
        if member.is_lost() {
            return self.piece_is_lost(op, task.member);
        }
        self.sequence += 1;
        let slice = match (task.lane, self.spec.scheduler.policy) {
            (Lane::Resync, Policy::Adaptive { .. }) => self.spec.scheduler.slice.0 as u32,
            _ => u32::MAX,
        };
        let piece = Piece {
            op,
            operation: task.operation,
            offset_bytes: task.offset_bytes,
            length_bytes: task.length_bytes,
            quantum_max_bytes: slice,
            sequence: self.sequence,
            since: self.clock,
        };
        match member.send_at_once(self.clock, task.lane, &piece) {
            Some((at, sent)) => {
                self.expect(task.member, at, sent);
                self.set_wake(task.member, NEVER);
            }
            None => {
                member.lanes.push(task.lane, piece);
                self.pump(task.member);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn piece_is_lost(&mut self, op: u32, member: usize) {
        self.piece_done(op, GroupOutcome::DeviceLost { device: member }, Nanos::ZERO);
    }

    /// Sends what a device may be sent now.
    pub(super) fn pump(&mut self, member: usize) {
        while let Some((at, sent)) = self.members[member].send_next(self.clock) {
            self.expect(member, at, sent);
        }
        self.set_wake(member, self.members[member].wake());
    }

    /// When a device answers is known.
    #[inline]
    fn expect(&mut self, member: usize, at: Nanos, mut sent: Sent) {
        let op = self.operations.get(sent.op);
        op.pieces += u32::from(sent.more);
        op.is_delayed |= sent.since < self.clock;
        sent.early = op.head_start.min(at - self.clock);
        self.calendar.enter(at - sent.early, Event::Answer { member, sent });
    }

    pub(super) fn set_wake(&mut self, member: usize, at: Nanos) {
        if self.wakes[member] != at {
            self.wakes[member] = at;
            self.first_wake = self.wakes.iter().copied().fold(NEVER, Nanos::min);
        }
    }
}
