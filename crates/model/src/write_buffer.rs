//! The write buffer of a device: early acknowledgement, bounded by a drain.
//!
//! A fluid queue in first-in first-out order. Each write is admitted when it fits and from then on drains
//! at a rate that depends on how sequential its stream is. Its share of the medium is put on a list of
//! program operations that the device works off as time passes, so that reads meet them: one for so
//! many bytes of a sequential stream, and for as long a drain of scattered writes.
//!
//! A program that has to wait for reads delays the drain: all times of the buffer are in the clock of
//! the drain, which lags behind. Completion times that were already reported are not revised. A read is
//! never served from the buffer.
//!
//! In a divided device (see [`crate::DeviceProfile::divisor`]) a write is on the medium as soon as ever, and occupies
//! the drain that many times as long.

use crate::link::transfer_time;
use crate::profile::WriteBuffer;
use crate::service_factor::ServiceFactor;
use crate::write_run::RunTracker;
use std::collections::VecDeque;
use underlay_core::{Bytes, Nanos};

/// A write that is not yet on the medium.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Where it is on the device, which says whose it is.
    offset: u64,
    /// When the rest of it begins to drain, as of the last change of pace.
    begins: Nanos,
    drained_at: Nanos,
    /// When the drain is free for the next write.
    free_at: Nanos,
    bytes: u64,
}

/// The state of one write buffer.
#[derive(Clone, Debug)]
pub(crate) struct WriteBufferState {
    buffer: WriteBuffer,
    divisor: u64,
    program_bytes: u64,
    runs: RunTracker,
    fresh_budget_bytes: u64,
    segments: VecDeque<Segment>,
    outstanding_bytes: u64,
    /// Admissions happen in order: none before the previous one.
    last_admission: Nanos,
    /// When everything admitted so far is on the medium.
    drained_at: Nanos,
    /// When the drain is free for the next write.
    drain_free: Nanos,
    /// What no program operation covers yet, in bytes of a sequential stream.
    unprogrammed_bytes: u64,
    /// How far the drain, in whose time everything above is, lags behind: what its programs waited for.
    lag: Nanos,
    /// When the last write got its room, in the time of the device.
    room_free: Nanos,
    /// Start times of program operations, ascending.
    programs: VecDeque<Nanos>,
    admitted_bytes_total: u64,
    /// Of the last length, which the next write nearly always has: its drain at the sequential and at the random rate, ns.
    drain_times: DrainTimes,
}

/// How long a write of this length drains, ns.
#[derive(Clone, Copy, Debug, Default)]
struct DrainTimes {
    bytes: u64,
    sequential: Nanos,
    random: Nanos,
}

/// What a write got from the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    /// When there was room for it.
    pub(crate) admitted: Nanos,
    /// When it is on the medium.
    pub(crate) drained: Nanos,
}

impl WriteBufferState {
    pub(crate) fn new(buffer: WriteBuffer, divisor: u32, program_bytes: u32) -> WriteBufferState {
        WriteBufferState {
            buffer,
            divisor: u64::from(divisor),
            program_bytes: u64::from(program_bytes),
            runs: RunTracker::default(),
            fresh_budget_bytes: buffer.fresh_budget.0,
            segments: VecDeque::with_capacity((buffer.capacity.0 / 4096).min(1 << 16) as usize),
            outstanding_bytes: 0,
            last_admission: Nanos::ZERO,
            drained_at: Nanos::ZERO,
            drain_free: Nanos::ZERO,
            unprogrammed_bytes: 0,
            lag: Nanos::ZERO,
            room_free: Nanos::ZERO,
            programs: VecDeque::with_capacity(1024),
            admitted_bytes_total: 0,
            drain_times: DrainTimes::default(),
        }
    }

