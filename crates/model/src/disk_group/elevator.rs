//! The elevator: one sweep per capacity device, in the order of addresses, from the buffer to the device.
//!
//! It starts when the buffer is filled to a threshold and stops at a lower one, so that what is overwritten
//! soon never leaves. Between the start and the unthrottle threshold its rate grows from one run at a time to
//! the whole window. The share of a device that it may claim from other classes also grows with the fill. A
//! run is read from the cache device, reduced where the group reduces, and written to the capacity device. A
//! run that fails is put back and tried again. A device that fails many times in a row is no longer used: its
//! buffered data is dropped, and its requests fail until its state is set again.

use super::buffered::{BLOCK_BYTES, BufferedBlocks};
use super::flights::Event;
use super::group::{DiskGroup, Power, Task};
use super::member::NEVER;
use super::operations::{Op, Run, Stage, Work};
use super::request::GroupOutcome;
use crate::request::Operation;
use crate::scheduler::Lane;
use underlay_core::Nanos;

/// Pause after a failed run.
const RETRY_AFTER: Nanos = Nanos::from_millis(10);
/// Share of a device that the elevator may claim at its start, and when the buffer is full.
const FLOOR_AT_START: f64 = 0.10;
const FLOOR_WHEN_FULL: f64 = 0.45;

impl DiskGroup {
    /// Writes wait for space: the elevator must run, whatever the thresholds say.
    pub(super) fn elevator_needed(&mut self) {
        if self.elevator.is_given_up(0) {
            return self.refuse_waiting(GroupOutcome::DeviceError { device: 0 });
        }
        self.elevate_all();
    }

    /// Looks at a disk's sweep after its buffer has changed.
    pub(super) fn elevate(&mut self, disk: usize) {
        let was_running = self.elevator.is_running;
        self.switch();
        match (was_running, self.elevator.is_running) {
            (_, false) => {}
            (false, true) => self.elevate_all(),
            (true, true) => self.sweep(disk),
        }
    }

    pub(super) fn elevate_all(&mut self) {
        self.switch();
        if self.elevator.is_running {
            (0..self.blocks.len()).for_each(|disk| self.sweep(disk));
        }
    }

    /// Goes on with the sweeps that paused until now.
    pub(super) fn elevator_wakes(&mut self, now: Nanos) {
        if self.elevator.wake > now {
            return;
        }
        let later = self.elevator.sweeps.iter().map(|sweep| sweep.paused_until);
        self.elevator.wake = later.filter(|at| *at > now).min().unwrap_or(NEVER);
        self.elevate_all();
    }

    /// Everything that is buffered for devices that take it is on them, in no time: it was written long ago. Runs under way
    /// stay so.
    pub fn destage_all(&mut self, now: Nanos) {
        self.run_until(now);
        for disk in 0..self.blocks.len() {
            if self.elevator.is_given_up(disk + 1) || self.lost_device(disk).is_some() {
                continue;
            }
            while let Some(run) = self.take_run(disk) {
                self.blocks[disk].arrived(run.first_block, run.blocks);
                self.log.destaged(run.blocks);
                self.record_destaged(run);
            }
        }
        debug_assert!(self.buffer_is_exact(), "the buffer holds what its disks have in it");
        self.switch();
        self.pump_admission();
    }

    fn switch(&mut self) {
        let used = self.log.used_bytes();
        let needed = !self.admission.is_empty();
        let elevator = &mut self.elevator;
        if !elevator.is_running && (used >= self.limits.start_fewest || needed) {
            elevator.is_running = true;
            // The idle time before the start must not lower the measured rate.
            self.destage_rate.restart(self.clock);
        } else if elevator.is_running && used <= self.limits.stop_most && !needed {
            elevator.is_running = false;
        }
    }

    /// Takes runs of one disk until its window is full.
    fn sweep(&mut self, disk: usize) {
        let member = disk + 1;
        let blocked = self.power == Power::Off
            || self.elevator.is_given_up(0)
            || self.elevator.is_given_up(member)
            || self.lost_device(disk).is_some();
        if blocked {
            return;
        }
        let paused_until = self.elevator.sweeps[disk].paused_until;
        if paused_until > self.clock {
            self.elevator.wake = self.elevator.wake.min(paused_until);
            return;
        }
        let (window, floor) = self.claim();
        // Both devices need the floor: a run is read from the cache device and written to the
        // other.
        self.members[0].lanes.set_floor(Lane::Elevator, floor);
        self.members[member].lanes.set_floor(Lane::Elevator, floor);
        while self.elevator.sweeps[disk].under_way < window {
            let Some(run) = self.take_run(disk) else { return };
            self.elevator.sweeps[disk].under_way += 1;
            let op = self.operations.open(Op {
                head_start: Nanos::ZERO,
                early: Nanos::ZERO,
                ends: Nanos::ZERO,
                work: Work::Destage(run),
                lane: Lane::Elevator,
                stage: Stage::Fetch,
                pieces: 0,
                arrived: self.clock,
                service: Nanos::ZERO,
                is_delayed: false,
                outcome: GroupOutcome::Ok,
                rest: (0, 0),
            });
            let task = Task {
                member: 0,
                lane: Lane::Elevator,
                operation: Operation::Read,
                offset_bytes: self.log.address(disk, run.first_block),
                length_bytes: run.bytes(),
            };
            self.enqueue_one(op, task);
        }
    }

