//! What the sessions of a MariaDB are doing, from the states of their threads.
//!
//! States are mapped to the classes and events that records know; what has no class of its own keeps the
//! server's word as its event. Without the performance schema the server does not say for what a
//! thread waits, but two waits have states of their own: for the log at a commit, and for a row lock.

use super::tally::Sample;
use crate::item::WaitKey;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

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