    /// Admits a write that has arrived in the device at `received`.
    /// Under a `factor` it takes that much longer to drain; the program operations that reads meet stay as long as they are,
    /// so that slower writes are not slower reads as well.
    pub(crate) fn admit(
        &mut self,
        received: Nanos,
        offset: u64,
        bytes: u64,
        factor: ServiceFactor,
    ) -> Admission {
        let alone = self.drain_time(offset, bytes);
        let drain_time = factor.of(alone);
        let received = self.drain_clock(received).max(self.last_admission);
        let room = self.room_for(received, bytes);
        let drain_start = self.drain_free.max(room);
        let admitted = room + self.overflow_time(bytes, drain_time);
        let occupied = Nanos(drain_time.0 * self.divisor);
        debug_assert!(admitted >= received, "writes are admitted in order");
        debug_assert!(drain_start + drain_time >= self.drained_at, "writes drain in order");
        self.last_admission = admitted;
        self.drained_at = drain_start + drain_time;
        self.drain_free = drain_start + occupied;
        self.segments.push_back(Segment {
            offset,
            begins: drain_start,
            drained_at: self.drained_at,
            free_at: self.drain_free,
            bytes,
        });
        self.outstanding_bytes += bytes;
        self.admitted_bytes_total += bytes;
        self.schedule_programs(drain_start, occupied, alone);
        self.room_free = admitted + self.lag;
        Admission { admitted: self.room_free, drained: self.drained_at + self.lag }
    }

