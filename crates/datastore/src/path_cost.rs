//! What the way through the host costs a request beyond its modelled latency, and how that is made up for.
//!
//! A client sees a modelled latency plus the *way* (to the server and back, hand-overs between threads
//! included) plus the *wake-up* of the server by its timer. Both depend on whether the CPUs sleep: waking a
//! sleeping virtual CPU costs 15 to 20 us, at each hand-over. So one constant, calibrated on an idle host,
//! would answer some 40 us early as soon as a database keeps the CPUs awake.
//!
//! The server sees its own wake-ups, though. Calibration measures the way twice, with CPUs allowed to
//! sleep and with CPUs kept awake, each time together with the wake-up seen meanwhile; in between, the
//! way is taken to follow the wake-up linearly. Requests are answered before their deadline by the way
//! plus the usual wake-up (the *compensation*).

use serde::{Deserialize, Serialize};
use underlay_core::Nanos;

/// One calibrated point: what a request cost while wake-ups cost this much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PathPoint {
    /// Typical wake-up of the server.
    pub(crate) wake_ns: u64,
    /// What a client sees beyond the modelled latency, less the wake-up.
    pub(crate) way_ns: u64,
}

/// The calibrated line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PathLine {
    /// With CPUs kept awake.
    pub(crate) awake: PathPoint,
    /// With CPUs allowed to sleep.
    pub(crate) asleep: PathPoint,
}

/// Weight of a new wake-up in the running mean.
const WAKE_WEIGHT: f64 = 1.0 / 64.0;
/// A wake-up beyond this multiple of the calibrated one is an accident, not the usual case.
const WAKE_CLIP: f64 = 3.0;

/// The line with the usual wake-up of the moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathCost {
    line: PathLine,
    wake_ns: f64,
}

impl PathLine {
    /// What the way costs while wake-ups cost `wake_ns`; never outside the calibrated points.
    fn way_ns(&self, wake_ns: f64) -> f64 {
        let (low, high) = (self.awake, self.asleep);
        let span = high.wake_ns as f64 - low.wake_ns as f64;
        if span <= 0.0 {
            return low.way_ns.min(high.way_ns) as f64;
        }
        let position = ((wake_ns - low.wake_ns as f64) / span).clamp(0.0, 1.0);
        low.way_ns as f64 + position * (high.way_ns as f64 - low.way_ns as f64)
    }
}

impl PathCost {
    /// Starts from the calibrated cost with sleeping CPUs.
    pub(crate) fn calibrated(line: PathLine) -> PathCost {
        PathCost { line, wake_ns: line.asleep.wake_ns as f64 }
    }

    /// The server was to wake at some time and woke this much later.
    pub(crate) fn observe_wake(&mut self, late: Nanos) {
        let usual = self.line.asleep.wake_ns.max(self.line.awake.wake_ns) as f64;
        let clip = if usual > 0.0 { WAKE_CLIP * usual } else { f64::INFINITY };
        self.wake_ns += WAKE_WEIGHT * ((late.0 as f64).min(clip) - self.wake_ns);
    }

    /// The usual wake-up at the moment.
    pub(crate) fn wake(&self) -> Nanos {
        Nanos(self.wake_ns as u64)
    }

    /// What the way costs at the moment.
    pub(crate) fn way(&self) -> Nanos {
        Nanos(self.line.way_ns(self.wake_ns) as u64)
    }

    /// By how much requests are answered before their deadline.
    pub(crate) fn compensation(&self) -> Nanos {
        if self.line == PathLine::default() { Nanos::ZERO } else { self.way() + self.wake() }
    }
}

#[cfg(test)]
mod tests {
    use super::{PathCost, PathLine, PathPoint};
    use underlay_core::Nanos;

    const LINE: PathLine = PathLine {
        awake: PathPoint { wake_ns: 5_000, way_ns: 10_000 },
        asleep: PathPoint { wake_ns: 25_000, way_ns: 50_000 },
    };

    #[test]
    fn the_way_follows_the_wake_up_between_the_points() {
        let mut cost = PathCost::calibrated(LINE);
        assert_eq!(cost.compensation(), Nanos(75_000));
        (0..2_000).for_each(|_| cost.observe_wake(Nanos(15_000)));
        assert!(cost.way().0.abs_diff(30_000) < 100, "{:?}", cost.way());
        (0..2_000).for_each(|_| cost.observe_wake(Nanos(1_000)));
        assert_eq!(cost.way(), Nanos(10_000));
        assert!(cost.compensation().0.abs_diff(11_000) < 100);
    }

    #[test]
    fn accidents_do_not_count_in_full() {
        let mut cost = PathCost::calibrated(LINE);
        cost.observe_wake(Nanos::from_millis(5));
        assert!(cost.wake() < Nanos(27_000), "{:?}", cost.wake());
    }

    #[test]
    fn without_calibration_nothing_is_compensated_but_wake_ups_are_seen() {
        let mut cost = PathCost::default();
        (0..2_000).for_each(|_| cost.observe_wake(Nanos(20_000)));
        assert_eq!(cost.compensation(), Nanos::ZERO);
        assert!(cost.wake().0.abs_diff(20_000) < 100);
    }
}
