//! The oracle: TPC-C's twelve consistency conditions, further invariants, and the client's ledger.
//!
//! Each condition is a query that counts the rows violating it and names one of them. Comparisons are
//! null-safe and joins are full where a row could be missing on either side: a check that passes because
//! a row is absent is no check. "Could not be made" is kept apart from "is violated".
//!
//! Order lines are aggregated once per range of warehouses, into temporary tables; ranges are checked in
//! parallel. The table names are a parameter, so that a database loaded by another tool can be judged.

mod conditions;
mod ledger;

use std::time::{Duration, Instant};
use tokio_postgres::Client;
use underlay_workload::tpcc::Ledger;

pub use conditions::TableNames;
pub use ledger::{OrderNumbers, order_numbers};

use crate::error::SessionError;
use crate::target::Target;
use conditions::{CONDITIONS, Condition, prepare};

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
    /// Ranges of warehouses checked at the same time.
    pub parallel: usize,
    /// When.
    pub moment: CheckMoment,
    /// What the clients know, and what the order numbers were before they ran.
    pub ledger: Option<(&'a Ledger, &'a OrderNumbers)>,
    /// The names of the tables.
    pub tables: &'a TableNames,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The condition holds.
    Ok,
    /// The condition is violated.
    Violated {
        /// Rows that violate it.
        rows: u64,
        /// One of them, in words.
        example: String,
    },
    /// The check could not be made.
    Failed {
        /// Why not.
        error: String,
    },
}

/// One check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// Short identity: `c1` to `c12`, `i1`..., `ledger`.
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

/// Makes all checks. Must be called within a tokio runtime.
///
/// # Errors
/// Only when the database cannot be reached at all; everything else is an outcome of a check.
pub async fn check(
    target: &Target,
    options: CheckOptions<'_>,
) -> Result<CheckReport, SessionError> {
    let began = Instant::now();
    let target = target.with_application_name("underlay-check");
    let ranges = ranges(options.warehouses, options.parallel);
    let mut clients = Vec::with_capacity(ranges.len());
    for _ in &ranges {
        clients.push(target.connect().await?);
    }
    let per_range = futures_util::future::join_all(
        clients.iter().zip(&ranges).map(|(client, range)| check_range(client, *range, &options)),
    )
    .await;
    let mut results = merge(per_range);
    if let Some((ledger, before)) = options.ledger {
        results.push(ledger::check(&clients[0], options.tables, ledger, before).await);
    }
    Ok(CheckReport { results, duration: began.elapsed() })
}

/// Contiguous ranges of warehouses, as even as possible, at most `parallel` of them.
fn ranges(warehouses: u32, parallel: usize) -> Vec<(i32, i32)> {
    let warehouses = warehouses.cast_signed().max(1);
    let parts = i32::try_from(parallel).unwrap_or(i32::MAX).clamp(1, warehouses);
    (0..parts)
        .map(|part| {
            let at =
                |part: i32| (i64::from(warehouses) * i64::from(part) / i64::from(parts)) as i32;
            (at(part) + 1, at(part + 1))
        })
        .collect()
}

async fn check_range(
    client: &Client,
    range: (i32, i32),
    options: &CheckOptions<'_>,
) -> Vec<CheckResult> {
    let applicable = CONDITIONS.iter().filter(|condition| condition.applies(options.moment));
    if let Err(error) = prepare(client, range, options.tables).await {
        let error = describe(&error);
        return applicable
            .map(|condition| condition.result(CheckOutcome::Failed { error: error.clone() }))
            .collect();
    }
    let mut results = Vec::new();
    for condition in applicable {
        results.push(condition.result(count(client, condition, range, options.tables).await));
    }
    results
}

async fn count(
    client: &Client,
    condition: &Condition,
    (first, last): (i32, i32),
    tables: &TableNames,
) -> CheckOutcome {
    let sql = condition
        .sql(tables)
        .replace("$first", &first.to_string())
        .replace("$last", &last.to_string());
    outcome(
        client.query_one(&sql, &[]).await.and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?))),
    )
}

/// The outcome of a query that counts violating rows and names one.
fn outcome(answer: Result<(i64, Option<String>), tokio_postgres::Error>) -> CheckOutcome {
    match answer {
        Ok((0, _)) => CheckOutcome::Ok,
        Ok((rows, example)) => CheckOutcome::Violated {
            rows: rows.unsigned_abs(),
            example: example.unwrap_or_else(|| "a row of nulls".to_string()),
        },
        Err(error) => CheckOutcome::Failed { error: describe(&error) },
    }
}

fn describe(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |server| server.message().to_string())
}

/// Adds up the outcomes of the ranges, condition by condition.
fn merge(per_range: Vec<Vec<CheckResult>>) -> Vec<CheckResult> {
    let mut ranges = per_range.into_iter();
    let mut merged = ranges.next().unwrap_or_default();
    for range in ranges {
        for (total, part) in merged.iter_mut().zip(range) {
            debug_assert_eq!(
                total.id, part.id,
                "all ranges make the same checks in the same order"
            );
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
    use super::{CheckOutcome, CheckResult, merge, ranges};

    #[test]
    fn ranges_cover_every_warehouse_once() {
        for warehouses in 1..40 {
            for parallel in 1..10 {
                let covered: Vec<i32> = ranges(warehouses, parallel)
                    .into_iter()
                    .flat_map(|(first, last)| first..=last)
                    .collect();
                assert_eq!(covered, (1..=warehouses as i32).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_violation_outweighs_a_failure() {
        let result = |outcome| vec![CheckResult { id: "c1", title: "", outcome }];
        let violated = |rows| CheckOutcome::Violated { rows, example: "x".to_string() };
        let failed = CheckOutcome::Failed { error: "gone".to_string() };
        let merged = |outcomes: Vec<CheckOutcome>| {
            merge(outcomes.into_iter().map(result).collect())[0].outcome.clone()
        };
        assert_eq!(
            merged(vec![CheckOutcome::Ok, violated(2), failed.clone(), violated(3)]),
            violated(5)
        );
        assert_eq!(merged(vec![CheckOutcome::Ok, failed.clone()]), failed);
        assert_eq!(merged(vec![CheckOutcome::Ok, CheckOutcome::Ok]), CheckOutcome::Ok);
    }
}
