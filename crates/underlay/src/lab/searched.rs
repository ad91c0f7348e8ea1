//! The result of a search for a rate: in words, and as the object of records and of `--json`.
//!
//! It measures nothing: [`rate_search`](super::rate_search) does.

use serde_json::{Value, json};
use underlay_driver::{Found, Objective, StepTaken};
use underlay_record::Interval;

use crate::lab::window::Window;

/// A search, as far as it came.
pub struct Searched {
    /// What must be met.
    pub objective: Objective,
    /// Its steps.
    pub steps: Vec<StepTaken>,
    /// When each of them was measured, on the clock of the run.
    pub measured: Vec<Interval>,
    /// Its result; `None` when it was stopped.
    pub found: Option<Found>,
    /// Whether it ended because the database did not answer any more.
    pub is_away: bool,
    /// What was measured in the last step.
    pub last: Window,
}

impl Searched {
    /// A search without a step.
    pub fn new(objective: Objective) -> Searched {
        Searched {
            objective,
            steps: Vec::new(),
            measured: Vec::new(),
            found: None,
            is_away: false,
            last: Window::default(),
        }
    }

    /// The rate that was found, per second.
    pub fn rate(&self) -> Option<f64> {
        match self.found? {
            Found::Rate { holds, .. } | Found::AtLeast { holds } => (holds > 0.0).then_some(holds),
            Found::Nothing { .. } => None,
        }
    }

    /// What follows from it, in one sentence.
    pub fn conclusion(&self) -> String {
        let objective = self.objective;
        match self.found {
            Some(Found::Rate { holds, fails }) => {
                let guessed = match (self.is_guess(holds), self.is_guess(fails)) {
                    (false, false) => "",
                    (true, true) => {
                        "; both are point estimates, because the windows were too short to decide: use longer ones"
                    }
                    (true, false) => {
                        "; the former is a point estimate, because its window was too short to decide: use a longer one"
                    }
                    (false, true) => {
                        "; the latter is a point estimate, because its window was too short to decide: use a longer one"
                    }
                };
                format!("{holds:.1} transactions/s meet {objective}, {fails:.1} do not{guessed}")
            }
            Some(Found::AtLeast { holds }) if holds > 0.0 => {
                let fails = self.lowest_failed();
                let fails = fails.map_or(String::new(), |fails| format!(", {fails:.1} do not"));
                format!(
                    "at least {holds:.1} transactions/s meet {objective}{fails}; above that the load generator is the \
                     bottleneck"
                )
            }
            Some(Found::AtLeast { .. }) => {
                "no result: the load generator was the bottleneck from the first rate on"
                    .to_string()
            }
            Some(Found::Nothing { fails }) => format!(
                "no rate that was tried meets {objective}, down to {fails:.2} transactions/s; for much lower rates, \
                 windows of this length have too few transactions"
            ),
            None if self.is_away => {
                "the search ended without a result: the database no longer answers".to_string()
            }
            None => "the search was stopped before it had a result".to_string(),
        }
    }

    /// Everything about it, as the document [`RATE_SEARCH`](underlay_record::conventions::document::RATE_SEARCH)
    /// of records describes it.
    pub fn json(&self) -> Value {
        let steps = self.steps.iter().zip(&self.measured);
        json!({
            "slo": self.objective.to_string(),
            "quantile": self.objective.quantile,
            "limit_ns": self.objective.limit.0,
            "found": self.found.map(found_json),
            "conclusion": self.conclusion(),
            "steps": steps.map(|(taken, measured)| step_json(taken, *measured)).collect::<Vec<_>>(),
        })
    }

    /// Whether the windows of a rate could not tell, so that their point estimate decided.
    fn is_guess(&self, rate_per_second: f64) -> bool {
        let at = |taken: &&StepTaken| taken.step.rate_per_second == rate_per_second;
        self.steps.iter().filter(at).any(|taken| taken.by_point_estimate)
    }

    /// The lowest rate that was seen to fail, if any.
    fn lowest_failed(&self) -> Option<f64> {
        let failed = self.steps.iter().filter(|taken| taken.holds == Some(false));
        failed.map(|taken| taken.step.rate_per_second).min_by(f64::total_cmp)
    }
}

fn step_json(taken: &StepTaken, measured: Interval) -> Value {
    let judgement = &taken.judgement;
    json!({
        "rate_per_second": taken.step.rate_per_second,
        "measured_ns": taken.step.measure.0,
        "delivered_per_second": judgement.delivered_per_second,
        "transactions": judgement.transactions,
        "observed_ns": judgement.observed.map(|observed| observed.0),
        "late_share": judgement.late_share,
        "late_share_low": judgement.late_share_bounds.0,
        "late_share_high": judgement.late_share_bounds.1,
        "verdict": judgement.verdict.as_str(),
        "connections_lost": judgement.connections_lost,
        "holds": taken.holds,
        "by_point_estimate": taken.by_point_estimate,
        "purpose": taken.step.purpose.as_str(),
        "begin_ns": measured.begin.0,
        "end_ns": measured.end.0,
    })
}

