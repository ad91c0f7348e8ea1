//! The search for the highest rate that meets a latency target. Pure: it says what to measure next, and
//! receives the results, on a host (`underlay::lab`) or in virtual time (`simulation`).
//!
//! 1. **Bracket.** From the first rate on, doubled while the target is met, halved while it is not, until one rate
//!    is known that meets it and one that does not.
//! 2. **Bisect** on the logarithm until the two are within the resolution.
//! 3. **Confirm.** The rate that was found is measured once more, for twice as long. If it does not hold, the
//!    bracket is closed below it and the search continues. So the final rate has met the target twice.
//!
//! An undecided window is measured again, longer, a few times; then the point estimate decides and the step says so. One
//! that fails while sessions are lost is measured again as it was, a few times: the database may have been away, which
//! says nothing about the rate. Nothing is searched below the rate at which a window has too few transactions for the
//! quantile. After a rate that was too high the load rests until the queues are empty, so that one step does not pay for
//! another. A saturated generator ends the search: nothing follows about the database above that rate.

use underlay_core::Nanos;

use crate::judgement::{Judgement, Verdict};
use crate::objective::Objective;

/// A window that cannot tell is doubled at most this often.
const EXTENSIONS_MAX: u32 = 2;
/// A window that fails while sessions are lost is repeated at most this often; then it counts.
const REPEATS_MAX: u32 = 2;
/// No search takes more steps.
const STEPS_MAX: usize = 40;
/// Rates beyond these are no rates that anybody asks for.
const RATE_RANGE: (f64, f64) = (0.01, 1e7);

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchSpec {
    /// What must be met.
    pub objective: Objective,
    /// The first rate, in transactions per second.
    pub first_rate: f64,
    /// The search ends when the lowest rate that fails is at most this factor above the highest that
    /// holds: 1.05 for 5 %. Above 1.
    pub resolution: f64,
    /// Unmeasured time at each rate.
    pub settle: Nanos,
    /// The measured time of a step.
    pub measure: Nanos,
}

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Find a rate on either side.
    Bracket,
    /// Halve the bracket.
    Bisect,
    /// See the answer hold again.
    Confirm,
}

impl Purpose {
    /// The word used in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Purpose::Bracket => "bracket",
            Purpose::Bisect => "bisect",
            Purpose::Confirm => "confirm",
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Offer this many transactions per second.
    pub rate_per_second: f64,
    /// What for.
    pub purpose: Purpose,
    /// Before it, rest until nothing is queued: the rate before was too high, or the database was away.
    pub rest_first: bool,
    /// Unmeasured time at this rate.
    pub settle: Nanos,
    /// Measured time.
    pub measure: Nanos,
}

/// A step with its outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTaken {
    /// What was done.
    pub step: Step,
    /// What was seen.
    pub judgement: Judgement,
    /// Whether it counts as holding; `None` when it is to be measured longer or again, or says nothing.
    pub holds: Option<bool>,
    /// Sessions were lost, so it does not count, and is to be measured again.
    pub is_repeated: bool,
    /// The windows could not tell, and the point estimate decided.
    pub by_point_estimate: bool,
}

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// The highest rate that held, seen twice, and the lowest that did not.
    Rate {
        /// Transactions per second.
        holds: f64,
        /// Transactions per second.
        fails: f64,
    },
    /// The generator was saturated, or the range of rates ended, before the target was exceeded.
    AtLeast {
        /// Transactions per second that held; 0 if none did.
        holds: f64,
    },
    /// No rate holds: the target is out of reach even at the lowest one tried.
    Nothing {
        /// The lowest rate that was tried.
        fails: f64,
    },
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct RateSearch {
    spec: SearchSpec,
    holds: Option<f64>,
    fails: Option<f64>,
    confirmed: Option<f64>,
    ended: Option<Found>,
    extensions: u32,
    repeats: u32,
    taken: Vec<StepTaken>,
}

