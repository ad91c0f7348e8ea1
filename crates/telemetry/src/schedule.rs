//! When to tick: whole multiples of an interval since the origin. Pure; the caller reads the clock.
//!
//! A tick that cannot be taken in its own interval is missed and counted. It is never taken late in
//! the name of its time, and no value is made up for it.

use std::time::Duration;

/// The next tick and how many were missed so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    interval_ns: u64,
    next: u64,
    missed: u64,
}

impl Schedule {
    /// The first tick is the first whole multiple of `interval` at or after `now`.
    ///
    /// # Panics
    /// If the interval is shorter than a millisecond: nothing here is meant for that.
    pub(crate) fn starting_at(interval: Duration, now: Duration) -> Schedule {
        assert!(interval >= Duration::from_millis(1), "an interval of {interval:?} is too short");
        let interval_ns = nanos(interval);
        Schedule { interval_ns, next: nanos(now).div_ceil(interval_ns), missed: 0 }
    }

    /// When the next tick is due, since the origin.
    pub(crate) fn due(&self) -> Duration {
        Duration::from_nanos(self.next.saturating_mul(self.interval_ns))
    }

    /// Notes that the tick was taken and that it is now `now`; returns the ticks missed since.
    pub(crate) fn taken(&mut self, now: Duration) -> u64 {
        let following = self.next + 1;
        // A tick due exactly now can still be taken.
        self.next = following.max(nanos(now).div_ceil(self.interval_ns));
        let missed = self.next - following;
        self.missed += missed;
        missed
    }

    /// Ticks missed since the start.
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Schedule;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn ticks_lie_on_whole_seconds_since_the_origin() {
        let mut schedule = Schedule::starting_at(SECOND, Duration::from_millis(2300));
        assert_eq!(schedule.due(), Duration::from_secs(3));
        assert_eq!(schedule.taken(Duration::from_millis(3002)), 0);
        assert_eq!(schedule.due(), Duration::from_secs(4));
    }

    #[test]
    fn a_late_return_misses_ticks_and_counts_them() {
        let mut schedule = Schedule::starting_at(SECOND, Duration::ZERO);
        assert_eq!(schedule.due(), Duration::ZERO);
        assert_eq!(schedule.taken(Duration::from_millis(3500)), 3);
        assert_eq!(schedule.due(), Duration::from_secs(4));
        assert_eq!(schedule.missed(), 3);
    }

    proptest! {
        #[test]
        fn every_due_time_is_either_taken_or_missed(
            interval_ms in 1u64..5_000,
            start_ms in 0u64..100_000,
            delays_ms in proptest::collection::vec(0u64..20_000, 1..50),
        ) {
            let interval = Duration::from_millis(interval_ms);
            let mut schedule = Schedule::starting_at(interval, Duration::from_millis(start_ms));
            let first = schedule.due();
            for delay in &delays_ms {
                let now = schedule.due() + Duration::from_millis(*delay);
                schedule.taken(now);
                prop_assert!(schedule.due() >= now, "a tick is never due in the past");
                prop_assert!(schedule.due() < now + interval + interval);
            }
            let intervals = (schedule.due() - first).as_nanos() / interval.as_nanos();
            prop_assert_eq!(intervals as u64, delays_ms.len() as u64 + schedule.missed());
        }
    }
}