    /// The time of the drain at a moment.
    fn drain_clock(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.lag)
    }

    /// From `now` on, a write at an offset drains in `new / old` of the time that it had left, with `(old, new)` of
    /// `change`. Without this, what is in a full buffer would hide a change for as long as it takes to drain. Writes that
    /// wait for room already keep the time they were given, as does one that is on the medium of a divided device.
    pub(crate) fn repace(
        &mut self,
        now: Nanos,
        change: impl Fn(u64) -> (ServiceFactor, ServiceFactor),
    ) {
        let now = self.drain_clock(now);
        self.release_until(now);
        let ended_at = self.drain_free;
        // When the drain was to be free for the next write, and when it is now.
        let mut free: Option<(Nanos, Nanos)> = None;
        for segment in &mut self.segments {
            let (old, new) = change(segment.offset);
            let from = segment.begins.max(now);
            let left = |until: Nanos| new.instead_of(old, until - from);
            let begins = match free {
                Some((was, is)) if was == from => is,
                Some((_, is)) => from.max(is),
                None => from,
            };
            let was_free = segment.free_at;
            segment.drained_at = begins + left(segment.drained_at);
            segment.free_at = begins + left(was_free);
            segment.begins = begins;
            free = Some((was_free, segment.free_at));
            (self.drained_at, self.drain_free) = (segment.drained_at, segment.free_at);
        }
        let (before, after) =
            (ended_at.saturating_sub(now).0, self.drain_free.saturating_sub(now).0);
        if before == after || before == 0 {
            return;
        }
        for start in self.programs.iter_mut().filter(|start| **start > now) {
            let ahead = u128::from(start.0 - now.0) * u128::from(after) / u128::from(before);
            *start = now + Nanos(ahead as u64);
        }
    }

    /// The next program operation that is due at `now`, taken off the list, and since when.
    pub(crate) fn next_program(&mut self, now: Nanos) -> Option<Nanos> {
        let clock = self.drain_clock(now);
        self.programs.pop_front_if(|start| *start <= clock).map(|start| start + self.lag)
    }

    /// A program operation had to wait for so long: what follows is as late.
    pub(crate) fn delay(&mut self, waited: Nanos) {
        self.lag += waited;
    }

    /// When the last write got, or gets, its room: writes are admitted in order.
    pub(crate) fn room_free(&self) -> Nanos {
        self.room_free
    }

    /// When everything admitted so far is on the medium.
    pub(crate) fn drained_at(&self) -> Nanos {
        self.drained_at + self.lag
    }

    /// Bytes admitted and not yet on the medium at `now`.
    pub(crate) fn fill(&mut self, now: Nanos) -> Bytes {
        if self.room_free > now {
            return self.buffer.capacity; // Writes are waiting for room.
        }
        self.release_until(self.drain_clock(now));
        Bytes(self.outstanding_bytes.min(self.buffer.capacity.0))
    }

    /// Bytes that reached the medium up to `now`, since the start.
    pub(crate) fn drained_bytes(&mut self, now: Nanos) -> Bytes {
        let fill = self.fill(now);
        Bytes(self.admitted_bytes_total.saturating_sub(fill.0))
    }

    fn drain_time(&mut self, offset: u64, bytes: u64) -> Nanos {
        let sequential = self.runs.sequential_share(offset, bytes);
        let slow_share = if self.fresh_budget_bytes > 0 {
            let spent = (bytes as f64 * (1.0 - sequential)) as u64;
            self.fresh_budget_bytes = self.fresh_budget_bytes.saturating_sub(spent);
            0.0
        } else {
            1.0 - sequential
        };
        if self.drain_times.bytes != bytes {
            self.drain_times = DrainTimes {
                bytes,
                sequential: transfer_time(bytes, self.buffer.drain_sequential_bytes_per_second),
                random: transfer_time(bytes, self.buffer.drain_random_bytes_per_second),
            };
        }
        let DrainTimes { sequential, random, .. } = self.drain_times;
        if slow_share == 0.0 {
            return sequential;
        }
        let (fast, slow) = (sequential.0 as f64, random.0 as f64);
        nearest(fast + slow_share * (slow - fast))
    }

    /// The first moment from `from` on at which `bytes` more fit, or as much of them as ever can.
    fn room_for(&mut self, from: Nanos, bytes: u64) -> Nanos {
        self.release_until(from);
        let capacity = self.buffer.capacity.0;
        debug_assert!(
            !self.segments.is_empty() || self.outstanding_bytes == 0,
            "bytes belong to writes"
        );
        let needed = bytes.min(capacity);
        let mut room_at = from;
        while self.outstanding_bytes + needed > capacity {
            let Some(oldest) = self.segments.pop_front() else { break };
            debug_assert!(oldest.bytes <= self.outstanding_bytes, "what drains was outstanding");
            self.outstanding_bytes -= oldest.bytes;
            room_at = room_at.max(oldest.drained_at);
        }
        room_at
    }

    /// A write larger than the whole buffer flows through it: it is admitted when its last piece fits.
    fn overflow_time(&self, bytes: u64, drain_time: Nanos) -> Nanos {
        let overflow = bytes.saturating_sub(self.buffer.capacity.0);
        if overflow == 0 {
            return Nanos::ZERO;
        }
        let share = u128::from(drain_time.0) * u128::from(overflow) / u128::from(bytes.max(1));
        Nanos(share as u64)
    }

    fn release_until(&mut self, now: Nanos) {
        while let Some(segment) = self.segments.pop_front_if(|s| s.drained_at <= now) {
            debug_assert!(segment.bytes <= self.outstanding_bytes, "what drains was outstanding");
            self.outstanding_bytes -= segment.bytes;
        }
    }

    /// Spreads the program operations of one write, whose drain takes `alone` when nothing slows it, evenly over `duration`.
    fn schedule_programs(&mut self, start: Nanos, duration: Nanos, alone: Nanos) {
        let rate = u128::from(self.buffer.drain_sequential_bytes_per_second);
        self.unprogrammed_bytes += (u128::from(alone.0) * rate / 1_000_000_000) as u64;
        // A program operation stores more than a small write, so their bytes are collected first.
        if self.unprogrammed_bytes < self.program_bytes {
            return;
        }
        let count = self.unprogrammed_bytes / self.program_bytes;
        self.unprogrammed_bytes %= self.program_bytes;
        for i in 0..count {
            debug_assert!(
                self.programs.back().is_none_or(|last| *last <= start + duration),
                "ascending"
            );
            self.programs.push_back(start + Nanos(duration.0 * (i + 1) / count));
        }
    }
}

