//! Time for the models: nanoseconds of CLOCK_MONOTONIC since the server started, divided by the time dilation.
//!
//! The only place where a model's time meets the host's: everything else in a server, from service times to
//! lateness, is in the design's own time.

use rustix::time::{ClockId, Timespec, clock_gettime};
use underlay_core::{Dilation, Nanos};

const SECOND_NS: u64 = 1_000_000_000;

/// The clock of one server.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin_ns: u64,
    dilation: Dilation,
}

impl Clock {
    /// Begins at zero, now.
    pub fn start(dilation: Dilation) -> Clock {
        Clock { origin_ns: monotonic_ns(), dilation }
    }

    /// Time since the start.
    pub fn now(self) -> Nanos {
        self.dilation.design(self.host_now())
    }

    /// Time of the host since the start, for what the host itself costs.
    pub(crate) fn host_now(self) -> Nanos {
        Nanos(monotonic_ns() - self.origin_ns)
    }

    /// How dilation translates between the models' time and the host's.
    pub fn dilation(self) -> Dilation {
        self.dilation
    }

    /// The moment `at` as CLOCK_MONOTONIC shows it.
    pub(crate) fn monotonic(self, at: Nanos) -> Timespec {
        let ns = self.origin_ns.saturating_add(self.dilation.wall(at).0);
        Timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as i64 }
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::{Clock, SECOND_NS, monotonic_ns};
    use proptest::prelude::{prop_assert_eq, proptest};
    use underlay_core::{Dilation, Nanos};

    proptest! {
        #[test]
        fn a_dilated_moment_is_reached_when_the_host_reaches_it(
            factor in 1..=Dilation::MAX,
            at in 0..1u64 << 50,
        ) {
            let dilation = Dilation::new(factor).expect("in range");
            let clock = Clock::start(dilation);
            let shown = clock.monotonic(Nanos(at));
            let wall_ns = shown.tv_sec as u64 * SECOND_NS + shown.tv_nsec as u64 - clock.origin_ns;
            prop_assert_eq!(wall_ns, at * u64::from(factor));
            prop_assert_eq!(dilation.design(Nanos(wall_ns)), Nanos(at));
        }
    }

    #[test]
    fn a_dilated_clock_is_slower_by_its_factor() {
        let dilation = Dilation::new(8).expect("in range");
        let clock = Clock::start(dilation);
        std::thread::sleep(std::time::Duration::from_millis(16));
        let (before, now, after) = (monotonic_ns(), clock.now(), monotonic_ns());
        let between = (before - clock.origin_ns) / 8..=(after - clock.origin_ns) / 8;
        assert!(between.contains(&now.0), "{now} is not in {between:?}");
    }
}
