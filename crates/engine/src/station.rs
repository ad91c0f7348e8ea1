//! Accounting of a service station: arrivals, number present, and length of stay.
//!
//! Enough to check Little's law: the mean number present equals the rate of arrivals times the mean
//! stay.

use underlay_core::Nanos;

/// Counters of one station since they were last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Station {
    /// Visits that began.
    pub arrivals: u64,
    /// Visits that ended.
    pub departures: u64,
    /// Sum of the stays of the visits that ended, in nanoseconds, waiting included.
    pub stay_ns: u128,
    /// Integral of the number present over time, in nanoseconds.
    pub present_ns: u128,
    present: u64,
    since: Nanos,
}

impl Station {
    fn pass(&mut self, now: Nanos) {
        self.present_ns += u128::from(self.present) * u128::from((now - self.since).0);
        self.since = now;
    }

    /// A visit begins.
    pub(crate) fn arrive(&mut self, now: Nanos) {
        self.pass(now);
        self.arrivals += 1;
        self.present += 1;
    }

    /// A visit that began at `arrived` ends.
    pub(crate) fn depart(&mut self, now: Nanos, arrived: Nanos) {
        self.pass(now);
        self.departures += 1;
        self.present -= 1;
        self.stay_ns += u128::from((now - arrived).0);
    }

    /// Number present now.
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Mean stay of those that left; zero if none did.
    pub fn mean_stay(&self) -> Nanos {
        Nanos((self.stay_ns / u128::from(self.departures.max(1))) as u64)
    }

    /// Mean number present over `length`.
    pub fn mean_present(&self, length: Nanos) -> f64 {
        self.present_ns as f64 / (length.0.max(1)) as f64
    }

    /// What was counted by `now`; counting begins again, with those present.
    pub(crate) fn take(&mut self, now: Nanos) -> Station {
        self.pass(now);
        let taken = *self;
        *self = Station { present: self.present, since: now, ..Station::default() };
        taken
    }
}
