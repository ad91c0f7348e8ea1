//! How many requests the kernel's write-back has in flight at most: its throttle on every block
//! device (`block/blk-wbt.c` of Linux 6, with its defaults).
//!
//! It looks at windows of 100 ms. Where reads are quick it allows more, up to three quarters of the
//! device's queue; where even the quickest read took long it allows less, down to one. Left out: a
//! read that has not ended at all for a window.

use underlay_core::Nanos;

/// Requests in flight at most when nothing is known of the device.
const DEPTH: u32 = 16;
/// The most: three quarters of the queue of a loop device, as which emulated designs are exported.
const MOST: u32 = 3 * 128 / 4;
/// A device whose quickest read takes longer is too busy: the default for those without platters.
const READ_LIMIT: Nanos = Nanos::from_millis(2);
const WINDOW: Nanos = Nanos::from_millis(100);
/// Writes that a window needs to tell something.
const LEAST_WRITES: u32 = 3;
/// Windows without anything after which the limit goes a step back to where it began.
const UNKNOWN_MAX: u32 = 5;
/// How long a sleep of a writer and a read count as just before.
const AWAITED_FOR: Nanos = Nanos::from_secs(1);
const READ_FOR: Nanos = Nanos::from_millis(100);

/// The throttle of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteThrottle {
    /// Below 0 where more is allowed than in the beginning, above where less is.
    step: i32,
    window_ends: Nanos,
    /// What ended in the window.
    quickest_read: Option<Nanos>,
    writes: u32,
    /// Windows in a row of which nothing is known.
    unknown: u32,
    /// Until when a process counts as waiting, and the device as reading.
    awaited_until: Nanos,
    read_until: Nanos,
}

impl WriteThrottle {
    /// A writer sleeps because too much is dirty.
    pub(crate) fn await_at(&mut self, now: Nanos) {
        self.awaited_until = now + AWAITED_FOR;
    }

    /// The device is asked to read.
    pub(crate) fn read_at(&mut self, now: Nanos) {
        self.read_until = now + READ_FOR;
    }

    /// It has read, so long after it was asked to.
    pub(crate) fn read_ended(&mut self, now: Nanos, latency: Nanos, in_flight: u32) {
        self.pass(now, in_flight);
        self.read_at(now);
        let quickest = self.quickest_read.map_or(latency, |quickest| quickest.min(latency));
        self.quickest_read = Some(quickest);
    }

    /// It has written.
    pub(crate) fn written(&mut self, now: Nanos, in_flight: u32) {
        self.pass(now, in_flight);
        self.writes += 1;
    }

    /// Requests in flight at most where so many are; `is_synchronous` of files that are
    /// synchronised.
    pub(crate) fn limit(&mut self, now: Nanos, in_flight: u32, is_synchronous: bool) -> u32 {
        self.pass(now, in_flight);
        let depth = self.depth();
        if is_synchronous || now < self.awaited_until {
            depth
        } else if depth <= 2 {
            if now < self.read_until { 1 } else { depth }
        } else if now < self.read_until {
            depth.div_ceil(4)
        } else {
            depth.div_ceil(2)
        }
    }

    fn depth(&self) -> u32 {
        let (more, less) = (self.step.min(0).unsigned_abs(), self.step.max(0).unsigned_abs());
        (1 + ((DEPTH - 1) << more >> less)).min(MOST)
    }

    /// Judges the windows that have ended.
    fn pass(&mut self, now: Nanos, in_flight: u32) {
        while now >= self.window_ends {
            let (read, writes) = (self.quickest_read.take(), std::mem::take(&mut self.writes));
            let is_busy = writes > 0 || in_flight > 0 || now < self.awaited_until;
            match read {
                Some(quickest) if writes >= LEAST_WRITES && quickest > READ_LIMIT => self.less(),
                Some(_) if writes >= LEAST_WRITES => self.more(),
                _ if is_busy => self.more(),
                _ if self.step == 0 => {
                    self.window_ends = now + WINDOW;
                    return;
                }
                _ => self.forget(),
            }
            self.window_ends += self.window();
        }
    }

    fn more(&mut self) {
        self.unknown = 0;
        if self.depth() < MOST {
            self.step -= 1;
        }
    }

    fn less(&mut self) {
        self.unknown = 0;
        if self.depth() > 1 {
            self.step = if self.step < 0 { 0 } else { self.step + 1 };
        }
    }

    fn forget(&mut self) {
        self.unknown += 1;
        if self.unknown >= UNKNOWN_MAX {
            self.step -= self.step.signum();
            self.unknown = 0;
        }
    }

    /// Where less is allowed, windows are shorter.
    fn window(&self) -> Nanos {
        let narrower = f64::from(1 + self.step.max(0)).sqrt();
        Nanos((WINDOW.0 as f64 / narrower) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::WriteThrottle;
    use underlay_core::Nanos;

    /// The limit alongside reads, when a process waits, and otherwise, after two seconds with writes
    /// and reads of such a latency.
    fn after(latency: Nanos) -> [u32; 3] {
        let mut throttle = WriteThrottle::default();
        let mut now = Nanos::ZERO;
        while now < Nanos::from_secs(2) {
            throttle.read_ended(now, latency, 8);
            throttle.written(now, 8);
            now += Nanos::from_millis(5);
        }
        let beside_reads = throttle.limit(now, 8, false);
        let synchronous = throttle.limit(now, 8, true);
        throttle.read_until = Nanos::ZERO;
        [beside_reads, synchronous, throttle.limit(now, 8, false)]
    }

    #[test]
    fn quick_reads_allow_more_and_slow_ones_less() {
        assert_eq!(WriteThrottle::default().depth(), 16);
        assert_eq!(after(Nanos::from_millis(1)), [24, 96, 48]);
        assert_eq!(after(Nanos::from_millis(3)), [1, 1, 1]);
    }

    #[test]
    fn writes_alone_allow_more_and_rest_takes_it_back() {
        let mut throttle = WriteThrottle::default();
        let at = Nanos::from_millis;
        (0..10).for_each(|window| throttle.written(at(window * 100), 1));
        assert_eq!(throttle.limit(at(1_000), 1, true), 96);
        // Three steps of five windows each.
        assert!(throttle.limit(at(1_900), 0, true) > 16);
        assert_eq!(throttle.limit(at(3_000), 0, true), 16);
    }

    #[test]
    fn a_writer_that_sleeps_lets_all_of_it_be_used() {
        let mut throttle = WriteThrottle::default();
        throttle.read_at(Nanos::ZERO);
        assert_eq!(throttle.limit(Nanos::ZERO, 0, false), 4);
        throttle.await_at(Nanos::ZERO);
        assert_eq!(throttle.limit(Nanos::ZERO, 0, false), 16);
    }
}
