//! When open-loop transactions are due: a schedule of arrivals that nothing on the system under
//! test can delay. Pure: instants in, instants out.
//!
//! The schedule is a unit-rate process (a constant gap of 1, or exponential gaps with mean 1)
//! mapped to time through the inverse of the cumulated rate. A change of the rate changes the
//! mapping and never the process, so no arrival is lost or doubled by it, and the n-th arrival is
//! the same whatever the number of threads: each thread draws the whole process and takes every
//! n-th arrival of it.
//!
//! What it does not do: wait, queue, or know who serves an arrival.

use rand::RngExt;
use rand_pcg::Pcg64;
pub use underlay_core::Arrivals;
use underlay_core::{Nanos, RootSeed};

/// The part of a schedule that one thread serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Number of the thread, from 0.
    pub index: u32,
    /// Number of threads, at least 1.
    pub of: u32,
}

/// An endless, strictly determined sequence of due times.
#[derive(Clone, Debug)]
pub struct ArrivalSchedule {
    arrivals: Arrivals,
    share: Share,
    random: Pcg64,
    rate: RateCurve,
    /// Number and unit time of the next arrival of the whole process.
    number: u64,
    unit: f64,
}

impl ArrivalSchedule {
    /// A schedule that is at rest (rate 0) until [`ArrivalSchedule::set_rate`].
    pub fn new(arrivals: Arrivals, seed: RootSeed, share: Share) -> ArrivalSchedule {
        assert!(share.index < share.of, "thread {} of {} threads", share.index, share.of);
        let mut schedule = ArrivalSchedule {
            arrivals,
            share,
            random: seed.stream("driver.arrivals", 0),
            rate: RateCurve::default(),
            number: 0,
            unit: 0.0,
        };
        schedule.unit = schedule.gap();
        schedule.skip_others();
        schedule
    }

    /// From `at` on the rate goes in a straight line from what it is then to `rate_per_second`
    /// over the length `ramp`. All threads must be given the same `at`.
    pub fn set_rate(&mut self, at: Nanos, rate_per_second: f64, ramp: Nanos) {
        self.rate.turn(at, rate_per_second, ramp);
    }

    /// When the next arrival of this share is due; none while the rate leads nowhere.
    pub fn next_due(&self) -> Option<Nanos> {
        self.rate.instant_of(self.unit)
    }

    /// Takes the next arrival if it is due at `now`.
    pub fn take_due(&mut self, now: Nanos) -> Option<Nanos> {
        let due = self.next_due().filter(|due| *due <= now)?;
        self.advance();
        self.skip_others();
        Some(due)
    }

    /// How many of this share were due by `now` and are not taken yet, as the rate says it.
    pub fn overdue(&self, now: Nanos) -> u64 {
        let elapsed = now.saturating_sub(self.rate.turned).0 as f64;
        let behind = self.rate.cumulated_after(elapsed) - self.unit;
        (behind.max(0.0) / f64::from(self.share.of)) as u64
    }

    fn skip_others(&mut self) {
        while self.number % u64::from(self.share.of) != u64::from(self.share.index) {
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.number += 1;
        self.unit += self.gap();
    }

    fn gap(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Uniform => 1.0,
            // 1 - u lies in (0, 1], so the logarithm is finite.
            Arrivals::Poisson => -(1.0 - self.random.random::<f64>()).ln(),
        }
    }
}

/// The rate over time: what was cumulated up to the last turn, then a straight line, then constant.
#[derive(Clone, Debug, Default)]
struct RateCurve {
    /// When the last turn was, and how many arrivals were due by then.
    turned: Nanos,
    cumulated: f64,
    /// Rates in arrivals per nanosecond at the turn and after the ramp.
    from: f64,
    to: f64,
    /// Length of the ramp in nanoseconds.
    ramp: f64,
}

impl RateCurve {
    fn turn(&mut self, at: Nanos, rate_per_second: f64, ramp: Nanos) {
        // A turn cannot lie before the one that it follows.
        let at = at.max(self.turned);
        let elapsed = (at - self.turned).0 as f64;
        let (cumulated, from) = (self.cumulated_after(elapsed), self.rate_after(elapsed));
        *self = RateCurve {
            turned: at,
            cumulated,
            from,
            to: rate_per_second.max(0.0) / 1e9,
            ramp: ramp.0 as f64,
        };
    }