impl RateSearch {
    /// A search that has not begun.
    ///
    /// # Panics
    /// If the first rate or the resolution is none.
    pub fn new(spec: SearchSpec) -> RateSearch {
        assert!(spec.first_rate > 0.0 && spec.first_rate.is_finite(), "a rate is above 0");
        assert!(spec.resolution > 1.0 && spec.resolution.is_finite(), "a resolution is above 1");
        RateSearch {
            spec,
            holds: None,
            fails: None,
            confirmed: None,
            ended: None,
            extensions: 0,
            repeats: 0,
            taken: Vec::new(),
        }
    }

    /// The steps so far.
    pub fn taken(&self) -> &[StepTaken] {
        &self.taken
    }

    /// What to measure next; none when the search is over.
    pub fn next(&self) -> Option<Step> {
        if self.found().is_some() {
            return None;
        }
        let (rate_per_second, purpose) = self.next_rate();
        let longer = match purpose {
            Purpose::Confirm => 2,
            Purpose::Bracket | Purpose::Bisect => 1,
        } << self.extensions;
        Some(Step {
            rate_per_second,
            purpose,
            rest_first: self
                .taken
                .last()
                .is_some_and(|last| last.holds == Some(false) || last.is_repeated),
            settle: self.spec.settle,
            measure: Nanos(self.spec.measure.0 * longer),
        })
    }

    /// What the search came to, once it is over.
    pub fn found(&self) -> Option<Found> {
        if self.ended.is_some() {
            return self.ended;
        }
        match (self.holds, self.fails) {
            (Some(holds), Some(fails))
                if self.is_narrow(holds, fails) && self.confirmed == Some(holds) =>
            {
                Some(Found::Rate { holds, fails })
            }
            (Some(holds), None) if holds * 2.0 > RATE_RANGE.1 => Some(Found::AtLeast { holds }),
            (None, Some(fails)) if fails / 2.0 < self.lowest_rate() => {
                Some(Found::Nothing { fails })
            }
            _ => None,
        }
    }

    /// Takes in what was seen of `step`, which [`RateSearch::next`] gave.
    pub fn observe(&mut self, step: Step, judgement: Judgement) -> StepTaken {
        let is_repeated = judgement.connections_lost
            && matches!(judgement.verdict, Verdict::Exceeded | Verdict::NotDelivered)
            && self.repeats < REPEATS_MAX;
        let by_point_estimate =
            judgement.verdict == Verdict::Undecided && self.extensions >= EXTENSIONS_MAX;
        let holds = match judgement.verdict {
            _ if is_repeated => None,
            Verdict::Met => Some(true),
            Verdict::Exceeded | Verdict::NotDelivered => Some(false),
            Verdict::Undecided if by_point_estimate => {
                Some(judgement.late_share <= self.spec.objective.late_share_allowed())
            }
            Verdict::Undecided | Verdict::GeneratorSaturated => None,
        };
        let taken = StepTaken { step, judgement, holds, is_repeated, by_point_estimate };
        self.taken.push(taken);
        match holds {
            Some(held) => self.narrow(step, held),
            None if is_repeated => self.repeats += 1,
            None if judgement.verdict == Verdict::Undecided => self.extensions += 1,
            None => self.ended = Some(Found::AtLeast { holds: self.holds.unwrap_or(0.0) }),
        }
        if self.ended.is_none() && self.taken.len() >= STEPS_MAX {
            self.ended = Some(match (self.holds, self.fails) {
                (Some(holds), Some(fails)) => Found::Rate { holds, fails },
                (Some(holds), None) => Found::AtLeast { holds },
                (None, _) => Found::Nothing { fails: step.rate_per_second },
            });
        }
        taken
    }

