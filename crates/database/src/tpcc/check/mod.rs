//! The checks: TPC-C's twelve consistency conditions, further invariants, and the client's ledger, on every engine.
//!
//! Each condition is a query that counts the rows violating it and names one of them. Comparisons are null-safe, and a row
//! that is missing on either side is seen: a check that passes because a row is absent is no check. "Could not be made" is
//! kept apart from "is violated".
//!
//! The warehouses are divided into pieces, which are looked at in parallel. Within a piece everything is of one state of the
//! database. Where an engine cannot have that (`sql`), it is checked at the end whether another session wrote in the
//! meantime. If so, no check counts as made. The table names are a parameter, so that a database loaded by another tool can be
//! judged. Whether the server died meanwhile is not looked at here.

mod condition;
mod conditions;
mod ledger;
mod options;
mod piece;
mod result;
mod sql;
mod tables;
mod text;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use underlay_core::CheckOutcome;

use crate::connection::{Cells, Connection, RequestError};
use crate::error::SessionError;
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;
use condition::{Condition, outcome};
use conditions::CONDITIONS;
use piece::{Piece, pieces};
use result::merge;
use sql::dialect;
use text::sql_of;

pub use ledger::OrderNumbers;
pub use options::{CheckMoment, CheckOptions};
pub use result::{CheckReport, CheckResult};
pub use tables::TableNames;

/// Makes all checks.
///
/// # Errors
/// Only when the database cannot be reached at all, or its user may not make the temporary tables without which no check can
/// be made; everything else is an outcome of a check.
pub(super) async fn check<C: Connection + SchemaOwner>(
    target: &Target,
    options: CheckOptions<'_>,
) -> Result<CheckReport, SessionError> {
    let began = Instant::now();
    let target = target.with_application_name("underlay-check");
    let pieces = pieces(options.warehouses, options.parallel);
    let mut connections = Vec::new();
    for _ in 0..options.parallel.clamp(1, pieces.len()) {
        connections.push(open::<C>(&target).await?);
    }
    connections[0].run(dialect(C::ENGINE).rights).await?;
    // A table that is missing is the business of the conditions that read it.
    let before = fingerprint(&mut connections[0], options.tables).await.unwrap_or(None);
    let next = AtomicUsize::new(0);
    let per_connection = futures_util::future::join_all(
        connections.iter_mut().map(|connection| check_pieces(connection, &pieces, &next, &options)),
    )
    .await;
    let mut per_piece = per_connection.concat();
    per_piece.sort_by_key(|(index, _)| *index);
    let mut results = merge(per_piece.into_iter().map(|(_, results)| results));
    if let Some((ledger, before)) = options.ledger {
        results.push(ledger::check(&mut connections[0], options.tables, ledger, before).await);
    }
    let after = match (fingerprint(&mut connections[0], options.tables).await, &before) {
        // It could be read before, so the connection is lost, and the results are not reliable.
        (Err(error), Some(_)) => return Err(error.into()),
        (after, _) => after.unwrap_or(None),
    };
    if after != before {
        disbelieve(&mut results);
    }
    Ok(CheckReport { results, duration: began.elapsed() })
}

/// Reads D_NEXT_O_ID of all districts.
pub(super) async fn order_numbers<C: Connection + SchemaOwner>(
    target: &Target,
    tables: &TableNames,
) -> Result<OrderNumbers, SessionError> {
    Ok(ledger::order_numbers(&mut open::<C>(target).await?, tables).await?)
}

async fn open<C: Connection + SchemaOwner>(target: &Target) -> Result<C, RequestError> {
    let target = C::with_database(target, WorkloadTables::Tpcc);
    let mut connection = C::connect(&target, 0).await?;
    connection.run(dialect(C::ENGINE).settings).await?;
    Ok(connection)
}

/// What changes with every transaction that writes; `None` where it need not be known.
async fn fingerprint<C: Connection>(
    connection: &mut C,
    tables: &TableNames,
) -> Result<Option<Vec<Cells>>, RequestError> {
    match dialect(C::ENGINE).fingerprint {
        Some(sql) => connection.read_all(&tables.insert_into(sql)).await.map(Some),
        None => Ok(None),
    }
}

/// Results that were found during writes of others are neither right nor wrong.
fn disbelieve(results: &mut [CheckResult]) {
    for result in results {
        let error = "another session wrote to the database during the check".to_string();
        result.outcome = CheckOutcome::Failed { error };
    }
}

/// Takes the next piece until none is left; returns the results with the pieces' indexes.
async fn check_pieces<C: Connection>(
    connection: &mut C,
    pieces: &[Piece],
    next: &AtomicUsize,
    options: &CheckOptions<'_>,
) -> Vec<(usize, Vec<CheckResult>)> {
    let mut checked = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(piece) = pieces.get(index) else { return checked };
        let results = match check_piece(connection, piece, options).await {
            Ok(results) => results,
            Err(error) => {
                let outcome = CheckOutcome::Failed { error: error.message().to_string() };
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

async fn check_piece<C: Connection>(
    connection: &mut C,
    piece: &Piece,
    options: &CheckOptions<'_>,
) -> Result<Vec<CheckResult>, RequestError> {
    let dialect = dialect(C::ENGINE);
    connection.run(dialect.begin).await?;
    let missing = make_shared(connection, piece, options.tables).await?;
    let mut results = Vec::new();
    for condition in applicable(options.moment) {
        let unreadable = missing.iter().find(|(table, _)| condition.reads(table));
        results.push(condition.result(match unreadable {
            Some((_, error)) => CheckOutcome::Failed { error: error.clone() },
            None => {
                let sql = sql_of(condition.sql, dialect, piece, options.tables);
                connection.run(dialect.begin_part).await?;
                let answer = connection.read_all(&sql).await;
                if answer.is_err() {
                    connection.run(dialect.undo_part).await?;
                }
                outcome(answer)
            }
        }));
    }
    connection.run(dialect.end).await?;
    Ok(results)
}

/// Makes the temporary tables that conditions read; returns those that could not be made, with the reasons.
async fn make_shared<C: Connection>(
    connection: &mut C,
    piece: &Piece,
    tables: &TableNames,
) -> Result<Vec<(&'static str, String)>, RequestError> {
    let dialect = dialect(C::ENGINE);
    let mut missing: Vec<(&str, String)> = Vec::new();
    for (table, query) in dialect.shared.tables() {
        if let Some((_, cause)) = missing.iter().find(|(other, _)| query.contains(other)) {
            let cause = cause.clone();
            missing.push((table, cause));
            continue;
        }
        let query = sql_of(query, dialect, piece, tables);
        let named = |sql: &&str| sql.replace("{name}", table).replace("{query}", &query);
        let statements: Vec<String> = dialect.temporary_table.iter().map(named).collect();
        connection.run(dialect.begin_part).await?;
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        if let Err(error) = connection.run(&statements).await {
            connection.run(dialect.undo_part).await?;
            missing.push((table, error.message().to_string()));
        }
    }
    Ok(missing)
}