    /// Runs at once, and the share of a device, that the elevator claims at this fill.
    fn claim(&self) -> (u32, f64) {
        let thresholds = &self.spec.write_buffer;
        let most = thresholds.elevator_window;
        let fill = self.log.fill();
        let above_start = (fill - thresholds.elevator_start).max(0.0);
        let pressure = (above_start / (1.0 - thresholds.elevator_start).max(0.01)).min(1.0);
        let floor = FLOOR_AT_START + (FLOOR_WHEN_FULL - FLOOR_AT_START) * pressure;
        debug_assert!((FLOOR_AT_START..=FLOOR_WHEN_FULL).contains(&floor), "floor {floor}");
        // Writers wait already, or soon will: no reason to spare the devices.
        if !self.admission.is_empty() || fill >= thresholds.elevator_unthrottle {
            return (most, floor);
        }
        let ramp = (thresholds.elevator_unthrottle - thresholds.elevator_start).max(1e-6);
        let share = (above_start / ramp).min(1.0);
        (1 + (share * f64::from(most - 1)) as u32, floor)
    }

    fn take_run(&mut self, disk: usize) -> Option<Run> {
        let most = self.spec.write_buffer.elevator_run.0 / BLOCK_BYTES;
        let blocks = &mut self.blocks[disk];
        if blocks.dirty_blocks() == 0 {
            return None;
        }
        let sweep = &mut self.elevator.sweeps[disk];
        let taken = blocks.take_run(sweep.cursor, most).or_else(|| {
            // The sweep has reached the end of the device and starts again at its beginning.
            self.elevator.cycles += u64::from(sweep.cursor > 0);
            blocks.take_run(0, most)
        });
        let (first_block, count) = taken?;
        debug_assert!((1..=most).contains(&count), "a run has 1 to {most} blocks, not {count}");
        sweep.cursor = first_block + count;
        Some(Run { disk, first_block, blocks: count })
    }

    /// A stage of a destage is over.
    pub(super) fn destage_done(&mut self, op: u32, run: Run) {
        let (stage, outcome) = {
            let operation = self.operations.get(op);
            (operation.stage, operation.outcome)
        };
        if outcome != GroupOutcome::Ok {
            return self.run_failed(op, run, outcome);
        }
        match stage {
            Stage::Fetch => {
                // The cache device has delivered a run, so its earlier failures were not permanent.
                self.elevator.failures_in_a_row[0] = 0;
                match &mut self.reducer {
                    None => self.store(op, run, run.bytes(), 0),
                    Some(reducer) => {
                        let ready = reducer.compute(self.clock, run.blocks);
                        self.operations.get(op).stage = Stage::Compute;
                        self.calendar.enter(ready, Event::Computed { op });
                    }
                }
            }
            Stage::Maps => self.store_reduced(op, run),
            Stage::Store => self.run_arrived(op, run),
            Stage::Admission | Stage::Data | Stage::Compute => {
                unreachable!("a destage waits for pieces only in its own stages")
            }
        }
    }

    /// The group's processor is done with a run: its fingerprints are looked up.
    pub(super) fn computed(&mut self, op: u32) {
        let Work::Destage(run) = self.operations.get(op).work else {
            unreachable!("only destages compute")
        };
        let reducer = self.reducer.as_mut().expect("only a reducing group computes");
        let reads = reducer.fingerprint_reads(run.blocks);
        if reads == 0 {
            return self.store_reduced(op, run);
        }
        self.operations.get(op).stage = Stage::Maps;
        let tasks = self.metadata(run.disk, Operation::Read, reads);
        self.enqueue(op, &tasks);
    }

    fn store_reduced(&mut self, op: u32, run: Run) {
        let reducer = self.reducer.as_mut().expect("only a reducing group stores reduced blocks");
        let (bytes, metadata_writes) = reducer.store(run.blocks);
        self.store(op, run, bytes, metadata_writes);
    }

