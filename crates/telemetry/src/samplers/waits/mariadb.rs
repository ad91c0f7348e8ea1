//! What the sessions of a MariaDB are doing, from the states of their threads.
//!
//! States are mapped to the classes and events that records know; what has no class of its own keeps the
//! server's word as its event. Without the performance schema the server does not say for what a
//! thread waits, but two waits can be told: for the log at a commit, which has a state of its own, and for
//! a row lock, which InnoDB's list of transactions knows, and with it who holds the lock.

use super::chain::{LOCK, Link};
use super::tally::Sample;
use crate::item::WaitKey;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use std::collections::BTreeMap;
use std::time::Duration;

/// Shortest time between two samples. InnoDB lists its transactions anew only when nobody has asked for the list
/// for 100 ms; whoever asks more often is told for ever what was true at first.
pub(super) const PERIOD_MIN: Duration = Duration::from_millis(110);

/// What this cannot see.
pub(super) const GAP: &str = "the states of threads do not tell reading pages and waiting for latches \
    from running; the scheduler's counters do, without a name";

/// Sessions by state, but for our own. Sleeping ones wait for their client.
const COUNTS: &str = "\
    SELECT command = 'Sleep', trx_state <=> 'LOCK WAIT', coalesce(state, ''), count(*)
      FROM information_schema.processlist
      LEFT JOIN information_schema.innodb_trx ON trx_mysql_thread_id = id
     WHERE id <> connection_id() AND command NOT IN ('Daemon', 'Binlog Dump', 'Connect')
       AND NOT (command = 'Sleep' AND db IS NULL)
     GROUP BY 1, 2, 3";

/// Waiters with one of their blockers per row, and the blockers: of the moment of the latest sample, because it is the same
/// list. A blocker without a session was prepared by a transaction manager, or has just ended.
const CHAINS: &str = "\
    SELECT trx.trx_mysql_thread_id, coalesce(command = 'Sleep', false), trx.trx_state = 'LOCK WAIT', coalesce(state, ''),
           blocker.trx_mysql_thread_id
      FROM information_schema.innodb_trx AS trx
      LEFT JOIN information_schema.processlist ON id = trx.trx_mysql_thread_id
      LEFT JOIN information_schema.innodb_lock_waits AS waits ON waits.requesting_trx_id = trx.trx_id
      LEFT JOIN information_schema.innodb_trx AS blocker ON blocker.trx_id = waits.blocking_trx_id";

/// Whether the server lists who waits for whom. MySQL 8 keeps that elsewhere.
pub(super) async fn lists_blockers(conn: &mut Conn) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM information_schema.tables \
                WHERE table_schema = 'information_schema' AND lower(table_name) = 'innodb_lock_waits'";
    Ok(conn.query_first::<u32, _>(sql).await?.unwrap_or_default() > 0)
}

/// The lock chains of the moment of the latest sample, and the waiters they start from.
pub(super) async fn chains(conn: &mut Conn) -> Result<(BTreeMap<i32, Link>, Vec<i32>), Error> {
    let rows: Vec<(i32, bool, bool, String, Option<i32>)> = conn.query(CHAINS).await?;
    let mut links: BTreeMap<i32, Link> = BTreeMap::new();
    for (thread, sleeps, waits, state, blocker) in rows {
        let key = key(sleeps && !waits, waits, &state);
        let link = links.entry(thread).or_insert_with(|| Link {
            // Its transaction is open, or it would not be listed.
            key: if key.state == "idle" {
                WaitKey { state: "idle in transaction".to_string(), ..key }
            } else {
                key
            },
            blockers: waits.then(Vec::new),
        });
        if let Some(blockers) = &mut link.blockers {
            blockers.extend(blocker);
        }
    }
    let waiters =
        links.iter().filter(|(_, link)| link.key.class == LOCK).map(|(thread, _)| *thread);
    let waiters = waiters.collect();
    Ok((links, waiters))
}

/// One sample of all sessions.
pub(super) async fn counts(conn: &mut Conn) -> Result<Sample, Error> {
    let rows: Vec<(bool, bool, String, u32)> = conn.query(COUNTS).await?;
    Ok(rows
        .into_iter()
        .map(|(sleeps, waits_for_row, state, count)| (key(sleeps, waits_for_row, &state), count))
        .collect())
}

fn key(sleeps: bool, waits_for_row: bool, state: &str) -> WaitKey {
    let lower = state.to_ascii_lowercase();
    let (class, event) = match lower.as_str() {
        _ if sleeps => ("Client", "ClientRead"),
        _ if waits_for_row => ("Lock", "InnodbRow"),
        // Writing and flushing the redo log is what a commit waits for.
        _ if lower.starts_with("commit") => ("IO", "InnodbLogFlush"),
        _ if lower.contains("metadata lock") || lower.contains("table lock") => ("Lock", "table"),
        _ => ("", state),
    };
    WaitKey {
        state: if sleeps { "idle" } else { "active" }.to_string(),
        class: class.to_string(),
        event: event.to_string(),
        backend_type: "client backend".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn states_become_classes() {
        let of = |sleeps, waits, state: &str| {
            let key = key(sleeps, waits, state);
            format!("{} {} {}", key.state, key.class, key.event)
        };
        assert_eq!(of(true, false, ""), "idle Client ClientRead");
        assert_eq!(of(false, true, "Updating"), "active Lock InnodbRow");
        assert_eq!(of(false, false, "Commit"), "active IO InnodbLogFlush");
        assert_eq!(of(false, false, "Sending data"), "active  Sending data");
    }
}
