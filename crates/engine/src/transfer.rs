//! Moving many bytes from one place to another: large sequential reads with read-ahead, one or two
//! processes, large writes behind them, and a flush at the end.
//!
//! Only the accounting: the caller reads, computes and writes, asks for the next step, and reports
//! when it is done. All numbers are bytes from the beginning. Not here: files, names, what is
//! moved.

use crate::job_spec::CopyForm;
use underlay_core::Nanos;

/// What the kernel writes of a file at once.
const WRITE_BYTES: u32 = 512 << 10;
/// Writes in flight at most.
const WRITES_MAX: u32 = 32;
/// What the first process may be ahead of the second: a socket's buffer.
const PIPE_BYTES: u64 = 1 << 20;
const MEGABYTE: u64 = 1_000_000;

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferWork {
    /// Read that much from there.
    Read { offset: u64, length: u32 },
    /// Process `number` uses its processor for that much.
    Process { number: u8, length: u32, work: Nanos },
    /// Write that much to there.
    Write { offset: u64, length: u32 },
    /// Flush what was written.
    Flush,
    /// Nothing for so long: more may not be copied yet.
    Wait { length: Nanos },
}

/// A transfer.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    bytes: u64,
    form: CopyForm,
    /// Processor time per megabyte of each process.
    per_megabyte: [Nanos; 2],
    asked: u64,
    read: u64,
    /// By process.
    processed: [u64; 2],
    is_busy: [bool; 2],
    /// What the first process may copy.
    bytes_per_second: Option<u64>,
    is_waiting: bool,
    begun: u64,
    written: u64,
    writes: u32,
    is_flushing: bool,
}

impl Transfer {
    /// Of so many bytes, for so much processor time per megabyte in all. With `is_cached`, they are
    /// in memory and need not be read.
    pub(crate) fn new(bytes: u64, form: CopyForm, cpu: Nanos, is_cached: bool) -> Transfer {
        let per_megabyte = if form.is_piped {
            [Nanos(cpu.0 / 2), Nanos(cpu.0 - cpu.0 / 2)]
        } else {
            [cpu, Nanos::ZERO]
        };
        let there = if is_cached { bytes } else { 0 };
        Transfer {
            bytes,
            form,
            per_megabyte,
            asked: there,
            read: there,
            processed: [0; 2],
            is_busy: [false; 2],
            bytes_per_second: None,
            is_waiting: false,
            begun: 0,
            written: 0,
            writes: 0,
            is_flushing: false,
        }
    }

    /// The same, copying at most so much.
    pub(crate) fn limited(self, bytes_per_second: Option<u64>) -> Transfer {
        Transfer { bytes_per_second, ..self }
    }

    /// The next thing to do now, so long after the beginning; none until something is done.
    pub(crate) fn next(&mut self, elapsed: Nanos) -> Option<TransferWork> {
        self.next_read()
            .or_else(|| self.next_wait(elapsed))
            .or_else(|| self.next_process())
            .or_else(|| self.next_write())
    }

    /// A program that is limited sleeps after a piece that came too early.
    fn next_wait(&mut self, elapsed: Nanos) -> Option<TransferWork> {
        let rate = self.bytes_per_second?;
        let is_over = self.processed[0] == self.bytes;
        if is_over || self.is_waiting || self.is_busy[0] {
            return None;
        }
        let due = u128::from(self.processed[0]) * 1_000_000_000 / u128::from(rate);
        let length = Nanos(due as u64).saturating_sub(elapsed);
        self.is_waiting = length > Nanos::ZERO;
        self.is_waiting.then_some(TransferWork::Wait { length })
    }

    fn next_read(&mut self) -> Option<TransferWork> {
        let length = (self.bytes - self.asked).min(u64::from(self.form.read_bytes));
        let ahead = u64::from(self.form.read_bytes) * u64::from(self.form.reads_ahead);
        if length == 0 || self.asked + length > self.processed[0] + ahead {
            return None;
        }
        let offset = self.asked;
        self.asked += length;
        Some(TransferWork::Read { offset, length: length as u32 })
    }

    fn next_process(&mut self) -> Option<TransferWork> {
        loop {
            let ready = [self.read, self.processed[0]];
            let room = [self.processed[1] + PIPE_BYTES, self.written + self.form.dirty_max.0];
            let can = |number: usize| {
                let is_stopped = self.is_busy[number] || number == 0 && self.is_waiting;
                !is_stopped
                    && ready[number] > self.processed[number]
                    && room[number] > self.processed[number]
            };
            let number = (0..2).find(|number| can(*number))?;
            let waiting = ready[number] - self.processed[number];
            let length = waiting.min(u64::from(self.form.read_bytes));
            let work = Nanos(self.per_megabyte[number].0 * length / MEGABYTE);
            if work > Nanos::ZERO {
                self.is_busy[number] = true;
                let (number, length) = (number as u8, length as u32);
                return Some(TransferWork::Process { number, length, work });
            }
            self.processed[number] += length;
        }
    }

