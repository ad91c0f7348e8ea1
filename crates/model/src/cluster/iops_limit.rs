//! The I/O limit of a volume: normalised I/Os per second, evenly spaced.
//!
//! A request counts as one I/O per 32 KiB, rounded up (as the published system normalises). Requests over the limit wait
//! for their turn; none is refused. No credit is gained while idle.

use underlay_core::Nanos;

/// Size of one normalised I/O.
pub(super) const NORMALISED_BYTES: u32 = 32 << 10;

/// A limit and the schedule it has given out.
#[derive(Clone, Copy, Debug)]
pub(super) struct IopsLimit {
    per_second: u32,
    next_free: Nanos,
}

impl IopsLimit {
    /// A limit that lets the first request pass at once.
    pub(super) fn new(per_second: u32) -> IopsLimit {
        IopsLimit { per_second, next_free: Nanos::ZERO }
    }

    /// When a request of that many normalised I/Os that arrives at `now` may start.
    pub(super) fn admit(&mut self, now: Nanos, normalised: u32) -> Nanos {
        let start = self.next_free.max(now);
        debug_assert!(self.per_second > 0, "a limit lets something pass");
        let turn = u64::from(normalised) * 1_000_000_000 / u64::from(self.per_second);
        debug_assert!(start >= now, "a request starts after it arrived");
        self.next_free = start + Nanos(turn);
        start
    }
}

/// Normalised I/Os of a request.
pub(super) fn normalised(length_bytes: u32) -> u32 {
    length_bytes.div_ceil(NORMALISED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::{IopsLimit, normalised};
    use underlay_core::Nanos;

    #[test]
    fn large_requests_count_several_times() {
        assert_eq!(
            [normalised(4096), normalised(32 << 10), normalised((32 << 10) + 512)],
            [1, 1, 2]
        );
        let mut limit = IopsLimit::new(100);
        assert_eq!(limit.admit(Nanos(5), 1), Nanos(5));
        assert_eq!(limit.admit(Nanos(5), 2), Nanos(10_000_005));
        assert_eq!(limit.admit(Nanos(5), 1), Nanos(30_000_005));
        assert_eq!(limit.admit(Nanos::from_secs(1), 1), Nanos::from_secs(1));
    }
}
