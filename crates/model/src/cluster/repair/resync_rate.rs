//! The rate of resynchronisation, for estimates of the time left. No rule depends on it.
//!
//! Only time with slices in flight counts. A rate measured across a pause would include the time in which nothing was to be
//! copied.

use underlay_core::Nanos;

/// From here on a span without slices is a pause.
const PAUSE: Nanos = Nanos::from_secs(1);
/// A pause longer than this says that what was measured before it is about something else.
const FORGOTTEN_AFTER: Nanos = Nanos::from_secs(10);
/// Over how long each measurement goes.
const WINDOW: Nanos = Nanos::from_secs(1);

/// A slowly moving average.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct ResyncRate {
    /// 0 = not known.
    bytes_per_second: f64,
    measured_since: Nanos,
    measured_bytes: u64,
    /// When a slice last began or ended.
    active: Nanos,
}

impl ResyncRate {
    /// A slice begins.
    pub(in crate::cluster) fn begin(&mut self, now: Nanos) {
        let pause = now.saturating_sub(self.active);
        if pause > PAUSE || self.active == Nanos::ZERO {
            self.measured_since = now;
            self.measured_bytes = 0;
        }
        if pause > FORGOTTEN_AFTER {
            self.bytes_per_second = 0.0;
        }
        self.active = now;
    }

    /// Bytes of a slice were copied.
    pub(in crate::cluster) fn count(&mut self, now: Nanos, bytes: u64) {
        self.active = now;
        self.measured_bytes += bytes;
        let span = now.saturating_sub(self.measured_since);
        if span < WINDOW {
            return;
        }
        debug_assert!(now >= self.active, "slices are counted in order of time");
        let rate = self.measured_bytes as f64 / span.as_secs_f64();
        let known = self.bytes_per_second > 0.0;
        self.bytes_per_second = if known { 0.7 * self.bytes_per_second + 0.3 * rate } else { rate };
        self.measured_since = now;
        self.measured_bytes = 0;
    }

    /// Bytes per second, when known.
    pub(in crate::cluster) fn known(&self) -> Option<f64> {
        (self.bytes_per_second > 0.0).then_some(self.bytes_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::ResyncRate;
    use underlay_core::Nanos;

    /// Slices of 64 KiB, one after the other.
    fn copy(rate: &mut ResyncRate, from: Nanos, slices: u64, each: Nanos) -> Nanos {
        let mut now = from;
        for _ in 0..slices {
            rate.begin(now);
            now += each;
            rate.count(now, 64 << 10);
        }
        now
    }

    #[test]
    fn a_pause_does_not_count_as_time_of_copying() {
        let mut rate = ResyncRate::default();
        let idle = Nanos::from_secs(3 * 3600);
        let now = copy(&mut rate, idle, 900, Nanos::from_millis(1));
        assert_eq!(rate.known(), None, "less than a second of copying says nothing yet");
        let now = copy(&mut rate, now, 200, Nanos::from_millis(1));
        let known = rate.known().expect("measured");
        assert!((known / 65_536_000.0 - 1.0).abs() < 0.01, "{known}");
        // A short pause leaves what is known as it is; after a long one the rate is measured again.
        let now = copy(&mut rate, now + Nanos::from_secs(5), 2, Nanos::from_millis(1));
        assert_eq!(rate.known(), Some(known));
        let now = copy(&mut rate, now + idle, 2, Nanos::from_millis(1));
        assert_eq!(rate.known(), None);
        copy(&mut rate, now, 1_100, Nanos::from_millis(2));
        let known = rate.known().expect("measured");
        assert!((known / 32_768_000.0 - 1.0).abs() < 0.01, "{known}");
    }

    #[test]
    fn slices_that_take_longer_than_a_pause_are_measured() {
        let mut rate = ResyncRate::default();
        copy(&mut rate, Nanos::from_secs(100), 5, Nanos::from_secs(4));
        assert_eq!(rate.known(), Some(16_384.0));
    }
}
