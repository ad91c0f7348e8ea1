//! What the checks found, one by one and together. How a check is made is not decided here.

use std::time::Duration;

use underlay_core::CheckOutcome;

/// One check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// Short identity: `c1` to `c12`, `i1` to `i10`, `ledger`.
    pub id: &'static str,
    /// What it verifies.
    pub title: &'static str,
    /// What it found.
    pub outcome: CheckOutcome,
}

/// All checks of one moment.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// In the order of their definition.
    pub results: Vec<CheckResult>,
    /// Time it took.
    pub duration: Duration,
}

impl CheckReport {
    /// Whether every check was made and holds.
    pub fn is_clean(&self) -> bool {
        self.results.iter().all(|result| result.outcome == CheckOutcome::Ok)
    }

    /// The checks that do not hold or could not be made.
    pub fn failures(&self) -> impl Iterator<Item = &CheckResult> {
        self.results.iter().filter(|result| result.outcome != CheckOutcome::Ok)
    }
}

/// Adds up the outcomes of the pieces, condition by condition.
pub(super) fn merge(mut pieces: impl Iterator<Item = Vec<CheckResult>>) -> Vec<CheckResult> {
    let mut merged = pieces.next().unwrap_or_default();
    for piece in pieces {
        for (total, part) in merged.iter_mut().zip(piece) {
            assert_eq!(total.id, part.id, "all pieces make the same checks in the same order");
            total.outcome = match (total.outcome.clone(), part.outcome) {
                // A violation is certain whatever else could not be looked at.
                (
                    CheckOutcome::Violated { rows, example },
                    CheckOutcome::Violated { rows: more, .. },
                ) => CheckOutcome::Violated { rows: rows + more, example },
                (violated @ CheckOutcome::Violated { .. }, _)
                | (_, violated @ CheckOutcome::Violated { .. }) => violated,
                (failed @ CheckOutcome::Failed { .. }, _)
                | (_, failed @ CheckOutcome::Failed { .. }) => failed,
                (CheckOutcome::Ok, CheckOutcome::Ok) => CheckOutcome::Ok,
            };
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::{CheckOutcome, CheckResult, merge};

    #[test]
    fn a_violation_outweighs_a_failure() {
        let result = |outcome| vec![CheckResult { id: "c1", title: "", outcome }];
        let violated = |rows| CheckOutcome::Violated { rows, example: "x".to_string() };
        let failed = CheckOutcome::Failed { error: "gone".to_string() };
        let merged = |outcomes: Vec<CheckOutcome>| {
            merge(outcomes.into_iter().map(result))[0].outcome.clone()
        };
        assert_eq!(
            merged(vec![CheckOutcome::Ok, violated(2), failed.clone(), violated(3)]),
            violated(5)
        );
        assert_eq!(merged(vec![CheckOutcome::Ok, failed.clone()]), failed);
        assert_eq!(merged(vec![CheckOutcome::Ok, CheckOutcome::Ok]), CheckOutcome::Ok);
    }
}
