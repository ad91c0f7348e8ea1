//! A stage that serves one request at a time, in order of arrival: a command processor, a cable, an arm.
//!
//! A divided stage (see [`crate::DeviceProfile::divisor`]) is one part in `k` of a whole one. A request takes as long
//! in it as in the whole stage, but is charged `k` times that: the difference is the time of the other parts' owners.
//! Those would not send requests at the same moments. So a stage gives credit: a burst is served at the rate of the
//! whole stage, and only the debt beyond the credit is waited for. Without credit a request would wait `k` times as
//! long as in the whole stage behind one that came just before it.
//!
//! Not here: parallel units, of which a divided device has fewer instead (see [`crate::flash`]), and the drain of
//! a write buffer, whose backlog is bytes.

use underlay_core::Nanos;

/// Credit per further part, for stages of solid-state drives, networks and hosts: time for several transfers of 1 MiB.
pub(crate) const CREDIT: Nanos = Nanos::from_millis(4);

/// One stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    divisor: u64,
    credit: Nanos,
    /// When the last request has left.
    left: Nanos,
    /// When everything is paid for.
    paid: Nanos,
    /// What was paid in all.
    busy: Nanos,
}

impl Stage {
    /// An idle stage, one part in `divisor` of a whole one, with `credit` for each further part.
    pub(crate) fn new(divisor: u32, credit: Nanos) -> Stage {
        assert!(divisor > 0, "a stage is one part in 1 or more");
        let divisor = u64::from(divisor);
        let credit = Nanos(credit.0 * (divisor - 1));
        Stage { divisor, credit, left: Nanos::ZERO, paid: Nanos::ZERO, busy: Nanos::ZERO }
    }

    /// The earliest time at which a further request is served.
    #[inline]
    pub(crate) fn free(&self) -> Nanos {
        self.left.max(self.paid.saturating_sub(self.credit))
    }

    /// Serves a request that is there at `now` and takes `service`; returns when it begins.
    #[inline]
    pub(crate) fn serve(&mut self, now: Nanos, service: Nanos) -> Nanos {
        let start = now.max(self.free());
        debug_assert!(start >= self.left, "one request at a time");
        self.left = start + service;
        let charge = self.charge(service);
        self.paid = self.paid.max(start) + charge;
        self.busy += charge;
        start
    }

    /// For how long requests have occupied it: of a part, what they paid. In a burst on credit that is more than time passes.
    pub(crate) fn busy(&self) -> Nanos {
        self.busy
    }

    /// What a request of that length pays.
    #[inline]
    pub(crate) fn charge(&self, service: Nanos) -> Nanos {
        Nanos(service.0 * self.divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::Stage;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use underlay_core::Nanos;

    #[test]
    fn a_whole_stage_serves_one_after_the_other() {
        let mut stage = Stage::new(1, Nanos(1_000));
        assert_eq!(stage.serve(Nanos(5), Nanos(10)), Nanos(5));
        assert_eq!(stage.serve(Nanos(5), Nanos(10)), Nanos(15));
        assert_eq!(stage.free(), Nanos(25));
        assert_eq!(stage.serve(Nanos(40), Nanos(10)), Nanos(40));
    }

    #[test]
    fn a_divided_stage_serves_a_burst_as_fast_and_then_its_part_of_the_rate() {
        let mut stage = Stage::new(8, Nanos(20));
        let mut serve = || stage.serve(Nanos::ZERO, Nanos(10)).0;
        // The credit of 140 ns is used up by two requests of 80 ns.
        assert_eq!([serve(), serve(), serve(), serve()], [0, 10, 20, 100]);
        assert_eq!([serve(), serve()], [180, 260]);
        assert_eq!(stage.busy(), Nanos(6 * 80));
    }

    proptest! {
        #[test]
        fn no_more_is_served_than_the_part_and_its_credit(
            divisor in 1u32..200,
            credit in 0u64..10_000,
            requests in proptest::collection::vec((0u64..3_000, 0u64..2_000, any::<bool>()), 1..200),
        ) {
            let mut stage = Stage::new(divisor, Nanos(credit));
            let (mut now, mut busy, mut last_end) = (0, 0, 0);
            for (gap, service, at_once) in requests {
                now += if at_once { 0 } else { gap };
                let free = stage.free();
                let start = stage.serve(Nanos(now), Nanos(service)).0;
                prop_assert_eq!(start, free.0.max(now));
                prop_assert!(start >= last_end, "one request at a time");
                last_end = start + service;
                // Before a request begins, the others had their time, but for the credit.
                prop_assert!(busy * u64::from(divisor) <= start + u64::from(divisor - 1) * credit);
                busy += service;
            }
        }
    }
}
