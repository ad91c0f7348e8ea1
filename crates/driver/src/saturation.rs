//! Whether the load generator itself was the bottleneck. Pure.
//!
//! A thread that is awake nearly all the time cannot take on more load, whether it is on a
//! processor or waiting for one: on a busy host a generator can be saturated at half a core.

use underlay_core::Nanos;

use crate::tick::DriveTick;

/// A thread that is awake for this share of the time leaves no room for more load.
pub const SATURATED_SHARE: f64 = 0.9;
/// A thread that comes this late at its p99 does not get the processor when it needs it.
pub const STARVED_LAG: Nanos = Nanos::from_millis(20);

/// What a span says about the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaturationVerdict {
    /// It was not in the way.
    Clear,
    /// A thread of it was awake nearly all the time: load generator saturated.
    Saturated,
    /// It had time to spare but did not get a processor in time: the host is overloaded.
    Starved,
}

/// The generator's own share of a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// The busiest thread's time on a processor, of the whole, `0.0..=1.0`.
    pub cpu_share: f64,
    /// The same thread's time on a processor or waiting for one, of the whole, `0.0..=1.0`.
    pub awake_share: f64,
    /// p99 of the dispatch lag.
    pub lag_p99: Nanos,
    /// What follows.
    pub verdict: SaturationVerdict,
}

impl Saturation {
    /// Judges a tick, or several that were appended to one.
    pub fn of(tick: &DriveTick) -> Saturation {
        let length = tick.length().0.max(1) as f64;
        let cpu_share = tick.busiest.cpu_ns as f64 / length;
        let awake_share = tick.busiest.awake_ns() as f64 / length;
        let lag_p99 = Nanos(tick.dispatch_lag.quantile(0.99).unwrap_or(0));
        let verdict = if awake_share >= SATURATED_SHARE {
            SaturationVerdict::Saturated
        } else if lag_p99 >= STARVED_LAG {
            SaturationVerdict::Starved
        } else {
            SaturationVerdict::Clear
        };
        Saturation { cpu_share, awake_share, lag_p99, verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::{Saturation, SaturationVerdict};
    use crate::tick::{DriveTick, ThreadLoad};
    use underlay_core::{Histogram, Nanos};

    fn verdict(cpu_ms: u64, queue_ms: u64, lag_ms: u64) -> SaturationVerdict {
        let mut dispatch_lag = Histogram::new();
        dispatch_lag.record_n(Nanos::from_millis(lag_ms).0, 100);
        let (cpu_ns, queue_ns) = (cpu_ms * 1_000_000, queue_ms * 1_000_000);
        let tick = DriveTick {
            end: Nanos::from_secs(1),
            busiest: ThreadLoad { cpu_ns, queue_ns },
            dispatch_lag,
            ..DriveTick::default()
        };
        Saturation::of(&tick).verdict
    }

    #[test]
    fn busy_threads_and_late_threads_are_told_apart() {
        assert_eq!(verdict(500, 100, 1), SaturationVerdict::Clear);
        assert_eq!(verdict(900, 0, 1), SaturationVerdict::Saturated);
        assert_eq!(verdict(500, 450, 5), SaturationVerdict::Saturated);
        assert_eq!(verdict(300, 100, 50), SaturationVerdict::Starved);
    }
}
