//! In which order, how strongly and for how long the resources of a causal check are changed. Pure: a function of what can be
//! changed, the time there is and a seed.
//!
//! Changed and unchanged periods alternate, and each changed period lies between two unchanged ones of the same
//! length, so that a steady drift of the host cancels. A block has each resource once, in an order of its own.

use underlay_core::{Nanos, Resource, RootSeed};

/// Service times while a resource is slowed, over those of the design. Large enough to be seen within a second, on a busy
/// host too; what it means for a small change is computed from it.
pub const SLOWER: f64 = 2.0;
/// The same while it is made faster: 20 %.
pub const FASTER: f64 = 1.0 / 1.2;
/// Blocks from which on an interval is of any use.
const BLOCKS_MIN: usize = 3;
/// Users need about this long until their sessions have felt a change, and buffers longer.
const PERIOD_MIN: Nanos = Nanos::from_millis(500);
/// Where there is time for these many blocks of longer periods, periods are longer: the kernel's write-back takes seconds to
/// react.
const BLOCKS_USUAL: usize = 6;
/// Longer periods would only mean fewer of them.
const PERIOD_MAX: Nanos = Nanos::from_secs(4);
/// Up to this length a short check has fewer blocks rather than shorter periods.
const PERIOD_USUAL: Nanos = Nanos::from_secs(1);
/// Part of a period that is left out, because users still react to the change.
const REACTION_SHARE: f64 = 0.25;

/// One period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// What is changed, by which factor of its service time; `None` = nothing.
    pub change: Option<(Resource, f64)>,
}

/// What is done, in order, with periods of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The periods; the first and the last one change nothing.
    pub periods: Vec<Period>,
    /// How long each lasts.
    pub length: Nanos,
    /// Begin of each that does not count.
    pub reaction: Nanos,
}

impl Schedule {
    /// As many blocks of `resources`, each changed by `factor`, as `time` has room for, three at least. Short times make the
    /// periods shorter, to half a second at least; below that the check takes longer than `time`.
    pub fn new(resources: &[Resource], factor: f64, time: Nanos, seed: RootSeed) -> Schedule {
        if resources.is_empty() {
            return Schedule { periods: Vec::new(), length: PERIOD_MIN, reaction: Nanos::ZERO };
        }
        let periods_of = |blocks: usize| 2 * resources.len() * blocks + 1;
        let for_blocks = |blocks: usize| Nanos(time.0 / periods_of(blocks) as u64);
        let length = match for_blocks(BLOCKS_USUAL) {
            enough if enough >= PERIOD_USUAL => enough.min(PERIOD_MAX),
            _ => for_blocks(BLOCKS_MIN).clamp(PERIOD_MIN, PERIOD_USUAL),
        };
        let blocks = (1..)
            .take_while(|blocks| length.0 * periods_of(*blocks) as u64 <= time.0)
            .last()
            .unwrap_or(0)
            .max(BLOCKS_MIN);
        let mut periods = Vec::with_capacity(periods_of(blocks));
        for block in 0..blocks as u64 {
            let mut order = resources.to_vec();
            order.sort_by_key(|resource| seed.child(resource.as_str(), block).0);
            for resource in order {
                periods.push(Period { change: None });
                periods.push(Period { change: Some((resource, factor)) });
            }
        }
        periods.push(Period { change: None });
        Schedule { periods, length, reaction: Nanos((length.0 as f64 * REACTION_SHARE) as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCKS_MIN, BLOCKS_USUAL, PERIOD_MAX, PERIOD_MIN, PERIOD_USUAL, Schedule};
    use underlay_core::{Nanos, Resource, RootSeed};

    fn check(resources: &[Resource], seconds: u64, seed: u64) {
        let time = Nanos::from_secs(seconds);
        let schedule = Schedule::new(resources, 2.0, time, RootSeed(seed));
        assert!((PERIOD_MIN..=PERIOD_MAX).contains(&schedule.length));
        assert!(schedule.reaction < schedule.length);
        let total = schedule.length.0 * schedule.periods.len() as u64;
        assert!(total <= time.0 || schedule.length == PERIOD_MIN, "{total}");
        let of = |resource| {
            let changes = schedule.periods.iter().filter_map(|period| period.change);
            changes.filter(|(changed, _)| *changed == resource).count()
        };
        assert!(of(resources[0]) >= BLOCKS_MIN);
        assert!(schedule.length <= PERIOD_USUAL || of(resources[0]) >= BLOCKS_USUAL);
        for resource in resources {
            assert_eq!(of(*resource), of(resources[0]));
        }
        for (position, period) in schedule.periods.iter().enumerate() {
            assert_eq!(period.change.is_some(), position % 2 == 1);
        }
    }

    #[test]
    fn every_resource_is_changed_equally_often_between_unchanged_periods() {
        for count in 1..=Resource::ALL.len() {
            for seconds in [10, 11, 19, 20, 33, 60, 120, 200, 600] {
                (0..5).for_each(|seed| check(&Resource::ALL[..count], seconds, seed));
            }
        }
    }

    #[test]
    fn the_order_follows_the_seed() {
        let order = |seed| Schedule::new(&Resource::ALL, 2.0, Nanos::from_secs(60), RootSeed(seed));
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert!(Schedule::new(&[], 2.0, Nanos::from_secs(60), RootSeed(1)).periods.is_empty());
    }
}