    fn rate_after(&self, elapsed: f64) -> f64 {
        if elapsed >= self.ramp {
            self.to
        } else {
            self.from + (self.to - self.from) * elapsed / self.ramp
        }
    }

    fn cumulated_after(&self, elapsed: f64) -> f64 {
        let ramped = elapsed.min(self.ramp);
        let in_ramp = ramped * (self.from + self.rate_after_ramped(ramped)) / 2.0;
        self.cumulated + in_ramp + (elapsed - ramped) * self.to
    }

    /// Like [`RateCurve::rate_after`], but the end of the ramp counts as its last point.
    fn rate_after_ramped(&self, elapsed: f64) -> f64 {
        if self.ramp == 0.0 {
            self.from
        } else {
            self.from + (self.to - self.from) * elapsed / self.ramp
        }
    }

    /// The instant by which `unit` arrivals are due, rounded up to the nanosecond.
    fn instant_of(&self, unit: f64) -> Option<Nanos> {
        let wanted = (unit - self.cumulated).max(0.0);
        let in_ramp = self.ramp * (self.from + self.to) / 2.0;
        let elapsed = if wanted <= in_ramp {
            self.elapsed_in_ramp(wanted)
        } else if self.to > 0.0 {
            self.ramp + (wanted - in_ramp) / self.to
        } else {
            return None;
        };
        Some(self.turned + Nanos(elapsed.ceil() as u64))
    }

    /// Solves from * t + slope * t^2 / 2 = wanted in the form that is stable for any slope.
    fn elapsed_in_ramp(&self, wanted: f64) -> f64 {
        if wanted <= 0.0 {
            return 0.0;
        }
        let slope = (self.to - self.from) / self.ramp;
        let root = (self.from * self.from + 2.0 * slope * wanted).max(0.0).sqrt();
        (2.0 * wanted / (self.from + root)).min(self.ramp)
    }
}

#[cfg(test)]
mod tests {
    use super::{ArrivalSchedule, Arrivals, Share};
    use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use underlay_core::{Nanos, RootSeed};

    const ALONE: Share = Share { index: 0, of: 1 };

    fn schedule(arrivals: Arrivals, share: Share) -> ArrivalSchedule {
        ArrivalSchedule::new(arrivals, RootSeed(7), share)
    }

    fn take_all(schedule: &mut ArrivalSchedule, until: Nanos) -> Vec<Nanos> {
        std::iter::from_fn(|| schedule.take_due(until)).collect()
    }

    fn kinds() -> impl Strategy<Value = Arrivals> {
        prop_oneof![Just(Arrivals::Poisson), Just(Arrivals::Uniform)]
    }

    #[test]
    fn at_rest_until_a_rate_is_set() {
        let mut schedule = schedule(Arrivals::Uniform, ALONE);
        assert_eq!(schedule.next_due(), None);
        schedule.set_rate(Nanos::from_secs(1), 100.0, Nanos::ZERO);
        assert_eq!(schedule.next_due(), Some(Nanos::from_millis(1_010)));
        schedule.set_rate(Nanos::from_secs(1), 0.0, Nanos::ZERO);
        assert_eq!(schedule.next_due(), None);
    }

    #[test]
    fn uniform_arrivals_are_evenly_spaced() {
        let mut schedule = schedule(Arrivals::Uniform, ALONE);
        schedule.set_rate(Nanos::ZERO, 500.0, Nanos::ZERO);
        let due = take_all(&mut schedule, Nanos::from_secs(2));
        assert_eq!(due.len(), 1000);
        assert!(due.windows(2).all(|pair| (pair[1] - pair[0]).0.abs_diff(2_000_000) <= 1));
    }

