//! Pieces of operations on their way to the devices: sent at once, or queued and sent when their turn has come.

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
            if self.members[task.member].is_lost() {
                let outcome = GroupOutcome::DeviceLost { device: task.member };
                self.piece_done(op, outcome, Nanos::ZERO);
                continue;
            }
            self.sequence += 1;
            let slice = match self.spec.scheduler.policy {
                Policy::Adaptive { .. } if task.lane == Lane::Resync => {
                    self.spec.scheduler.slice.0 as u32
                }
                _ => u32::MAX,
            };
            let piece = Piece {
                op,
                operation: task.operation,
                offset_bytes: task.offset_bytes,
                length_bytes: task.length_bytes,
                turn_max_bytes: slice,
                sequence: self.sequence,
                since: self.clock,
            };
            match self.members[task.member].send_at_once(self.clock, task.lane, &piece) {
                Some((at, sent)) => {
                    self.expect(task.member, at, sent);
                    self.set_wake(task.member, NEVER);
                }
                None => {
                    self.members[task.member].lanes.push(task.lane, piece);
                    self.pump(task.member);
                }
            }
        }
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