    fn narrow(&mut self, step: Step, held: bool) {
        self.extensions = 0;
        self.repeats = 0;
        let rate = step.rate_per_second;
        match (step.purpose, held) {
            (Purpose::Confirm, true) => self.confirmed = Some(rate),
            (Purpose::Confirm, false) => {
                self.fails = Some(rate);
                // The highest of the other rates that held; without one the bracket opens below.
                self.holds = self.highest_below(rate);
            }
            (_, true) => self.holds = Some(rate),
            (_, false) => self.fails = Some(rate),
        }
    }

    fn highest_below(&self, rate: f64) -> Option<f64> {
        self.taken
            .iter()
            .filter(|taken| taken.holds == Some(true) && taken.step.rate_per_second < rate)
            .map(|taken| taken.step.rate_per_second)
            .max_by(f64::total_cmp)
    }

    fn next_rate(&self) -> (f64, Purpose) {
        match (self.holds, self.fails) {
            (None, None) => (self.spec.first_rate, Purpose::Bracket),
            (Some(holds), None) => (holds * 2.0, Purpose::Bracket),
            (None, Some(fails)) => (fails / 2.0, Purpose::Bracket),
            (Some(holds), Some(fails)) if self.is_narrow(holds, fails) => (holds, Purpose::Confirm),
            (Some(holds), Some(fails)) => ((holds * fails).sqrt(), Purpose::Bisect),
        }
    }

    /// Below it even the longest window has too few transactions to have any beyond the quantile.
    fn lowest_rate(&self) -> f64 {
        let longest = Nanos(self.spec.measure.0 << EXTENSIONS_MAX).as_secs_f64();
        let needed = 1.0 / self.spec.objective.late_share_allowed().max(f64::EPSILON);
        RATE_RANGE.0.max(needed / longest.max(f64::MIN_POSITIVE))
    }

    fn is_narrow(&self, holds: f64, fails: f64) -> bool {
        fails <= holds * self.spec.resolution
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, Purpose, RateSearch, SearchSpec};
    use crate::judgement::{Judgement, Verdict};
    use proptest::prelude::{prop_assert, proptest};
    use underlay_core::Nanos;

    fn search(first_rate: f64) -> RateSearch {
        RateSearch::new(SearchSpec {
            objective: "p99=10ms".parse().unwrap(),
            first_rate,
            resolution: 1.05,
            settle: Nanos::from_secs(2),
            measure: Nanos::from_secs(10),
        })
    }

    fn seen(verdict: Verdict, late_share: f64) -> Judgement {
        Judgement {
            verdict,
            transactions: 1_000,
            delivered_per_second: 100.0,
            observed: None,
            late_share,
            late_share_bounds: (0.0, 1.0),
            connections_lost: false,
        }
    }

    /// Runs a search against a database whose target holds up to `capacity`.
    fn run(search: &mut RateSearch, verdict: impl Fn(f64) -> Verdict) -> Found {
        while let Some(step) = search.next() {
            search.observe(step, seen(verdict(step.rate_per_second), 0.0));
        }
        search.found().unwrap()
    }

    fn up_to(capacity: f64) -> impl Fn(f64) -> Verdict {
        move |rate| if rate <= capacity { Verdict::Met } else { Verdict::Exceeded }
    }

    proptest! {
        #[test]
        fn any_capacity_is_found_from_any_first_rate(capacity in 1.0f64..1e5, first in 1.0f64..1e5) {
            let mut search = search(first);
            let found = run(&mut search, up_to(capacity));
            let Found::Rate { holds, fails } = found else { panic!("{found:?}") };
            prop_assert!(holds <= capacity && capacity < fails, "{} in {}..{}", capacity, holds, fails);
            prop_assert!(fails <= holds * 1.05);
            prop_assert!(search.taken().len() < 30, "{} steps", search.taken().len());
            // The answer was confirmed by a window of twice the length.
            let last = search.taken().last().unwrap();
            prop_assert!(last.step.purpose == Purpose::Confirm && last.step.measure == Nanos::from_secs(20));
            prop_assert!(last.step.rate_per_second == holds);
        }
    }

