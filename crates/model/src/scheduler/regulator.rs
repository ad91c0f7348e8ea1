//! The rate of resynchronisation under the policies that limit it: fixed, or following the latency of
//! virtual machines.
//!
//! Additive increase, multiplicative decrease: at the end of each interval the mean latency of virtual
//! machines in it decides. Intervals are looked at when something is sent, not by a timer: a device without
//! traffic has nothing to regulate.

use super::spec::Policy;
use crate::link::transfer_time;
use underlay_core::Nanos;

/// The rate limit of one device.
#[derive(Clone, Debug)]
pub(crate) struct Regulator {
    policy: Policy,
    bytes_per_second: u64,
    /// When the next piece of resynchronisation may go.
    next: Nanos,
    interval_end: Nanos,
    latency_sum_ns: u64,
    latencies: u64,
}

impl Regulator {
    /// None where the policy sets no rate.
    pub(crate) fn new(policy: Policy) -> Option<Regulator> {
        let (bytes_per_second, interval) = match policy {
            Policy::Adaptive { .. } | Policy::None => return None,
            Policy::StaticLimit { bytes_per_second } => (bytes_per_second, Nanos(u64::MAX)),
            Policy::LatencyWatermark { floor_bytes_per_second, interval, .. } => {
                (floor_bytes_per_second, interval)
            }
        };
        Some(Regulator {
            policy,
            bytes_per_second,
            next: Nanos::ZERO,
            interval_end: interval,
            latency_sum_ns: 0,
            latencies: 0,
        })
    }

    /// When the next piece of resynchronisation may go.
    pub(crate) fn next(&self) -> Nanos {
        self.next
    }

    /// The limit as it stands.
    pub(crate) fn bytes_per_second(&self) -> u64 {
        self.bytes_per_second
    }

    /// Books a piece of resynchronisation sent at `now`.
    pub(crate) fn sent(&mut self, now: Nanos, bytes: u64) {
        self.adapt(now);
        debug_assert!(self.bytes_per_second > 0, "a limit lets something pass");
        self.next = self.next.max(now) + transfer_time(bytes, self.bytes_per_second);
    }

    /// Notes how long an I/O of a virtual machine took.
    pub(crate) fn vm_latency(&mut self, now: Nanos, latency: Nanos) {
        self.adapt(now);
        self.latency_sum_ns += latency.0;
        self.latencies += 1;
    }

    fn adapt(&mut self, now: Nanos) {
        let Policy::LatencyWatermark {
            low,
            high,
            interval,
            step_bytes_per_second,
            floor_bytes_per_second,
        } = self.policy
        else {
            return;
        };
        if now < self.interval_end {
            return;
        }
        // Intervals in which nothing was sent say nothing: at most one step.
        let mean_ns = self.latency_sum_ns.checked_div(self.latencies);
        self.bytes_per_second = match mean_ns {
            Some(mean_ns) if mean_ns > high.0 => self.bytes_per_second / 2,
            Some(mean_ns) if mean_ns >= low.0 => self.bytes_per_second,
            _ => self.bytes_per_second.saturating_add(step_bytes_per_second),
        }
        .max(floor_bytes_per_second);
        debug_assert!(self.bytes_per_second >= floor_bytes_per_second, "the floor is kept");
        (self.latency_sum_ns, self.latencies) = (0, 0);
        self.interval_end = now + interval;
    }
}

#[cfg(test)]
mod tests {
    use super::Regulator;
    use crate::scheduler::Policy;
    use underlay_core::Nanos;

    #[test]
    fn a_static_limit_is_kept() {
        let mut regulator =
            Regulator::new(Policy::StaticLimit { bytes_per_second: 1 << 20 }).expect("a rate");
        for i in 0..16 {
            assert_eq!(regulator.next(), Nanos(i * 62_500_000));
            regulator.sent(regulator.next(), 64 << 10);
        }
        assert!(Regulator::new(Policy::None).is_none());
    }

    #[test]
    fn the_watermark_rate_halves_under_high_latency_and_recovers_in_steps() {
        let mut regulator = Regulator::new(Policy::LatencyWatermark {
            low: Nanos::from_millis(2),
            high: Nanos::from_millis(5),
            interval: Nanos::from_secs(1),
            step_bytes_per_second: 10 << 20,
            floor_bytes_per_second: 1 << 20,
        })
        .expect("a rate");
        let mut second = |latency_ms: u64, at: u64| {
            regulator.vm_latency(Nanos::from_millis(at * 1000 + 1), Nanos::from_millis(latency_ms));
            regulator.bytes_per_second() >> 20
        };
        // The latency of a second shows in the next one.
        let rates: Vec<_> = [1, 1, 1, 3, 9, 9, 9, 9, 9, 9, 1]
            .iter()
            .zip(0..)
            .map(|(ms, at)| second(*ms, at))
            .collect();
        assert_eq!(rates, [1, 11, 21, 31, 31, 15, 7, 3, 1, 1, 1]);
    }
}
