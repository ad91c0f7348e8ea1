//! What follows the loading of tables: their rows are frozen, so that the first run does not have to, and counted.
//!
//! A row can be frozen once no snapshot is older than the transaction that brought it. Every snapshot in its own database
//! prevents that, and so do the snapshots of connections that are just being opened. As long as a transaction of *any*
//! database of the server writes, even a new snapshot is as old as that transaction. So the snapshots of the load itself
//! must not meet its vacuums: nothing is analysed, by us or by autovacuum, before everything is frozen.
//!
//! What is deliberately not here: snapshots of other programs. The load waits for them for a few seconds, then continues
//! and reports it.

use std::time::Duration;

use super::connection::PostgresConnection;
use crate::connection::Connection;
use crate::error::SessionError;
use crate::loading::{in_parallel, on_connection};
use crate::parallel::LoadError;
use crate::target::Target;

/// How often tables are vacuumed at most.
const VACUUMS_MAX: usize = 20;
/// Before the next time.
const PAUSE: Duration = Duration::from_millis(250);
/// The first transaction that has not begun. As transactions wrap around, only its lower half is kept with a row.
const NEXT_TRANSACTION: &str =
    "SELECT (pg_snapshot_xmax(pg_current_snapshot())::text::numeric % 4294967296)::text";
/// Those of `{tables}` that may have rows of transactions before `{next}` that are not frozen. Pages are not asked for: a table has
/// some without any row, which nothing makes visible to all, when several connections made it longer at once.
const UNFROZEN: &str = "SELECT name FROM unnest('{{tables}}'::text[]) AS name \
    JOIN pg_class ON pg_class.oid = name::regclass WHERE age(relfrozenxid) > age('{next}'::xid)";

/// Keeps autovacuum away from tables that are about to be loaded: what it analyses in the meantime keeps rows from being frozen,
/// and for long where processors are busy. [`settle`] gives back to them what the server has.
pub(super) async fn leave_alone(target: &Target, tables: &[String]) -> Result<(), SessionError> {
    let mut connection = PostgresConnection::connect(target, 0).await?;
    alter(&mut connection, tables, "SET (autovacuum_enabled = off)").await
}

/// Freezes the rows of loaded tables, then gathers statistics, on `parallel` connections, the last table first. `statistics` are
/// settings of the connections that gather them.
pub(super) fn settle<E: LoadError>(
    target: &Target,
    parallel: usize,
    tables: &[String],
    statistics: &[&str],
) -> Result<(), E> {
    let next = on_connection(target, &[], async |connection| {
        let next = read(connection, NEXT_TRANSACTION).await?.into_iter().next();
        Ok::<_, E>(next.ok_or_else(SessionError::no_row)?)
    })?;
    let unfrozen_of = UNFROZEN.replace("{tables}", &tables.join(",")).replace("{next}", &next);
    let mut unfrozen = tables.to_vec();
    let mut connections = parallel;
    for round in 0..VACUUMS_MAX {
        if round > 0 {
            std::thread::sleep(PAUSE);
            // A second connection has a snapshot while it is opened.
            connections = 1;
        }
        in_parallel(target, (connections, &[]), unfrozen, async |connection, table| {
            Ok::<_, E>(run(connection, &format!("VACUUM (FREEZE) {table}")).await?)
        })?;
        unfrozen = on_connection(target, &[], async |connection| {
            Ok::<_, E>(read(connection, &unfrozen_of).await?)
        })?;
        if unfrozen.is_empty() {
            break;
        }
    }
    if !unfrozen.is_empty() {
        tracing::warn!(
            tables = ?unfrozen,
            "not all rows are frozen yet; the first run freezes the others"
        );
    }
    in_parallel(target, (parallel, statistics), tables.to_vec(), async |connection, table| {
        Ok::<_, E>(run(connection, &format!("ANALYZE {table}")).await?)
    })?;
    on_connection(target, &[], async |connection| {
        Ok(alter(connection, tables, "RESET (autovacuum_enabled)").await?)
    })
}

/// The texts that a statement returns.
async fn read(connection: &mut PostgresConnection, sql: &str) -> Result<Vec<String>, SessionError> {
    Ok(connection.read_all(sql).await?.into_iter().flatten().flatten().collect())
}

/// Changes all tables alike.
async fn alter(
    connection: &mut PostgresConnection,
    tables: &[String],
    how: &str,
) -> Result<(), SessionError> {
    let changes = tables.iter().map(|table| format!("ALTER TABLE {table} {how};"));
    run(connection, &changes.collect::<String>()).await
}

async fn run(connection: &mut PostgresConnection, sql: &str) -> Result<(), SessionError> {
    Ok(connection.run(&[sql]).await?)
}
