//! The checks on MariaDB: see [`crate::tpcc::CheckReport`] for what they are.
//!
//! The warehouses are divided into pieces, which are looked at in parallel. For a consistent state over one
//! transaction, MariaDB would lock every row that a temporary table is made from. So each statement sees its
//! own state. At the end it is checked whether another session wrote in the meantime. If so, conditions that
//! may only seem violated because of those writes are not reported.

mod conditions;
mod ledger;
mod outcome;
mod shared;
mod text;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use crate::error::{CommitState, SessionError};
use crate::mariadb::connection::connect;

use crate::mariadb::MariadbConnection;
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;
use crate::tpcc::check::{Condition, Piece, merge, pieces};
use crate::tpcc::{
    CheckMoment, CheckOptions, CheckOutcome, CheckReport, CheckResult, OrderNumbers, TableNames,
};
use conditions::CONDITIONS;
use outcome::{describe, outcome};
use shared::{SHARED, Shared};
use text::sql_of;

/// Settings of the connections that check: no limit that an account may have for its work, and numbers
/// as the tables hold them.
const SETTINGS: [&str; 3] = [
    "SET NAMES latin1 COLLATE latin1_bin",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION autocommit = 1, innodb_lock_wait_timeout = 3600, sql_mode = 'STRICT_ALL_TABLES' \
     /*M!100100 , max_statement_time = 0 */ /*!50708 , max_execution_time = 0 */",
];

/// What changes with every transaction that writes.
const FINGERPRINT: &str = "SELECT concat_ws(' ', (SELECT sum(d_next_o_id) FROM {district}), \
    (SELECT sum(d_ytd) FROM {district}), (SELECT count(*) FROM {new_order}))";

/// Makes all checks. Must be called within a tokio runtime.
///
/// # Errors
/// Only when the database cannot be reached at all, or the user may not make the temporary tables without which no check can be made;
/// everything else is an outcome of a check.
pub async fn check(
    target: &Target,
    options: CheckOptions<'_>,
) -> Result<CheckReport, SessionError> {
    let began = Instant::now();
    let target = with_database(&target.with_application_name("underlay-check"));
    let pieces = pieces(options.warehouses, options.parallel);
    let mut clients = Vec::new();
    for _ in 0..options.parallel.clamp(1, pieces.len()) {
        clients.push(open(&target).await?);
    }
    may_make_shared(&mut clients[0]).await?;
    // A table that is missing is the business of the conditions that read it.
    let before = fingerprint(&mut clients[0], options.tables).await.ok();
    let next = AtomicUsize::new(0);
    let per_client = futures_util::future::join_all(
        clients.iter_mut().map(|client| check_pieces(client, &pieces, &next, &options)),
    )
    .await;
    let mut per_piece = per_client.concat();
    per_piece.sort_by_key(|(index, _)| *index);
    let mut results = merge(per_piece.into_iter().map(|(_, results)| results));
    if let Some((ledger, before)) = options.ledger {
        results.push(ledger::check(&mut clients[0], options.tables, ledger, before).await);
    }
    let after = match (fingerprint(&mut clients[0], options.tables).await, &before) {
        // It could be read before, so the connection is lost, and the results are not reliable.
        (Err(error), Some(_)) => {
            return Err(SessionError::from_mariadb(&error, CommitState::NotSent));
        }
        (after, _) => after.ok(),
    };
    if after != before {
        disbelieve(&mut results);
    }
    for client in clients {
        // A courtesy: everything was answered.
        let _ = client.disconnect().await;
    }
    Ok(CheckReport { results, duration: began.elapsed() })
}

/// Reads D_NEXT_O_ID of all districts.
pub async fn order_numbers(
    target: &Target,
    tables: &TableNames,
) -> Result<OrderNumbers, SessionError> {
    let mut client = open(&with_database(target)).await?;
    ledger::read_order_numbers(&mut client, tables)
        .await
        .map_err(|error| SessionError::from_mariadb(&error, CommitState::NotSent))
}

fn with_database(target: &Target) -> Target {
    MariadbConnection::with_database(target, WorkloadTables::Tpcc)
}

async fn open(target: &Target) -> Result<Conn, SessionError> {
    let mut client = connect(target).await?;
    for sql in SETTINGS {
        client
            .query_drop(sql)
            .await
            .map_err(|error| SessionError::from_mariadb(&error, CommitState::NotSent))?;
    }
    Ok(client)
}

async fn fingerprint(client: &mut Conn, tables: &TableNames) -> Result<Option<String>, Error> {
    client.query_first(tables.insert_into(FINGERPRINT)).await
}

/// Results that were found during writes of others are neither right nor wrong.
fn disbelieve(results: &mut [CheckResult]) {
    for result in results {
        let error = "another session wrote to the database during the check".to_string();
        result.outcome = CheckOutcome::Failed { error };
    }
}

/// Takes the next piece until none is left; returns the results with the pieces' indexes.
async fn check_pieces(
    client: &mut Conn,
    pieces: &[Piece],
    next: &AtomicUsize,
    options: &CheckOptions<'_>,
) -> Vec<(usize, Vec<CheckResult>)> {
    let mut checked = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(piece) = pieces.get(index) else { return checked };
        checked.push((index, check_piece(client, piece, options).await));
    }
}

fn applicable(moment: CheckMoment) -> impl Iterator<Item = &'static Condition> {
    CONDITIONS.iter().filter(move |condition| condition.applies(moment))
}

async fn check_piece(
    client: &mut Conn,
    piece: &Piece,
    options: &CheckOptions<'_>,
) -> Vec<CheckResult> {
    let missing = make_shared(client, piece, options.tables).await;
    let mut results = Vec::new();
    for condition in applicable(options.moment) {
        let unreadable = missing.iter().find(|(shared, _)| condition.reads(shared.name));
        results.push(condition.result(match unreadable {
            Some((_, error)) => CheckOutcome::Failed { error: error.clone() },
            None => {
                let sql = sql_of(condition.sql, piece, options.tables);
                outcome(client.query_first(sql).await)
            }
        }));
    }
    results
}

/// Asks the server whether its user may have what all conditions are stated on, so that it is said once.
async fn may_make_shared(client: &mut Conn) -> Result<(), SessionError> {
    for sql in [
        "CREATE TEMPORARY TABLE check_rights (nothing int) ENGINE=MyISAM",
        "DROP TEMPORARY TABLE check_rights",
    ] {
        client
            .query_drop(sql)
            .await
            .map_err(|error| SessionError::from_mariadb(&error, CommitState::NotSent))?;
    }
    Ok(())
}

/// Makes the shared tables; returns those that could not be made, with the reasons.
async fn make_shared(
    client: &mut Conn,
    piece: &Piece,
    tables: &TableNames,
) -> Vec<(&'static Shared, String)> {
    let mut missing: Vec<(&Shared, String)> = Vec::new();
    for shared in SHARED {
        if let Some((_, cause)) = missing.iter().find(|(other, _)| shared.sql.contains(other.name))
        {
            let cause = cause.clone();
            missing.push((shared, cause));
            continue;
        }
        let made = async {
            client.query_drop(format!("DROP TEMPORARY TABLE IF EXISTS {}", shared.name)).await?;
            // Not InnoDB: nothing of this is to be logged, or to push the database out of its cache.
            let query = sql_of(shared.sql, piece, tables);
            let sql = format!("CREATE TEMPORARY TABLE {} ENGINE=MyISAM AS {query}", shared.name);
            client.query_drop(sql).await
        };
        if let Err(error) = made.await {
            missing.push((shared, describe(&error)));
        }
    }
    missing
}