/// A time of less than 2^53 ns as a whole number, as `f64::round` does it, without a call of the mathematical library.
fn nearest(ns: f64) -> Nanos {
    let whole = ns as u64;
    Nanos(whole + u64::from(ns - whole as f64 >= 0.5))
}

#[cfg(test)]
mod tests {
    use super::{WriteBufferState, nearest};
    use crate::profile::WriteBuffer;
    use crate::service_factor::ServiceFactor;
    use underlay_core::{Bytes, Nanos};

    const ONE: ServiceFactor = ServiceFactor::ONE;

    fn state(fresh_budget: Bytes) -> WriteBufferState {
        divided_state(fresh_budget, 1)
    }

    fn divided_state(fresh_budget: Bytes, divisor: u32) -> WriteBufferState {
        let buffer = WriteBuffer {
            capacity: Bytes::from_mib(1),
            latency: Nanos::from_micros(25),
            latency_per_4k: Nanos::ZERO,
            drain_sequential_bytes_per_second: 1_000_000_000,
            drain_random_bytes_per_second: 100_000_000,
            fresh_budget,
        };
        WriteBufferState::new(buffer, divisor, 64 << 10)
    }

    /// A scattered address: far from every other one.
    fn scattered(i: u64) -> u64 {
        i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20 << 12
    }

    #[test]
    fn admits_at_once_while_there_is_room_and_then_at_the_drain_rate() {
        let mut buffer = state(Bytes::ZERO);
        let fits = (1 << 20) / 4096;
        for i in 0..fits {
            assert_eq!(buffer.admit(Nanos::ZERO, scattered(i), 4096, ONE).admitted, Nanos::ZERO);
        }
        assert_eq!(buffer.fill(Nanos::ZERO), Bytes::from_mib(1));
        let per_write = 40_960; // 4 KiB at 100 MB/s.
        for i in 0..100 {
            let admission = buffer.admit(Nanos::ZERO, scattered(fits + i), 4096, ONE);
            assert_eq!(admission.admitted, Nanos((i + 1) * per_write));
        }
    }

    #[test]
    fn a_changed_pace_keeps_the_order_and_is_undone_by_its_inverse() {
        let paces = [0.5, 1.0, 2.0, 7.3].map(|factor| ServiceFactor::new(factor).unwrap());
        for divisor in [1, 16] {
            let mut buffer = divided_state(Bytes::ZERO, divisor);
            let (mut now, mut pace) = (Nanos::ZERO, ONE);
            for i in 0..2000 {
                let draw = scattered(i) >> 12;
                now = (now + Nanos(draw % 90_000)).max(buffer.last_admission);
                buffer.admit(now, scattered(i), 4096 * (1 + draw % 5), pace);
                if draw.is_multiple_of(7) {
                    let new = paces[draw as usize / 7 % paces.len()];
                    let before = buffer.clone();
                    let left = |buffer: &WriteBufferState| (buffer.drain_free - now).0;
                    buffer.repace(now, |_| (pace, new));
                    let expected = left(&before) as f64 * new.value() / pace.value();
                    // But for rounding, and for the few writes that make room, or still occupy the drain.
                    let under_way = 3.0 * 205_000.0 * f64::from(divisor) * 7.3;
                    let is_close =
                        (left(&buffer) as f64 - expected).abs() < expected / 1000.0 + under_way;
                    assert!(expected == 0.0 || is_close, "{} for {expected}", left(&buffer));
                    let mut back = buffer.clone();
                    back.repace(now, |_| (new, pace));
                    assert!(
                        left(&back).abs_diff(left(&before)) < 256 * 16,
                        "rounding of each write"
                    );
                    pace = new;
                }
                assert!(buffer.fill(now) <= Bytes::from_mib(1));
                assert!(buffer.segments.iter().is_sorted_by_key(|segment| segment.drained_at));
                assert!(buffer.programs.iter().is_sorted());
            }
        }
    }

