//! The checks: what is checked, and the possible results, on every engine.
//!
//! The conditions themselves are queries in each engine's SQL; their identities and titles are the same.

mod condition;
mod ledger;
mod mariadb;
mod piece;
mod postgres;
mod tables;

use std::time::Duration;

use underlay_core::CheckOutcome;
use underlay_workload::tpcc::Ledger;

use crate::Engine;
use crate::error::SessionError;
use crate::target::Target;

pub use ledger::OrderNumbers;
pub use tables::TableNames;

pub(crate) use condition::{AFTER_LOAD, ALWAYS, Condition, conditions};
pub(crate) use ledger::{compare, ledger_result};
pub(crate) use piece::{Piece, pieces};

/// Makes all checks.
pub(super) async fn check(
    target: &Target,
    options: CheckOptions<'_>,
) -> Result<CheckReport, SessionError> {
    match target.engine {
        Engine::Postgresql => postgres::check(target, options).await,
        Engine::Mariadb => mariadb::check(target, options).await,
    }
}

/// Reads D_NEXT_O_ID of all districts.
pub(super) async fn order_numbers(
    target: &Target,
    tables: &TableNames,
) -> Result<OrderNumbers, SessionError> {
    match target.engine {
        Engine::Postgresql => postgres::order_numbers(&target.connect().await?, tables).await,
        Engine::Mariadb => mariadb::order_numbers(target, tables).await,
    }
}

/// When a check is made: some conditions can be stated only for a population that was never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMoment {
    /// Directly after the load.
    AfterLoad,
    /// After transactions have run.
    AfterRun,
}

/// What is checked, and how.
#[derive(Clone, Copy)]
pub struct CheckOptions<'a> {
    /// Number of warehouses in the database.
    pub warehouses: u32,
    /// Connections that check at the same time, each some of the warehouses. At least 1.
    pub parallel: usize,
    /// When.
    pub moment: CheckMoment,
    /// What the clients know, and what the order numbers were before they ran.
    pub ledger: Option<(&'a Ledger, &'a OrderNumbers)>,
    /// The names of the tables.
    pub tables: &'a TableNames,
}

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
pub(crate) fn merge(mut pieces: impl Iterator<Item = Vec<CheckResult>>) -> Vec<CheckResult> {
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
