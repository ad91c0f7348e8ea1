//! The oracle: TPC-C's twelve consistency conditions, further invariants, and the client's ledger.
//!
//! Each condition is a query that counts the rows violating it and names one of them. Comparisons are
//! null-safe and joins are full where a row could be missing on either side: a check that passes because
//! a row is absent is no check. "Could not be made" is kept apart from "is violated".
//!
//! The warehouses are divided into pieces, which are looked at in parallel, each in one transaction that
//! sees one state of the database. The table names are a parameter, so that a database loaded by another
//! tool can be judged.

mod conditions;
mod ledger;
mod piece;
mod shared;
mod tables;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::{Client, Error};
use underlay_workload::tpcc::Ledger;

pub use ledger::{OrderNumbers, order_numbers};
pub use tables::TableNames;

use crate::error::{CommitState, SessionError};
use crate::target::Target;
use conditions::{CONDITIONS, Condition};
use piece::{Piece, pieces};
use shared::{SHARED, Shared};

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

/// Settings of the connections that check. Little memory, because the server may be limited to some hundred
/// MiB in all and must not be killed for being checked: what does not fit is sorted and hashed on disk. One
/// process per connection, as there is a connection per processor; no compilation of queries that run
/// once; and no limit that a role may have for its work.
const SETTINGS: &str = "SET work_mem = '12MB'; SET temp_buffers = '8MB'; SET jit = off; \
    SET max_parallel_workers_per_gather = 0; SET statement_timeout = 0; SET lock_timeout = 0; \
    SET idle_in_transaction_session_timeout = 0";

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
    let pieces = pieces(options.warehouses, options.parallel);
    let mut clients = Vec::new();
    for _ in 0..options.parallel.clamp(1, pieces.len()) {
        clients.push(target.connect().await?);
    }
    let next = AtomicUsize::new(0);
    let per_client = futures_util::future::join_all(
        clients.iter().map(|client| check_pieces(client, &pieces, &next, &options)),
    )
    .await;
    let mut per_piece = per_client.concat();
    per_piece.sort_by_key(|(index, _)| *index);
    let mut results = merge(per_piece.into_iter().map(|(_, results)| results));
    if let Some((ledger, before)) = options.ledger {
        results.push(ledger::check(&clients[0], options.tables, ledger, before).await);
    }
    Ok(CheckReport { results, duration: began.elapsed() })
}

/// Takes the next piece until none is left; returns the results with the pieces' indexes.
async fn check_pieces(
    client: &Client,
    pieces: &[Piece],
    next: &AtomicUsize,
    options: &CheckOptions<'_>,
) -> Vec<(usize, Vec<CheckResult>)> {
    let mut checked = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(piece) = pieces.get(index) else { return checked };
        let results = match check_piece(client, piece, options).await {
            Ok(results) => results,
            Err(error) => {
                let outcome = CheckOutcome::Failed { error: describe(&error) };
                applicable(options.moment)
                    .map(|condition| condition.result(outcome.clone()))
                    .collect()
            }
        };
        checked.push((index, results));
    }
}

fn applicable(moment: CheckMoment) -> impl Iterator<Item = &'static Condition> {
    CONDITIONS.iter().filter(move |condition| condition.applies(moment))
}

async fn check_piece(
    client: &Client,
    piece: &Piece,
    options: &CheckOptions<'_>,
) -> Result<Vec<CheckResult>, Error> {
    client.batch_execute(SETTINGS).await?;
    // Writing, for the temporary tables: also where the default is to refuse writes. The rollback removes
    // them.
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE").await?;
    let missing = make_shared(client, piece, options.tables).await?;
    let mut results = Vec::new();
    for condition in applicable(options.moment) {
        let unreadable = missing.iter().find(|(shared, _)| condition.reads(shared));
        results.push(condition.result(match unreadable {
            Some((_, error)) => CheckOutcome::Failed { error: error.clone() },
            None => count(client, condition, piece, options.tables).await?,
        }));
    }
    client.batch_execute("ROLLBACK").await?;
    Ok(results)
}

/// Makes the shared tables; returns those that could not be made, with the reasons.
async fn make_shared(
    client: &Client,
    piece: &Piece,
    tables: &TableNames,
) -> Result<Vec<(&'static Shared, String)>, Error> {
    let mut missing: Vec<(&Shared, String)> = Vec::new();
    for shared in SHARED {
        if let Some((_, cause)) = missing.iter().find(|(other, _)| shared.sql.contains(other.name))
        {
            let cause = cause.clone();
            missing.push((shared, cause));
            continue;
        }
        let query = piece.insert_into(shared.sql, tables);
        let sql = format!("SAVEPOINT part; CREATE TEMPORARY TABLE {} AS {query}", shared.name);
        if let Err(error) = client.batch_execute(&sql).await {
            client.batch_execute("ROLLBACK TO part").await?;
            missing.push((shared, describe(&error)));
        }
    }
    Ok(missing)
}

async fn count(
    client: &Client,
    condition: &Condition,
    piece: &Piece,
    tables: &TableNames,
) -> Result<CheckOutcome, Error> {
    client.batch_execute("SAVEPOINT part").await?;
    let answer = client
        .query_one(&piece.insert_into(condition.sql, tables), &[])
        .await
        .and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    if answer.is_err() {
        client.batch_execute("ROLLBACK TO part").await?;
    }
    Ok(outcome(answer))
}

/// The outcome of a query that counts violating rows and names one.
fn outcome(answer: Result<(i64, Option<String>), Error>) -> CheckOutcome {
    match answer {
        Ok((0, _)) => CheckOutcome::Ok,
        Ok((rows, example)) => CheckOutcome::Violated {
            rows: rows.unsigned_abs(),
            example: example.unwrap_or_else(|| "a row of nulls".to_string()),
        },
        Err(error) => CheckOutcome::Failed { error: describe(&error) },
    }
}

fn describe(error: &Error) -> String {
    SessionError::from_postgres(error, CommitState::NotSent).message
}

/// Adds up the outcomes of the pieces, condition by condition.
fn merge(mut pieces: impl Iterator<Item = Vec<CheckResult>>) -> Vec<CheckResult> {
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
