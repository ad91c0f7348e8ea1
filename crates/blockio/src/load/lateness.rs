//! How late an open loop's requests start by the generator's own fault.
//!
//! A request that waits for a place in the queue waits for the target, not for the generator, and one place that
//! becomes free ends that for one request of the backlog: its own lateness begins then. Nor is it the generator's fault
//! when a verified request waits for others at its blocks.

use underlay_core::Histogram;

/// The lateness of one worker.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// When the queue was last found to have room again, ns since the load began.
    room_since: u64,
    seen: Histogram,
}

impl Lateness {
    /// A full queue has room from `now` on.
    pub(super) fn room_came(&mut self, now: u64) {
        self.room_since = now;
    }

    /// A request that was meant for `intended` is started, or could be but for others at its blocks.
    pub(super) fn record(&mut self, intended: u64, started: u64) {
        self.seen.record(started.saturating_sub(intended.max(self.room_since)));
    }

    /// What was recorded since the last call.
    pub(super) fn take(&mut self) -> Histogram {
        std::mem::take(&mut self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::Lateness;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_backlog_of_a_stuck_target_is_not_the_generators() {
        let mut lateness = Lateness::default();
        // The target is stuck from 1 s to 4 s; then its answers are taken and 8 requests start at once.
        lateness.room_came(4 * SECOND);
        for request in 0..8 {
            lateness.record(SECOND + request * 1_000_000, 4 * SECOND + 2_000 * request);
        }
        // Late after room had come, and with room all the time.
        lateness.record(3 * SECOND, 4 * SECOND + 500_000);
        lateness.record(5 * SECOND, 5 * SECOND + 100_000);
        let seen = lateness.take();
        let max = seen.max().expect("recorded");
        assert!((495_000..=505_000).contains(&max), "{max}");
        assert!(seen.quantile(0.5).is_some_and(|p50| p50 < 20_000), "{seen:?}");
        assert!(lateness.take().is_empty());
    }
}
