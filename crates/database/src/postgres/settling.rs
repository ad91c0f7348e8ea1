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

use tokio_postgres::Client;

use super::parallel::{in_parallel, on_connection, refused};
use crate::error::SessionError;
use crate::parallel::LoadError;
use crate::target::Target;

/// Settings of the connections.
const SETTINGS: &str =
    "SET synchronous_commit = local; SET statement_timeout = 0; SET lock_timeout = 0";
/// How often tables are vacuumed at most.
const VACUUMS_MAX: usize = 20;
/// Before the next time.
const PAUSE: Duration = Duration::from_millis(250);
/// The first transaction that has not begun. As transactions wrap around, only its lower half is kept with a row.
const NEXT_TRANSACTION: &str =
    "SELECT (pg_snapshot_xmax(pg_current_snapshot())::text::numeric % 4294967296)::text";
/// Those of the named tables that may have rows of transactions before `$2` that are not frozen. Pages are not asked for: a table has
/// some without any row, which nothing makes visible to all, when several connections made it longer at once.
const UNFROZEN: &str = "SELECT name FROM unnest($1::text[]) AS name JOIN pg_class ON pg_class.oid = name::regclass \
    WHERE age(relfrozenxid) > age($2::text::xid)";

/// Keeps autovacuum away from tables that are about to be loaded: what it analyses in the meantime keeps rows from being frozen,
/// and for long where processors are busy. [`settle`] gives back to them what the server has.
pub(crate) async fn leave_alone(client: &Client, tables: &[String]) -> Result<(), SessionError> {
    alter(client, tables, "SET (autovacuum_enabled = off)").await
}

/// Freezes the rows of loaded tables, then gathers statistics, on `parallel` connections, the last table first. `statistics` are
/// settings of the connections that gather them.
pub(crate) fn settle<E: LoadError>(
    target: &Target,
    parallel: usize,
    tables: &[String],
    statistics: &str,
) -> Result<(), E> {
    let loaded = on_connection(target, async |client| {
        let row = client.query_one(NEXT_TRANSACTION, &[]).await.map_err(refused)?;
        Ok::<String, E>(row.try_get(0).map_err(refused)?)
    })?;
    let mut unfrozen = tables.to_vec();
    let mut connections = parallel;
    for round in 0..VACUUMS_MAX {
        if round > 0 {
            std::thread::sleep(PAUSE);
            // A second connection has a snapshot while it is opened.
            connections = 1;
        }
        in_parallel(target, (connections, SETTINGS), unfrozen, async |client, table| {
            Ok::<_, E>(run(client, &format!("VACUUM (FREEZE) {table}")).await?)
        })?;
        unfrozen = on_connection(target, async |client| {
            Ok::<_, E>(not_frozen(client, tables, &loaded).await?)
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
    let settings = format!("{SETTINGS}; {statistics}");
    in_parallel(target, (parallel, &settings), tables.to_vec(), async |client, table| {
        Ok::<_, E>(run(client, &format!("ANALYZE {table}")).await?)
    })?;
    on_connection(target, async |client| {
        Ok(alter(client, tables, "RESET (autovacuum_enabled)").await?)
    })
}

async fn not_frozen(
    client: &Client,
    tables: &[String],
    before: &str,
) -> Result<Vec<String>, SessionError> {
    let rows = client.query(UNFROZEN, &[&tables, &before]).await.map_err(refused)?;
    rows.iter().map(|row| row.try_get(0).map_err(refused)).collect()
}

/// Changes all tables alike.
async fn alter(client: &Client, tables: &[String], how: &str) -> Result<(), SessionError> {
    let changes = tables.iter().map(|table| format!("ALTER TABLE {table} {how};"));
    run(client, &changes.collect::<String>()).await
}

async fn run(client: &Client, sql: &str) -> Result<(), SessionError> {
    client.batch_execute(sql).await.map_err(refused)
}