fn found_json(found: Found) -> Value {
    match found {
        Found::Rate { holds, fails } => {
            json!({ "kind": "rate", "holds_per_second": holds, "fails_per_second": fails })
        }
        Found::AtLeast { holds } => json!({ "kind": "at-least", "holds_per_second": holds }),
        Found::Nothing { fails } => json!({ "kind": "nothing", "fails_per_second": fails }),
    }
}

/// A step in one line.
pub fn describe(taken: &StepTaken, objective: &Objective) -> String {
    let judgement = &taken.judgement;
    let observed = judgement.observed.map_or("-".to_string(), |observed| observed.to_string());
    format!(
        "{:>9.1}/s offered {:>9.1}/s done  {} {observed:>8}  late {:.2} % [{:.2}, {:.2}]  {}{}",
        taken.step.rate_per_second,
        judgement.delivered_per_second,
        objective.name(),
        judgement.late_share * 100.0,
        judgement.late_share_bounds.0 * 100.0,
        judgement.late_share_bounds.1 * 100.0,
        judgement.verdict.as_str(),
        match taken.holds {
            Some(true) if taken.by_point_estimate => ", taken as met by its point estimate",
            Some(false) if taken.by_point_estimate => ", taken as exceeded by its point estimate",
            _ if taken.is_repeated => ", while connections were lost: does not count",
            Some(false) if judgement.connections_lost => ", while connections were lost",
            _ => "",
        }
    )
}

#[cfg(test)]
mod tests {
    use underlay_core::Nanos;
    use underlay_driver::{Judgement, RateSearch, SearchSpec, Verdict};

    use super::Searched;

    /// A search on a database that holds a little more than 100 per second, as its steps were judged.
    fn searched(verdict: impl Fn(f64) -> Verdict) -> Searched {
        let objective = "p99=10ms".parse().unwrap();
        let mut search = RateSearch::new(SearchSpec {
            objective,
            first_rate: 100.0,
            resolution: 1.05,
            settle: Nanos::ZERO,
            measure: Nanos::from_secs(10),
        });
        while let Some(step) = search.next() {
            let rate = step.rate_per_second;
            let judgement = Judgement {
                verdict: verdict(rate),
                transactions: 30,
                delivered_per_second: rate,
                observed: None,
                late_share: if rate < 101.0 { 0.0 } else { 1.0 },
                late_share_bounds: (0.0, 1.0),
                connections_lost: false,
            };
            search.observe(step, judgement);
        }
        Searched {
            steps: search.taken().to_vec(),
            found: search.found(),
            ..Searched::new(objective)
        }
    }

    #[test]
    fn a_conclusion_says_what_it_rests_on() {
        let decided = |rate: f64| if rate < 101.0 { Verdict::Met } else { Verdict::Exceeded };
        let said = searched(decided).conclusion();
        assert!(
            said.starts_with("100.0 transactions/s meet") && said.ends_with("do not"),
            "{said}"
        );
        let said = searched(|_| Verdict::Exceeded).conclusion();
        assert!(
            said.starts_with("no rate that was tried meets p99 <= 10 ms, down to 3.12"),
            "{said}"
        );
        let said = searched(|rate| match rate {
            105.0..150.0 => Verdict::GeneratorSaturated,
            rate => decided(rate),
        })
        .conclusion();
        assert!(
            said.starts_with("at least 100.0 transactions/s meet p99 <= 10 ms, 200.0 do not;"),
            "{said}"
        );
        let said = searched(|_| Verdict::Undecided).conclusion();
        assert!(said.contains("both are point estimates"), "{said}");
        let said = searched(|rate| match decided(rate) {
            Verdict::Met => Verdict::Undecided,
            verdict => verdict,
        })
        .conclusion();
        assert!(said.contains("the former is a point estimate"), "{said}");
    }

    #[test]
    fn a_search_without_a_rate_has_none() {
        assert_eq!(searched(|_| Verdict::Exceeded).rate(), None);
        assert_eq!(searched(|_| Verdict::GeneratorSaturated).rate(), None);
        let decided = |rate: f64| if rate < 101.0 { Verdict::Met } else { Verdict::Exceeded };
        assert_eq!(searched(decided).rate(), Some(100.0));
    }
}