    #[test]
    fn what_is_not_taken_is_overdue() {
        let mut half = schedule(Arrivals::Uniform, Share { index: 1, of: 2 });
        assert_eq!(half.overdue(Nanos::from_secs(9)), 0);
        half.set_rate(Nanos::from_secs(1), 1000.0, Nanos::from_secs(2));
        assert_eq!(half.overdue(Nanos::from_millis(500)), 0);
        assert!((498..=500).contains(&half.overdue(Nanos::from_secs(3))));
        assert_eq!(take_all(&mut half, Nanos::from_secs(3)).len(), 500);
        assert_eq!(half.overdue(Nanos::from_secs(3)), 0);
    }

    #[test]
    fn a_ramp_delivers_half_of_the_full_rate() {
        let mut schedule = schedule(Arrivals::Uniform, ALONE);
        schedule.set_rate(Nanos::ZERO, 1000.0, Nanos::from_secs(10));
        assert_eq!(take_all(&mut schedule, Nanos::from_secs(10)).len(), 5000);
        assert_eq!(take_all(&mut schedule, Nanos::from_secs(11)).len(), 1000);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_variance_of_an_exponential() {
        let mut schedule = schedule(Arrivals::Poisson, ALONE);
        schedule.set_rate(Nanos::ZERO, 1000.0, Nanos::ZERO);
        let due = take_all(&mut schedule, Nanos::from_secs(100));
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]).0 as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "mean gap {mean} ns");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "deviation {}", variance.sqrt());
    }

    proptest! {
        #[test]
        fn threads_share_exactly_the_arrivals_of_one(
            kind in kinds(), threads in 1u32..9, rate in 1.0f64..5000.0, ramp_ms in 0u64..3000,
            turn_ms in 0u64..2000, second_rate in 0.0f64..5000.0,
        ) {
            let end = Nanos::from_secs(2);
            let turn = Nanos::from_millis(turn_ms);
            let run = |share: Share| {
                let mut schedule = schedule(kind, share);
                schedule.set_rate(Nanos::ZERO, rate, Nanos::from_millis(ramp_ms));
                let mut due = take_all(&mut schedule, turn);
                schedule.set_rate(turn, second_rate, Nanos::ZERO);
                due.extend(take_all(&mut schedule, end));
                due
            };
            let whole = run(ALONE);
            let mut parts: Vec<Nanos> =
                (0..threads).flat_map(|index| run(Share { index, of: threads })).collect();
            parts.sort_unstable();
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn uniform_arrivals_equal_the_integral_of_the_rate(
            rates in proptest::collection::vec((0.0f64..2000.0, 0u64..500, 1u64..1000), 1..6),
        ) {
            let mut schedule = schedule(Arrivals::Uniform, ALONE);
            let (mut at, mut expected, mut rate, mut taken) = (Nanos::ZERO, 0.0, 0.0, 0);
            for (next_rate, ramp_ms, length_ms) in rates {
                schedule.set_rate(at, next_rate, Nanos::from_millis(ramp_ms));
                // The trapezium rule is exact for straight lines, so this is an independent sum.
                let ramped = ramp_ms.min(length_ms) as f64 / 1e3;
                let reached = if ramp_ms == 0 { next_rate } else {
                    rate + (next_rate - rate) * ramped / (ramp_ms as f64 / 1e3)
                };
                expected += ramped * (rate + reached) / 2.0;
                expected += (length_ms as f64 / 1e3 - ramped) * next_rate;
                rate = reached;
                at += Nanos::from_millis(length_ms);
                taken += take_all(&mut schedule, at).len();
            }
            prop_assert!((taken as f64 - expected).abs() <= 1.001, "{} of {}", taken, expected);
        }

        #[test]
        fn due_times_never_go_back(kind in kinds(), rate in 1.0f64..1e6, ramp_ms in 0u64..100) {
            let mut schedule = schedule(kind, ALONE);
            schedule.set_rate(Nanos::from_secs(3), rate, Nanos::from_millis(ramp_ms));
            let mut last = Nanos::from_secs(3);
            for _ in 0..1000 {
                let due = schedule.next_due().unwrap();
                prop_assert!(due >= last);
                last = schedule.take_due(due).unwrap();
            }
        }
    }
}
