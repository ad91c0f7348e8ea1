//! The results of a driver when it is stopped. Values only.

use underlay_database::session::Commits;

use crate::activity::Span;
use crate::outage::Outage;
use crate::tick::DriveTick;

/// The share of the requested open-loop load that may be missing before it counts as not delivered.
pub const DELIVERY_TOLERANCE: f64 = 0.01;

/// Everything that a stopped driver knows.
#[derive(Clone, Debug)]
pub struct DriveSummary<B> {
    /// What happened since the last tick: with it, the ticks add up to the totals.
    pub last_tick: DriveTick,
    /// Everything since the start.
    pub totals: DriveTick,
    /// What the workload kept of all that was asked and answered.
    pub accounting: B,
    /// Outages in order.
    pub outages: Vec<Outage>,
    /// The longest time without any completion while there were active users.
    pub longest_silence: Option<Span>,
    /// Transactions given up whose commit may or may not have happened.
    pub commits_unknown: u64,
    /// Whether the requested open-loop load was delivered; none in a closed loop.
    pub delivery: Option<Delivery>,
    /// How the transactions of each type were committed: its name, and what the sessions do. Empty where that is not
    /// known, as of jobs.
    pub commits: Vec<(&'static str, Commits)>,
}

/// Requested against delivered open-loop load of a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    /// Arrivals that fell due.
    pub requested: u64,
    /// Transactions that were completed.
    pub completed: u64,
    /// Arrivals that were dropped because the queue was full.
    pub overflowed: u64,
    /// Arrivals that were still queued at the end.
    pub queued: u64,
    /// The part of the requested load that was not completed, `0.0..=1.0`.
    pub shortfall: f64,
    /// What follows.
    pub verdict: DeliveryVerdict,
}

/// Whether the requested load was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryVerdict {
    /// Within the tolerance.
    Delivered,
    /// Arrivals were dropped, or more than the tolerance was not completed: latencies of this span are
    /// those of another load.
    Missed,
}

impl Delivery {
    /// Judges a tick, or several that were appended to one; none when nothing was due.
    pub fn of(tick: &DriveTick) -> Option<Delivery> {
        let requested = tick.arrivals.due + tick.arrivals.overdue;
        if requested == 0 {
            return None;
        }
        let completed = tick.types.iter().map(|kind| kind.completed()).sum();
        let shortfall = requested.saturating_sub(completed) as f64 / requested as f64;
        // What is in progress at either end of the span is no shortfall.
        let in_progress = u64::from(tick.users.in_transaction);
        let missing = requested.saturating_sub(completed + in_progress) as f64;
        let missed =
            tick.arrivals.overflowed > 0 || missing > DELIVERY_TOLERANCE * requested as f64;
        Some(Delivery {
            requested,
            completed,
            overflowed: tick.arrivals.overflowed,
            queued: tick.arrivals.queued,
            shortfall,
            verdict: if missed { DeliveryVerdict::Missed } else { DeliveryVerdict::Delivered },
        })
    }

    /// What of a requested load was delivered, where it was not.
    pub fn shortcoming(&self) -> Option<String> {
        let Delivery { requested, completed, overflowed, queued, .. } = *self;
        let share = completed as f64 * 100.0 / requested.max(1) as f64;
        (self.verdict == DeliveryVerdict::Missed).then(|| {
            format!(
                "the requested rate was not delivered: {share:.1} % of the load was completed ({completed} of \
                 {requested} transactions; {queued} still waited at the end, {overflowed} were dropped); latencies \
                 are those of a lower load"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Delivery, DeliveryVerdict};
    use crate::tick::{ArrivalTick, DriveTick, TypeTick};

    fn tick(due: u64, overflowed: u64, committed: u64) -> DriveTick {
        let mut tick = DriveTick {
            arrivals: ArrivalTick { due, overflowed, ..ArrivalTick::default() },
            ..DriveTick::default()
        };
        tick.types.push(TypeTick { committed, ..TypeTick::default() });
        tick
    }

    #[test]
    fn overflow_and_shortfall_are_both_missed_load() {
        let verdict = |tick: DriveTick| Delivery::of(&tick).map(|delivery| delivery.verdict);
        assert_eq!(verdict(tick(1000, 0, 995)), Some(DeliveryVerdict::Delivered));
        assert_eq!(verdict(tick(1000, 0, 980)), Some(DeliveryVerdict::Missed));
        assert_eq!(verdict(tick(1000, 1, 999)), Some(DeliveryVerdict::Missed));
        assert_eq!(verdict(tick(0, 0, 10)), None);
        let mut behind = tick(1000, 0, 1000);
        behind.arrivals.overdue = 500;
        assert_eq!(verdict(behind), Some(DeliveryVerdict::Missed));
    }

    #[test]
    fn a_load_that_was_not_delivered_is_told_by_its_share() {
        let mut behind = tick(2000, 100, 1500);
        behind.arrivals.queued = 380;
        let said = Delivery::of(&behind).and_then(|delivery| delivery.shortcoming()).unwrap();
        assert!(said.contains("75.0 % of the load was completed (1500 of 2000"), "{said}");
        assert!(said.contains("380 still waited at the end, 100 were dropped"), "{said}");
        let delivered = Delivery::of(&tick(1000, 0, 995)).unwrap();
        assert_eq!(delivered.shortcoming(), None);
    }
}