    #[test]
    fn a_fresh_device_is_fast_until_its_budget_is_spent() {
        let mut buffer = state(Bytes::from_mib(4));
        let total = 2048;
        for i in 0..total {
            buffer.admit(Nanos::ZERO, scattered(i), 4096, ONE);
        }
        // 4 MiB at 1 GB/s, then 4 MiB at 100 MB/s.
        let expected = 4.194304e6 + 41.94304e6;
        assert!((buffer.drained_at().0 as f64 / expected - 1.0).abs() < 0.001);
    }

    #[test]
    fn bytes_are_conserved() {
        let mut buffer = state(Bytes::ZERO);
        for i in 0..1000 {
            buffer.admit(Nanos(i * 10_000), scattered(i), 4096, ONE);
            let now = Nanos(i * 10_000 + 5_000);
            let fill = buffer.fill(now);
            if buffer.last_admission <= now {
                assert_eq!(fill + buffer.drained_bytes(now), Bytes((i + 1) * 4096));
            }
        }
        let end = buffer.drained_at();
        assert_eq!(buffer.fill(end), Bytes::ZERO);
        assert_eq!(buffer.drained_bytes(end), Bytes(1000 * 4096));
        // Ten times as many as of a sequential stream, which drains ten times as fast.
        let programs = std::iter::from_fn(|| buffer.next_program(end)).count() as u64;
        assert_eq!(programs, 10 * 1000 * 4096 / (64 << 10));
    }

    #[test]
    fn a_divided_drain_is_as_quick_for_one_write_and_slower_for_many() {
        let mut buffer = divided_state(Bytes::ZERO, 8);
        let per_write = 40_960; // 4 KiB at 100 MB/s.
        assert_eq!(buffer.admit(Nanos::ZERO, scattered(0), 4096, ONE).drained, Nanos(per_write));
        for i in 1..1000 {
            let drained = buffer.admit(Nanos::ZERO, scattered(i), 4096, ONE).drained;
            assert_eq!(drained, Nanos(i * 8 * per_write + per_write));
        }
        let filled = buffer.last_admission;
        assert_eq!(filled, Nanos((999 - 256) * 8 * per_write + per_write));
    }

    #[test]
    fn a_program_that_waits_delays_what_follows() {
        let mut buffer = state(Bytes::ZERO);
        let per_write = 40_960; // 4 KiB at 100 MB/s, and 40 KiB of a sequential stream.
        for i in 0..4 {
            buffer.admit(Nanos::ZERO, scattered(i), 4096, ONE);
        }
        // The second write makes the first program operation complete, the fourth the next one.
        assert_eq!(buffer.next_program(Nanos(2 * per_write - 1)), None);
        assert_eq!(buffer.next_program(Nanos(2 * per_write)), Some(Nanos(2 * per_write)));
        buffer.delay(Nanos(1_000));
        assert_eq!(buffer.next_program(Nanos(4 * per_write + 999)), None);
        let fourth = Nanos(4 * per_write + 1_000);
        assert_eq!(buffer.drained_at(), fourth);
        assert_eq!(buffer.next_program(fourth), Some(fourth));
        assert_eq!(buffer.fill(fourth), Bytes::ZERO);
        let drained = buffer.admit(fourth, scattered(4), 4096, ONE).drained;
        assert_eq!(drained, fourth + Nanos(per_write));
    }

    #[test]
    fn a_write_larger_than_the_buffer_flows_through() {
        let mut buffer = state(Bytes::ZERO);
        let admission = buffer.admit(Nanos::ZERO, 0, 4 << 20, ONE);
        assert_eq!(admission.admitted.0, admission.drained.0 / 4 * 3);
        assert_eq!(buffer.fill(admission.admitted), Bytes::from_mib(1));
    }

    #[test]
    fn times_are_rounded_as_the_library_does() {
        for ns in [0.0, 0.49999999999999994, 0.5, 1.5, 2.5, 7.499, 4503599627370495.5] {
            assert_eq!(nearest(ns), Nanos(f64::round(ns) as u64), "{ns}");
        }
    }
}