    fn store(&mut self, op: u32, run: Run, bytes: u32, metadata_writes: u32) {
        self.operations.get(op).stage = Stage::Store;
        let data = Task {
            member: run.disk + 1,
            lane: Lane::Elevator,
            operation: Operation::Write,
            offset_bytes: run.first_block * BLOCK_BYTES,
            length_bytes: bytes,
        };
        if metadata_writes == 0 {
            return match bytes {
                // Only duplicates: nothing has to be written.
                0 => self.run_arrived(op, run),
                _ => self.enqueue_one(op, data),
            };
        }
        let mut tasks = self.metadata(run.disk, Operation::Write, metadata_writes);
        if bytes > 0 {
            tasks.push(data);
        }
        self.enqueue(op, &tasks);
    }

    fn metadata(&mut self, disk: usize, operation: Operation, count: u32) -> Vec<Task> {
        let extent = self.members[disk + 1].profile().capacity.0;
        let reducer = self.reducer.as_mut().expect("only a reducing group has such metadata");
        let mut task = || Task {
            member: disk + 1,
            lane: Lane::Metadata,
            operation,
            offset_bytes: reducer.scatter(extent),
            length_bytes: 4096,
        };
        (0..count).map(|_| task()).collect()
    }

    fn run_arrived(&mut self, op: u32, run: Run) {
        self.operations.close(op);
        debug_assert!(
            self.elevator.sweeps[run.disk].under_way > 0,
            "a run that arrives was under way"
        );
        self.elevator.sweeps[run.disk].under_way -= 1;
        self.elevator.failures_in_a_row[run.disk + 1] = 0;
        self.elevator.runs += 1;
        self.blocks[run.disk].arrived(run.first_block, run.blocks);
        self.log.destaged(run.blocks);
        debug_assert!(self.buffer_is_exact(), "the buffer holds what its disks have in it");
        self.destage_rate.add(self.clock, u64::from(run.bytes()));
        self.record_destaged(run);
        self.elevate(run.disk);
        if !self.admission.is_empty() {
            self.room_was_made(u64::from(run.bytes()));
        }
    }

    fn run_failed(&mut self, op: u32, run: Run, outcome: GroupOutcome) {
        self.operations.close(op);
        let sweep = &mut self.elevator.sweeps[run.disk];
        debug_assert!(sweep.under_way > 0, "a run that fails was under way");
        sweep.under_way -= 1;
        sweep.paused_until = self.clock + RETRY_AFTER;
        self.elevator.failures += 1;
        let replaced = self.blocks[run.disk].stay(run.first_block, run.blocks);
        self.log.overwritten(replaced);
        let (GroupOutcome::DeviceError { device } | GroupOutcome::DeviceLost { device }) = outcome
        else {
            return;
        };
        self.elevator.failures_in_a_row[device] += 1;
        let disk = run.disk + 1;
        if self.members[disk].is_lost() || self.elevator.is_given_up(disk) {
            // Whichever device failed: what came back to the buffer can never leave it.
            self.drop_buffered(disk);
        } else {
            let until = self.elevator.sweeps[run.disk].paused_until;
            self.elevator.wake = self.elevator.wake.min(until);
        }
        self.pump_admission();
    }

    /// Whether the bytes in the buffer are the sum over the blocks of all disks.
    pub(super) fn buffer_is_exact(&self) -> bool {
        let blocks: u64 = self.blocks.iter().map(BufferedBlocks::buffered_blocks).sum();
        blocks * BLOCK_BYTES == self.log.account.buffered_bytes
    }

    /// Drops what is buffered for a capacity device that will not take it. What a failing cache device
    /// holds stays: it may come back.
    pub(super) fn drop_buffered(&mut self, member: usize) {
        if let Some(disk) = member.checked_sub(1) {
            let dropped = self.blocks[disk].forget_dirty();
            self.log.dropped(dropped);
            debug_assert!(self.buffer_is_exact(), "the buffer holds what its disks have in it");
        }
    }

    fn record_destaged(&mut self, run: Run) {
        let Some(destaged) = &mut self.destaged else { return };
        let (offset, length) = (run.first_block * BLOCK_BYTES, run.bytes());
        if let Some((disk, last_offset, last_length)) = destaged.last_mut()
            && *disk == run.disk
            && *last_offset + u64::from(*last_length) == offset
            && let Some(joined) = last_length.checked_add(length)
        {
            *last_length = joined;
            return;
        }
        destaged.push((run.disk, offset, length));
    }
}

impl Run {
    fn bytes(&self) -> u32 {
        // A run has at most 16 MiB.
        (self.blocks * BLOCK_BYTES) as u32
    }
}
