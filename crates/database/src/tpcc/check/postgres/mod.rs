//! The checks: TPC-C's twelve consistency conditions, further invariants, and the client's ledger.
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
mod outcome;
mod shared;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio_postgres::{Client, Error};

pub use ledger::order_numbers;

use crate::error::SessionError;
use crate::postgres::CHECK_SETTINGS;
use crate::target::Target;
use crate::tpcc::check::{Condition, Piece, merge, pieces};
use crate::tpcc::{CheckMoment, CheckOptions, CheckOutcome, CheckReport, CheckResult, TableNames};
pub(super) use conditions::CONDITIONS;
use outcome::{describe, outcome};
use shared::{SHARED, Shared};

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
    client.batch_execute(CHECK_SETTINGS).await?;
    // Writing, for the temporary tables: also where the default is to refuse writes. The rollback removes
    // them.
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE").await?;
    let missing = make_shared(client, piece, options.tables).await?;
    let mut results = Vec::new();
    for condition in applicable(options.moment) {
        let unreadable = missing.iter().find(|(shared, _)| condition.reads(shared.name));
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
