//! Writes and discards: room in the buffer, the log on the cache device, the acknowledgement.
//!
//! Space in the buffer is shared like a device: virtual machines first, and a floor for resynchronisation. While
//! congestion makes virtual machines wait at their clients, the queue here looks empty, and resynchronisation
//! would take all the space. So from the point where congestion begins, resynchronisation may use only its credit.
//! That costs it nothing while it is alone: the elevator then works at full rate anyway, and virtual machines that
//! start find space. When they stop and leave the buffer congested, resynchronisation gets three quarters of the
//! destaged space, so congestion ends while resynchronisation continues.

use super::admission::Admission;
use super::buffered::BLOCK_BYTES;
use super::group::{DiskGroup, Task};
use super::operations::Stage;
use super::request::{GroupIo, GroupOutcome};
use crate::request::Operation;
use crate::scheduler::{IoClass, Lane, Policy};
use underlay_core::Nanos;

/// Virtual machines that have not written for so long have stopped.
const QUIET: Nanos = Nanos::from_millis(100);
/// Part of the room that destaging makes which resynchronisation may take while they are quiet.
const QUIET_SHARE: f64 = 0.75;

/// First block and number of blocks that a request touches.
pub(super) fn touched_blocks(io: &GroupIo) -> (u64, u64) {
    let first = io.offset_bytes / BLOCK_BYTES;
    let end = (io.offset_bytes + u64::from(io.length_bytes)).div_ceil(BLOCK_BYTES);
    (first, end.saturating_sub(first).max(1))
}

impl DiskGroup {
    pub(super) fn submit_write(&mut self, op: u32, io: &GroupIo) {
        if self.elevator.is_given_up(io.disk + 1) {
            return self.finish_with(op, GroupOutcome::DeviceError { device: io.disk + 1 });
        }
        let (_, blocks) = touched_blocks(io);
        let bytes = blocks * BLOCK_BYTES;
        if io.class == IoClass::Vm {
            self.last_vm_write = Some(self.clock);
            // The unit of the congestion delay is the time in which one such write is destaged.
            self.mean_write_bytes += (bytes as f64 - self.mean_write_bytes) / 64.0;
        }
        self.sequence += 1;
        let lane = Lane::of(io.class);
        // The usual case: no write waits, and there is space.
        if self.admission.is_empty() && lane != Lane::Resync && self.log.has_room(bytes) {
            self.admission.served(lane, bytes);
            let task = self.log_write(lane, bytes);
            return self.enqueue_one(op, task);
        }
        self.operations.get(op).stage = Stage::Admission;
        let write = Admission { op, bytes, sequence: self.sequence };
        self.admission.push(lane, write);
        self.pump_admission();
    }

    /// Lets writes into the buffer while there is room for them.
    pub(super) fn pump_admission(&mut self) {
        while !self.admission.is_empty() {
            let holds_resync_back = matches!(self.spec.scheduler.policy, Policy::Adaptive { .. })
                && self.log.used_bytes() >= self.limits.resync_held_fewest;
            let admission = &self.admission;
            let chosen = admission.choose(|lane, _| {
                lane != Lane::Resync || !holds_resync_back || admission.has_credit(lane)
            });
            // Whose turn it is keeps it until there is room, or small writes would starve large ones.
            let next = chosen.and_then(|lane| Some((lane, self.admission.front_mut(lane)?.bytes)));
            let Some((lane, bytes)) = next.filter(|(_, bytes)| self.log.has_room(*bytes)) else {
                return self.elevator_needed();
            };
            let write = self.admission.pop(lane).expect("a lane is chosen for its front");
            self.admission.served(lane, bytes);
            self.append(write);
        }
    }

    /// Destaging freed space that writes wait for.
    pub(super) fn room_was_made(&mut self, bytes: u64) {
        let is_quiet =
            self.last_vm_write.is_none_or(|last| self.clock.saturating_sub(last) >= QUIET);
        if is_quiet {
            self.admission.grant(Lane::Resync, bytes as f64 * QUIET_SHARE);
        }
        self.pump_admission();
    }

    /// Sends an admitted write to the log.
    fn append(&mut self, write: Admission) {
        let clock = self.clock;
        let op = self.operations.get(write.op);
        op.stage = Stage::Data;
        op.is_delayed |= op.arrived < clock;
        let lane = op.lane;
        let task = self.log_write(lane, write.bytes);
        self.enqueue_one(write.op, task);
    }

    /// The write of the log for which there is room.
    #[inline]
    fn log_write(&mut self, lane: Lane, bytes: u64) -> Task {
        let offset_bytes = self.log.reserve(bytes);
        let length_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Task { member: 0, lane, operation: Operation::Write, offset_bytes, length_bytes }
    }

    pub(super) fn write_done(&mut self, op: u32, io: &GroupIo) {
        let (first, blocks) = touched_blocks(io);
        let bytes = blocks * BLOCK_BYTES;
        let outcome = self.operations.get(op).outcome;
        let disk = io.disk + 1;
        // The capacity device may have failed while the write was on its way to the log: what is
        // buffered for it could never leave.
        let refused = match self.lost_device(io.disk) {
            Some(device) => GroupOutcome::DeviceLost { device },
            None if self.elevator.is_given_up(disk) => GroupOutcome::DeviceError { device: disk },
            None => outcome,
        };
        if refused != GroupOutcome::Ok {
            self.log.release(bytes);
            self.finish_with(op, refused);
            return self.pump_admission();
        }
        let replaced = self.blocks[io.disk].insert(first, blocks);
        self.log.admit(bytes, replaced * BLOCK_BYTES);
        self.finish(op);
        self.elevate(io.disk);
        if replaced > 0 && !self.admission.is_empty() {
            self.pump_admission();
        }
    }

    /// A discard is a record in the log.
    pub(super) fn submit_discard(&mut self, op: u32, io: &GroupIo) {
        let task = Task {
            member: 0,
            lane: Lane::of(io.class),
            operation: Operation::Discard,
            offset_bytes: io.offset_bytes,
            length_bytes: io.length_bytes,
        };
        self.enqueue_one(op, task);
    }

    pub(super) fn discard_done(&mut self, op: u32, io: &GroupIo) {
        if self.operations.get(op).outcome == GroupOutcome::Ok {
            // Only blocks that are covered completely can be dropped.
            let first = io.offset_bytes.div_ceil(BLOCK_BYTES);
            let end = (io.offset_bytes + u64::from(io.length_bytes)) / BLOCK_BYTES;
            if end > first {
                let discarded = self.blocks[io.disk].discard(first, end - first);
                self.log.discarded(discarded);
            }
        }
        self.finish(op);
        self.pump_admission();
    }
}