    #[test]
    fn an_answer_that_does_not_hold_again_is_given_up() {
        let mut search = search(100.0);
        let mut fluke = true;
        while let Some(step) = search.next() {
            let lucky = fluke && step.purpose != Purpose::Confirm;
            fluke &= step.purpose != Purpose::Confirm;
            let capacity = if lucky { 300.0 } else { 250.0 };
            search.observe(step, seen(up_to(capacity)(step.rate_per_second), 0.0));
        }
        let Some(Found::Rate { holds, fails }) = search.found() else { panic!() };
        assert!(holds <= 250.0 && fails <= holds * 1.05, "{holds} {fails}");
    }

    #[test]
    fn a_window_that_cannot_tell_is_measured_longer_and_then_decided() {
        let mut search = search(100.0);
        let mut lengths = Vec::new();
        for _ in 0..3 {
            let step = search.next().unwrap();
            lengths.push(step.measure.as_secs_f64());
            search.observe(step, seen(Verdict::Undecided, 0.009));
        }
        assert_eq!(lengths, [10.0, 20.0, 40.0]);
        let last = search.taken().last().unwrap();
        assert!(last.by_point_estimate && last.holds == Some(true));
        assert_eq!(search.next().unwrap().rate_per_second, 200.0);
    }

    #[test]
    fn searches_that_cannot_succeed_say_so() {
        assert!(matches!(
            run(&mut search(100.0), |_| Verdict::NotDelivered),
            Found::Nothing { .. }
        ));
        assert!(matches!(run(&mut search(100.0), |_| Verdict::Met), Found::AtLeast { .. }));
        let saturated =
            |rate: f64| if rate > 500.0 { Verdict::GeneratorSaturated } else { Verdict::Met };
        assert_eq!(run(&mut search(100.0), saturated), Found::AtLeast { holds: 400.0 });
    }

    #[test]
    fn nothing_is_searched_where_no_window_could_tell() {
        let mut search = search(100.0);
        let found = run(&mut search, |_| Verdict::Exceeded);
        // A p99 needs 100 transactions, and the longest window has 40 s: 2.5 per second.
        let Found::Nothing { fails } = found else { panic!("{found:?}") };
        assert!((2.5..5.0).contains(&fails), "{fails}");
        assert!(search.taken().iter().all(|taken| taken.step.rate_per_second >= 2.5));
    }

    #[test]
    fn a_rate_is_not_blamed_for_a_database_that_was_away() {
        let mut search = search(100.0);
        let away = Judgement { connections_lost: true, ..seen(Verdict::NotDelivered, 0.0) };
        let first = search.next().unwrap();
        let taken = search.observe(first, away);
        assert!(taken.is_repeated && taken.holds.is_none());
        let again = search.next().unwrap();
        assert_eq!((again.rate_per_second, again.measure), (100.0, first.measure));
        assert!(again.rest_first);
        // It came back, and the rate holds.
        assert_eq!(search.observe(again, seen(Verdict::Met, 0.0)).holds, Some(true));
        // Sessions that are lost each time belong to the rate.
        for holds in [None, None, Some(false)] {
            let step = search.next().unwrap();
            assert_eq!(step.rate_per_second, 200.0);
            assert_eq!(search.observe(step, away).holds, holds);
        }
        // Lost sessions do no harm to a rate that holds all the same.
        let step = search.next().unwrap();
        let met = Judgement { connections_lost: true, ..seen(Verdict::Met, 0.0) };
        assert_eq!(search.observe(step, met).holds, Some(true));
    }

    #[test]
    fn after_a_rate_too_high_the_load_rests() {
        let mut search = search(100.0);
        let step = search.next().unwrap();
        assert!(!step.rest_first);
        search.observe(step, seen(Verdict::NotDelivered, 0.0));
        assert!(search.next().unwrap().rest_first);
    }
}
