//! The highest rate of a design within a latency target, or whether one rate is within it.
//!
//! The search is the one of `underlay run`: [`RateSearch`] says what to simulate next. An undecided
//! window is continued; the result is simulated once more with other transactions, for twice as
//! long. Deliberately not here: which designs are looked at.

use underlay_core::{Nanos, RootSeed};
use underlay_study::DesignPlan;
use underlay_workload::judgement::{Judgement, Verdict};
use underlay_workload::objective::Objective;
use underlay_workload::rate_search::{Found, Purpose, RateSearch, SearchSpec, StepTaken};

use super::bottleneck::Bottleneck;
use super::mapping::Assumptions;
use super::observation::Observation;
use super::offered::{Offer, Offered};
use super::prediction::SinglePlan;

/// A window that cannot tell is measured this many times as long at most.
const LONGEST: u64 = 4;

/// What must be met, and how that is found out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// What must be met, by the main transactions.
    pub objective: Objective,
    /// Transactions in service at most, of each database; the rest waits.
    pub sessions: u32,
    /// Time that is not measured, at each rate.
    pub settle: Nanos,
    /// Time that is; what cannot be told is measured up to four times as long.
    pub measure: Nanos,
    /// The search ends when the lowest rate that fails is at most this share above the highest that
    /// holds: 0.05.
    pub resolution: f64,
    /// Transactions that caches are filled with at most, before each rate.
    pub cached_at_most: u64,
}

/// A rate that was simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct AtRate {
    /// Transactions of all types per second that were offered.
    pub rate_per_second: f64,
    /// What follows for the target.
    pub judgement: Judgement,
    /// Whether the target is met; where the longest window cannot tell, its point estimate decides.
    pub meets: bool,
    /// What was seen.
    pub observation: Observation,
    /// Where transactions spend their time.
    pub bottleneck: Option<Bottleneck>,
}

/// The result of a search for the highest rate of a design.
#[derive(Clone, Debug, PartialEq)]
pub struct HighestRate {
    /// The highest rate within the target.
    pub found: Found,
    /// What was seen at that rate; `None` where no rate holds.
    pub holding: Option<AtRate>,
    /// Where transactions spend their time at the lowest rate that fails, or else at the highest
    /// that holds.
    pub bottleneck: Option<Bottleneck>,
    /// What was simulated.
    pub steps: Vec<StepTaken>,
}

impl HighestRate {
    /// The highest rate that holds, per second; `None` where none does.
    pub fn rate(&self) -> Option<f64> {
        match self.found {
            Found::Rate { holds, .. } | Found::AtLeast { holds } => (holds > 0.0).then_some(holds),
            Found::Nothing { .. } => None,
        }
    }
}

/// One database on a design.
#[derive(Clone, Copy)]
pub struct Bed<'a> {
    /// The study.
    pub plan: SinglePlan<'a>,
    /// Its storage.
    pub design: &'a DesignPlan,
    /// What the study leaves open.
    pub assumed: &'a Assumptions,
    /// The seed of transactions and devices.
    pub seed: RootSeed,
}

