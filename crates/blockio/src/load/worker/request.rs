//! The life of one request of a worker: drawn, started unless others are at its blocks, completed, verified, flushed.

use super::{OPERATIONS, Worker};
use crate::error::BlockIoError;
use crate::load::outcome::{Operation, Part};
use crate::load::slot::Slot;
use crate::load::spec::OnError;
use crate::verify::journal::Mark;
use std::io;
use std::time::Duration;
use underlay_workload::block::{Access, FlushPolicy, Pace};

/// After an error, so that a target that fails at once does not fail a million times a second.
const ERROR_PAUSE: Duration = Duration::from_millis(1);
/// Requests that are handed over at once. With all of a deep queue at once the target would be idle while they are
/// prepared, and answer them all at once again: 0.89 x fio's rate at queue depth 32; one by one costs a system call
/// each; 4 gives 1.00 x at 0.69 x fio's processor time (`io_cost`).
const BATCH: usize = 4;

impl Worker<'_> {
    /// Draws the next request for a place, and starts it unless others are at its blocks.
    pub(super) fn prepare(
        &mut self,
        slot: u32,
        intended: u64,
        now: u64,
    ) -> Result<(), BlockIoError> {
        let state = &mut self.slots[slot as usize];
        state.request = self.generators[state.thread as usize].next_request();
        state.operation = state.request.access.into();
        state.intended = intended;
        let started = self.try_start(slot, now);
        if self.schedule_lags() {
            self.lateness.record(intended, self.slots[slot as usize].started);
        }
        if !started {
            self.end.conflicts += 1;
            self.blocked.push(slot);
        } else if self.ring.unsubmitted() >= BATCH && self.journal.is_empty() {
            self.ring.hand_over()?;
        }
        Ok(())
    }

    pub(super) fn retry_blocked(&mut self, now: u64, stopping: bool) {
        let blocked = std::mem::take(&mut self.blocked);
        for slot in blocked {
            if stopping {
                self.free.push(slot);
            } else if !self.try_start(slot, now) {
                self.blocked.push(slot);
            }
        }
    }

    fn try_start(&mut self, slot: u32, now: u64) -> bool {
        let state = &mut self.slots[slot as usize];
        let request = state.request;
        let (offset, length) = (request.offset_bytes, request.length_bytes);
        state.started = now;
        match request.access {
            Access::Read => {
                if self.verifier.is_some_and(|verifier| !verifier.begin_read(offset, length)) {
                    return false;
                }
                self.ring.read(slot, offset, length);
            }
            Access::Write => {
                let through = self.durability[request.stream] == FlushPolicy::WriteThrough;
                match self.verifier {
                    None => {
                        // Different bytes for each write, wherever it goes.
                        let version = (self.part.worker as u64) << 40 ^ now;
                        let bytes = self.ring.buffer(slot, length);
                        self.shared.spec.content.fill(offset, version, bytes);
                    }
                    Some(verifier) => {
                        let Some(write) = verifier.begin_write(offset, length) else {
                            return false;
                        };
                        state.mark = write;
                        let thread = self.thread_numbers[state.thread as usize];
                        verifier.mark(offset, write, thread, self.ring.buffer(slot, length));
                        if verifier.journal().is_some() {
                            let mark = verifier.write_mark(Mark::Begun, offset, length, write);
                            self.journal.extend_from_slice(&mark);
                        }
                    }
                }
                // Making the bytes is not the target's time.
                state.started = self.shared.now();
                self.ring.write(slot, offset, length, through);
            }
        }
        true
    }

    /// Lateness is the generator's own only while there is room in the queue.
    fn schedule_lags(&self) -> bool {
        self.job.pace != Pace::CLOSED && !self.free.is_empty()
    }

    pub(super) fn complete(
        &mut self,
        slot: u32,
        result: i32,
        now: u64,
    ) -> Result<(), BlockIoError> {
        let state = self.slots[slot as usize];
        let request = state.request;
        let kind = request.stream * OPERATIONS + state.operation as usize;
        let moved = match state.operation {
            Operation::Flush => 0,
            Operation::Read | Operation::Write => request.length_bytes,
        };
        let succeeded = result >= 0 && result as u32 == moved;
        self.settle(&state, slot, succeeded);
        let counted = &mut self.kinds[kind];
        if let Some(gauge) = self.shared.spec.gauge {
            match state.operation {
                _ if !succeeded => gauge.count_error(),
                Operation::Read => gauge.count_read(u64::from(moved)),
                Operation::Write => gauge.count_write(u64::from(moved)),
                Operation::Flush => {}
            }
        }
        if succeeded {
            counted.completed += 1;
            counted.bytes += u64::from(moved);
            counted.response.record(now - state.intended.min(now));
            if self.split {
                counted.service.record(now - state.started.min(now));
            }
            if self.second.part == Part::Measure {
                counted.in_window += 1;
                counted.bytes_in_window += u64::from(moved);
            }
            if state.operation == Operation::Write && self.must_flush(&state) {
                self.flush(slot, now);
                return Ok(());
            }
        } else {
            // What is too short is an error that the system did not call one.
            let number = if result < 0 { -result } else { libc::EIO };
            *counted.errors.entry(number).or_default() += 1;
            if self.shared.spec.on_error == OnError::Stop {
                return Err(self.error(&state, result));
            }
            std::thread::sleep(ERROR_PAUSE);
        }
        if self.free.is_empty() {
            self.lateness.room_came(now);
        }
        self.free.push(slot);
        Ok(())
    }

    /// Tells the verifier and its journal what became of a request.
    fn settle(&mut self, state: &Slot, slot: u32, succeeded: bool) {
        let Some(verifier) = self.verifier else { return };
        let request = state.request;
        let (offset, length) = (request.offset_bytes, request.length_bytes);
        let mark = match state.operation {
            Operation::Read if succeeded => {
                let compared = verifier.end_read(offset, self.ring.buffer(slot, length));
                self.end.verified_units += compared;
                None
            }
            Operation::Read => {
                verifier.abandon_read(offset, length);
                None
            }
            Operation::Write => {
                verifier.end_write(offset, length, state.mark, succeeded);
                let kind = match self.durability[request.stream] {
                    FlushPolicy::WriteThrough => Mark::Durable,
                    FlushPolicy::Cached | FlushPolicy::FlushEvery(_) => Mark::Acknowledged,
                };
                succeeded.then(|| verifier.write_mark(kind, offset, length, state.mark))
            }
            Operation::Flush => succeeded.then(|| verifier.flush_mark(Mark::Flushed, state.mark)),
        };
        if let (Some(mark), Some(_)) = (mark, verifier.journal()) {
            self.journal.extend_from_slice(&mark);
        }
    }

    fn must_flush(&mut self, state: &Slot) -> bool {
        let stream = state.request.stream;
        let FlushPolicy::FlushEvery(every) = self.durability[stream] else { return false };
        let count = &mut self.unflushed[state.thread as usize * self.durability.len() + stream];
        *count += 1;
        if *count < every {
            return false;
        }
        *count = 0;
        true
    }

    fn flush(&mut self, slot: u32, now: u64) {
        let state = &mut self.slots[slot as usize];
        state.operation = Operation::Flush;
        state.intended = now;
        state.started = now;
        if let Some(verifier) = self.verifier {
            state.mark = verifier.next_flush();
            if verifier.journal().is_some() {
                let mark = verifier.flush_mark(Mark::FlushBegun, state.mark);
                self.journal.extend_from_slice(&mark);
            }
        }
        self.ring.flush(slot);
    }

    fn error(&self, state: &Slot, result: i32) -> BlockIoError {
        let path = self.target.path().to_path_buf();
        let request = state.request;
        if result >= 0 {
            let (offset, asked) = (request.offset_bytes, request.length_bytes);
            return BlockIoError::Short { path, offset, asked, moved: result as u32 };
        }
        let action = match state.operation {
            Operation::Read => "read",
            Operation::Write => "write to",
            Operation::Flush => "flush",
        };
        BlockIoError::Target { action, path, source: io::Error::from_raw_os_error(-result) }
    }
}
