//! The two queries on the server's sessions.

use super::chain::{LOCK, Link};
use super::sample::{Sample, Sampled};
use crate::item::WaitKey;
use crate::source::Status;
use crate::sql_session::APPLICATION_NAME;
use std::collections::BTreeMap;
use tokio_postgres::{Client, Error, Row, Statement};

/// Waiters whose blockers are looked up at one moment. Each look locks the server's lock table for
/// some microseconds.
pub(super) const WAITERS_MAX: i32 = 64;

/// Prepared on one connection.
#[derive(Clone)]
pub(super) struct Statements {
    counts: Statement,
    chains: Statement,
}

/// All sessions with their states. The function behind `pg_stat_activity` is several times
/// cheaper than the view, which joins names that are not needed. Main loops of server processes
/// waiting for something to do are left out.
fn counts_sql() -> String {
    format!(
        "SELECT coalesce(state, ''), coalesce(wait_event_type, ''), coalesce(wait_event, ''),
                coalesce(backend_type, ''), pid
           FROM pg_catalog.pg_stat_get_activity(NULL)
          WHERE application_name IS DISTINCT FROM '{APPLICATION_NAME}'
            AND (backend_type IN ('client backend', 'parallel worker')
                 OR wait_event_type IS DISTINCT FROM 'Activity')"
    )
}

/// Waiters with their blockers, the blockers, and, where a blocker beyond the limit is a waiter
/// itself, its blockers: all of one moment.
fn chains_sql() -> String {
    format!(
        "WITH activity AS MATERIALIZED (
             SELECT pid, state, wait_event_type, wait_event, backend_type
               FROM pg_catalog.pg_stat_get_activity(NULL)),
         near AS MATERIALIZED (
             SELECT pid, pg_catalog.pg_blocking_pids(pid) AS blockers
               FROM (SELECT pid FROM activity WHERE wait_event_type = '{LOCK}'
                      LIMIT {WAITERS_MAX}) AS waiters),
         far AS MATERIALIZED (
             SELECT pid, pg_catalog.pg_blocking_pids(pid) AS blockers
               FROM activity
              WHERE wait_event_type = '{LOCK}'
                AND pid IN (SELECT unnest(blockers) FROM near)
                AND pid NOT IN (SELECT pid FROM near)),
         looked_up AS (SELECT *, true AS counted FROM near
                       UNION ALL SELECT *, false FROM far)
         SELECT coalesce(state, ''), coalesce(wait_event_type, ''), coalesce(wait_event, ''),
                coalesce(backend_type, ''), activity.pid, blockers, coalesce(counted, false)
           FROM activity LEFT JOIN looked_up ON looked_up.pid = activity.pid
          WHERE counted IS NOT NULL
             OR activity.pid IN (SELECT unnest(blockers) FROM looked_up)"
    )
}

/// Prepares both.
async fn prepare(client: &Client) -> Result<Statements, Error> {
    Ok(Statements {
        counts: client.prepare(&counts_sql()).await?,
        chains: client.prepare(&chains_sql()).await?,
    })
}

/// Both statements, and whether sessions of other roles can be seen.
pub(super) async fn introduce(client: &Client) -> Result<(Statements, bool), Error> {
    Ok((prepare(client).await?, sees_everything(client).await?))
}

/// What that means for the source.
pub(super) fn judge(sees_everything: bool) -> Status {
    if sees_everything {
        Status::Available
    } else {
        Status::Degraded(
            "sessions of other roles are hidden; grant pg_read_all_stats to this login".to_string(),
        )
    }
}

/// Whether sessions of other roles can be seen in full.
async fn sees_everything(client: &Client) -> Result<bool, Error> {
    const SQL: &str = "SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')";
    client.query_one(SQL, &[]).await?.try_get(0)
}

/// One sample of all sessions.
pub(super) async fn counts(client: &Client, statements: &Statements) -> Result<Sample, Error> {
    let rows = client.query(&statements.counts, &[]).await?;
    let entry = |row: &Row| Ok(Sampled::new(row.try_get(4)?, key(row)?, None));
    rows.iter().map(entry).collect()
}

/// The lock chains of one moment, and the waiters they start from.
pub(super) async fn chains(
    client: &Client,
    statements: &Statements,
) -> Result<(BTreeMap<i32, Link>, Vec<i32>), Error> {
    let rows = client.query(&statements.chains, &[]).await?;
    let mut links = BTreeMap::new();
    let mut waiters = Vec::new();
    for row in &rows {
        let pid = row.try_get(4)?;
        if row.try_get(6)? {
            waiters.push(pid);
        }
        links.insert(pid, Link { key: key(row)?, blockers: row.try_get(5)? });
    }
    Ok((links, waiters))
}

fn key(row: &Row) -> Result<WaitKey, Error> {
    Ok(WaitKey {
        state: row.try_get(0)?,
        class: row.try_get(1)?,
        event: row.try_get(2)?,
        backend_type: row.try_get(3)?,
    })
}
