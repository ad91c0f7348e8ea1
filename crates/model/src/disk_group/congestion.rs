//! Congestion: a number from 0 to 255 that says how full the write buffer is, and the delay of writers
//! that follows from it.
//!
//! A fixed table of delays would fit one device and one number of writers. The unit of the delay is
//! therefore what the elevator takes for one write, as measured: N writers, each waiting on average
//! 2^(value / 32) - 1 units between writes, write as fast as the elevator destages when that factor
//! is N. So the value settles at 32 x log2(N + 1): 32 for one writer, 161 for 32, the end of the scale for 250;
//! beyond that writes also wait for room.

use super::spec::CongestionSpec;
use crate::service_time::unit_interval;
use rand_pcg::Pcg64;
use underlay_core::Nanos;

/// How often the pace of the elevator is measured.
const WINDOW: Nanos = Nanos::from_millis(20);
/// Weight of a new measurement.
const SMOOTHING: f64 = 0.25;

/// The value for a used share of the buffer.
pub(crate) fn value(spec: &CongestionSpec, fill: f64) -> u8 {
    if fill <= spec.low_fill {
        return 0;
    }
    debug_assert!(spec.low_fill < spec.high_fill, "congestion has a scale");
    let share = (fill - spec.low_fill) / (spec.high_fill - spec.low_fill);
    (share.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// The delay of one write.
pub(crate) fn delay(spec: &CongestionSpec, value: u8, unit: Nanos, random: &mut Pcg64) -> Nanos {
    if value == 0 {
        return Nanos::ZERO;
    }
    let factor = (f64::from(value) / 32.0).exp2() - 1.0;
    let delay_ns = 2.0 * unit_interval(random) * factor * unit.max(spec.unit_min).0 as f64;
    Nanos((delay_ns as u64).min(spec.delay_max.0))
}

/// A moving average of a rate of bytes.
#[derive(Clone, Debug)]
pub(crate) struct RateAverage {
    window_start: Nanos,
    window_bytes: u64,
    bytes_per_second: Option<f64>,
}

impl RateAverage {
    pub(crate) fn new() -> RateAverage {
        RateAverage { window_start: Nanos::ZERO, window_bytes: 0, bytes_per_second: None }
    }

    /// Resets: earlier measurements do not predict later ones.
    pub(crate) fn restart(&mut self, now: Nanos) {
        (self.window_start, self.window_bytes) = (now, 0);
    }

    /// Books bytes at `now`.
    pub(crate) fn add(&mut self, now: Nanos, bytes: u64) {
        self.window_bytes += bytes;
        let elapsed = now.saturating_sub(self.window_start);
        if elapsed >= WINDOW {
            let measured = self.window_bytes as f64 / elapsed.as_secs_f64();
            debug_assert!(measured.is_finite(), "a window has a length");
            let smooth = |old: f64| old + SMOOTHING * (measured - old);
            self.bytes_per_second = Some(self.bytes_per_second.map_or(measured, smooth));
            self.restart(now);
        }
    }

    /// Bytes per second, none before the first measurement. The rate falls with time while nothing is
    /// destaged.
    pub(crate) fn bytes_per_second(&self, now: Nanos) -> Option<f64> {
        let elapsed = now.saturating_sub(self.window_start);
        let average = self.bytes_per_second?;
        if elapsed.0 < 4 * WINDOW.0 {
            return Some(average);
        }
        Some(average.min(self.window_bytes.max(1) as f64 / elapsed.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::{RateAverage, delay, value};
    use crate::disk_group::CongestionSpec;
    use underlay_core::{Nanos, RootSeed};

    #[test]
    fn the_value_grows_evenly_between_the_limits() {
        let spec = CongestionSpec::DEFAULT;
        assert_eq!(
            [0.0, 0.6, 0.775, 0.95, 1.0].map(|fill| value(&spec, fill)),
            [0, 0, 128, 255, 255]
        );
    }

    #[test]
    fn the_delay_doubles_every_32_and_is_random_and_bounded() {
        let spec = CongestionSpec::DEFAULT;
        let mut random = RootSeed(1).stream("test", 0);
        let mut mean = |value: u8, unit| {
            let draws: Vec<_> =
                (0..20_000).map(|_| delay(&spec, value, unit, &mut random).0).collect();
            assert!(draws.iter().all(|ns| *ns <= spec.delay_max.0));
            draws.iter().sum::<u64>() as f64 / 20_000.0
        };
        assert_eq!(mean(0, Nanos::from_millis(1)), 0.0);
        for (congestion, expected_units) in [(32, 1.0), (64, 3.0), (160, 31.0)] {
            let units = mean(congestion, Nanos::from_micros(100)) / 100_000.0;
            assert!((units / expected_units - 1.0).abs() < 0.03, "{congestion}: {units}");
        }
        // The smallest step is small: no cliff where the delay begins.
        assert!(mean(1, Nanos::from_micros(100)) < 3_000.0);
    }

    #[test]
    fn a_pace_is_measured_and_forgotten_when_it_stops() {
        let mut pace = RateAverage::new();
        assert_eq!(pace.bytes_per_second(Nanos::from_secs(1)), None);
        for i in 1..=1000 {
            pace.add(Nanos::from_millis(i), 1000);
        }
        let running = pace.bytes_per_second(Nanos::from_millis(1001)).expect("measured");
        assert!((running / 1e6 - 1.0).abs() < 0.01, "{running}");
        assert!(pace.bytes_per_second(Nanos::from_secs(11)).expect("measured") < 2_000.0);
    }
}