    fn next_write(&mut self) -> Option<TransferWork> {
        let is_end = self.processed[1] == self.bytes;
        let waiting = self.processed[1] - self.begun;
        if self.writes < WRITES_MAX && waiting > 0 && (is_end || waiting >= u64::from(WRITE_BYTES))
        {
            let (offset, length) = (self.begun, waiting.min(u64::from(WRITE_BYTES)));
            self.begun += length;
            self.writes += 1;
            return Some(TransferWork::Write { offset, length: length as u32 });
        }
        if self.written == self.bytes && !self.is_flushing {
            self.is_flushing = true;
            return Some(TransferWork::Flush);
        }
        None
    }

    /// A wait is over.
    pub(crate) fn waited(&mut self) {
        self.is_waiting = false;
    }

    /// A read is done.
    pub(crate) fn read(&mut self, length: u32) {
        self.read += u64::from(length);
    }

    /// A process is done with that much.
    pub(crate) fn processed(&mut self, number: u8, length: u32) {
        self.is_busy[usize::from(number)] = false;
        self.processed[usize::from(number)] += u64::from(length);
    }

    /// A write is done.
    pub(crate) fn written(&mut self, length: u32) {
        self.writes -= 1;
        self.written += u64::from(length);
    }

    /// Bytes that its program has written, wherever they are.
    pub(crate) fn told(&self) -> u64 {
        self.processed[1]
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Transfer, TransferWork, WRITES_MAX};
    use crate::job_spec::CopyForm;
    use underlay_core::{Bytes, Nanos};

    const FORM: CopyForm = CopyForm {
        read_bytes: 128 << 10,
        reads_ahead: 2,
        is_piped: true,
        dirty_max: Bytes::from_mib(32),
    };

    /// Does everything at once, in the order in which it is asked for, but writes only when nothing
    /// else is left to do; returns bytes read and written, and the most writes in flight.
    fn carry_out(transfer: &mut Transfer) -> (u64, u64, usize) {
        let (mut read, mut written, mut most, mut flushes) = (0, 0, 0, 0);
        let mut writing = Vec::new();
        loop {
            match transfer.next(Nanos::ZERO) {
                Some(TransferWork::Read { offset, length }) => {
                    assert_eq!(offset, read, "one after the other");
                    read += u64::from(length);
                    transfer.read(length);
                }
                Some(TransferWork::Process { number, length, work }) => {
                    assert!(work > Nanos::ZERO);
                    transfer.processed(number, length);
                }
                Some(TransferWork::Write { offset, length }) => {
                    assert_eq!(offset, written);
                    written += u64::from(length);
                    writing.push(length);
                    most = most.max(writing.len());
                }
                Some(TransferWork::Flush) => flushes += 1,
                Some(TransferWork::Wait { .. }) => panic!("nothing is limited"),
                None if writing.is_empty() => break,
                None => transfer.written(writing.remove(0)),
            }
        }
        assert_eq!(flushes, 1, "one flush, at the end");
        (read, written, most)
    }

    #[test]
    fn every_byte_is_read_and_written_once() {
        for bytes in [1, 100_000, 512 << 10, 77_777_777] {
            for is_piped in [false, true] {
                let form = CopyForm { is_piped, ..FORM };
                let mut transfer = Transfer::new(bytes, form, Nanos::from_micros(900), false);
                let (read, written, most) = carry_out(&mut transfer);
                assert_eq!((read, written, transfer.told()), (bytes, bytes, bytes));
                assert!(most <= WRITES_MAX as usize);
            }
        }
        let mut cached = Transfer::new(5 << 20, FORM, Nanos::ZERO, true);
        assert_eq!(carry_out(&mut cached).0, 0, "what is in memory is not read");
    }

    #[test]
    fn reads_are_ahead_of_the_reader_and_writers_wait_for_the_volume() {
        let mut transfer = Transfer::new(1 << 30, FORM, Nanos::from_micros(900), false);
        let mut next = || transfer.next(Nanos::ZERO);
        let first = [next(), next(), next()];
        let read = |offset| Some(TransferWork::Read { offset, length: 128 << 10 });
        assert_eq!(first, [read(0), read(128 << 10), None]);
        transfer.read(128 << 10);
        let process = transfer.next(Nanos::ZERO);
        assert!(matches!(process, Some(TransferWork::Process { number: 0, .. })));
        assert_eq!(transfer.next(Nanos::ZERO), None, "the reader has not gone on");
        transfer.processed(0, 128 << 10);
        assert_eq!(transfer.next(Nanos::ZERO), read(256 << 10));
        // Nothing is ever on the volume: the programs get as far as memory allows.
        let mut limited = Transfer::new(1 << 30, FORM, Nanos::from_micros(900), true);
        while let Some(work) = limited.next(Nanos::ZERO) {
            if let TransferWork::Process { number, length, .. } = work {
                limited.processed(number, length);
            }
        }
        assert_eq!(limited.told(), FORM.dirty_max.0);
    }
}