impl Bed<'_> {
    /// The highest rate within the target, searched from `first_rate` on.
    ///
    /// # Errors
    /// What cannot be simulated.
    pub fn highest_rate(&self, target: &Target, first_rate: f64) -> Result<HighestRate, String> {
        let mut search = RateSearch::new(SearchSpec {
            objective: target.objective,
            first_rate,
            resolution: 1.0 + target.resolution,
            settle: target.settle,
            measure: target.measure,
        });
        let mut seen: Vec<(f64, AtRate)> = Vec::new();
        let mut open: Option<(f64, Purpose, Offered)> = None;
        while let Some(step) = search.next() {
            let (rate, purpose) = (step.rate_per_second, step.purpose);
            // A longer window of the same load is the same one, continued.
            let mut offered = match open.take() {
                Some((known, of, offered)) if known == rate && of == purpose => offered,
                _ => self.offer(target, rate, purpose)?,
            };
            offered.measure_until(step.measure);
            let taken = search.observe(step, offered.judgement(&target.objective));
            let holds = taken.holds.unwrap_or(false);
            seen.push((rate, at_rate(&offered, rate, taken.judgement, holds)));
            open = Some((rate, purpose, offered));
        }
        let found = search.found().unwrap_or(Found::AtLeast { holds: 0.0 });
        let at = |rate: f64| seen.iter().rev().find(|(known, _)| *known == rate).map(|it| &it.1);
        let (holds, fails) = match found {
            Found::Rate { holds, fails } => (at(holds), at(fails)),
            Found::AtLeast { holds } => (at(holds), None),
            Found::Nothing { fails } => (None, at(fails)),
        };
        Ok(HighestRate {
            found,
            bottleneck: fails.or(holds).and_then(|it| it.bottleneck),
            holding: holds.cloned(),
            steps: search.taken().to_vec(),
        })
    }

    /// Whether a rate is within the target.
    ///
    /// # Errors
    /// What cannot be simulated.
    pub fn at_rate(&self, target: &Target, rate: f64) -> Result<AtRate, String> {
        let mut offered = self.offer(target, rate, Purpose::Bracket)?;
        let mut longer = 1;
        loop {
            offered.measure_until(Nanos(target.measure.0 * longer));
            let judgement = offered.judgement(&target.objective);
            if judgement.verdict != Verdict::Undecided || longer >= LONGEST {
                let allowed = target.objective.late_share_allowed();
                let meets = match judgement.verdict {
                    Verdict::Met => true,
                    Verdict::Undecided => judgement.late_share <= allowed,
                    Verdict::Exceeded | Verdict::NotDelivered | Verdict::GeneratorSaturated => {
                        false
                    }
                };
                return Ok(at_rate(&offered, rate, judgement, meets));
            }
            longer *= 2;
        }
    }

    fn offer(&self, target: &Target, rate: f64, purpose: Purpose) -> Result<Offered, String> {
        let seed = match purpose {
            Purpose::Bracket | Purpose::Bisect => self.seed,
            Purpose::Confirm => self.seed.child("confirm", 0),
        };
        let offer = Offer {
            rate_per_second: rate,
            settle: target.settle,
            cached_at_most: target.cached_at_most,
        };
        self.plan.offer(self.design, target.sessions, &offer, self.assumed, seed)
    }
}

fn at_rate(offered: &Offered, rate: f64, judgement: Judgement, meets: bool) -> AtRate {
    AtRate {
        rate_per_second: rate,
        judgement,
        meets,
        observation: offered.observation(),
        bottleneck: offered.bottleneck(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Bed, Target};
    use crate::databases::tests::plan;
    use crate::databases::{Assumptions, SinglePlan};
    use underlay_core::{Nanos, RootSeed};
    use underlay_workload::rate_search::Found;

    const ASSUMED: Assumptions = Assumptions::defaults(2);

    fn target(slo: &str) -> Target {
        Target {
            objective: slo.parse().expect("a target"),
            sessions: 32,
            settle: Nanos::from_secs(1),
            measure: Nanos::from_secs(10),
            resolution: 0.1,
            cached_at_most: 10_000,
        }
    }

    fn with<T>(design: &str, of: impl FnOnce(&Bed<'_>) -> T) -> T {
        let plan = plan(design);
        let single = SinglePlan::new(&plan).expect("one database");
        let design = &plan.designs[0];
        of(&Bed { plan: single, design, assumed: &ASSUMED, seed: RootSeed(3) })
    }

    #[test]
    fn the_highest_rate_lies_between_rates_that_hold_and_fail() {
        let target = target("p99=20ms");
        let (highest, below, above) = with("kingston-sata-5200eco", |bed| {
            let highest = bed.highest_rate(&target, 50.0).expect("simulated");
            let Found::Rate { holds, fails } = highest.found else { panic!("{highest:?}") };
            assert!(holds < fails && fails <= 1.1 * holds, "{holds} {fails}");
            let at = |rate| bed.at_rate(&target, rate).expect("simulated");
            (highest, at(0.7 * holds), at(1.5 * fails))
        });
        assert!(below.meets && !above.meets, "{below:?} {above:?}");
        let holding = highest.holding.expect("a rate holds");
        assert!(holding.judgement.observed.is_some_and(|it| it <= Nanos::from_millis(21)));
        let (asked, done) = (holding.rate_per_second, holding.judgement.delivered_per_second);
        assert!((done / asked - 1.0).abs() < 0.05, "{done} of {asked}");
        assert!(highest.bottleneck.is_some());
    }

    #[test]
    fn a_target_below_the_latency_of_the_device_is_out_of_reach() {
        let highest = with("hdd", |bed| bed.highest_rate(&target("p50=10us"), 20.0));
        let highest = highest.expect("simulated");
        assert!(matches!(highest.found, Found::Nothing { .. }), "{:?}", highest.found);
        assert!(highest.rate().is_none() && highest.holding.is_none());
    }

    #[test]
    fn equal_seeds_give_equal_answers() {
        let target = target("p95=20ms");
        let at = || with("kingston-nvme", |bed| bed.at_rate(&target, 100.0).expect("simulated"));
        assert_eq!(at(), at());
    }
}
