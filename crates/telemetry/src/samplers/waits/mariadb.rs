//! What the sessions of a MariaDB are doing, from the states of their threads.
//!
//! States are mapped to the classes and events that records know; what has no class of its own keeps the
//! server's word as its event. Without the performance schema the server does not say for what a
//! thread waits, but three waits can be recognised: for the log at a commit, which has a state of its own; for
//! a row lock, which InnoDB's list of transactions knows, and with it who holds the lock; and, of a server on
//! this host, for a file, which the kernel knows.
//!
//! Where the performance schema keeps `events_waits_current`, the innermost wait of each thread says what a
//! session without row lock waits for; the event is spelled in the words of [`super::mariadb_event`].

use super::chain::{LOCK, Link};
use super::mariadb_event;
use super::sample::{Sample, Sampled};
use super::threads::{Doing, FileCall, Operation};
use crate::item::WaitKey;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::time::Duration;

/// Links and waiters by connection, and the kernel's numbers of the connections' threads.
pub(super) type Chains = (BTreeMap<i32, Link>, Vec<i32>, BTreeMap<i32, i32>);

/// Shortest time between two samples. InnoDB refreshes its list of transactions only if the list was not queried
/// for 100 ms; a client that queries more often gets the same stale list forever.
pub(super) const PERIOD_MIN: Duration = Duration::from_millis(110);

/// The class of waits for files.
const IO: &str = "IO";
/// Writing and flushing the redo log.
const LOG_FLUSH: &str = "InnodbLogFlush";
const DATA_FILE_READ: &str = "DataFileRead";

/// What cannot be seen without waits of threads.
const GAP: &str = "thread states do not distinguish page reads and latch waits \
    from running; the scheduler's counters do, without a name";

/// What a connection has found the server to know.
#[derive(Clone, Debug)]
pub(super) struct Knows {
    /// Who waits for whom. MySQL 8 keeps that elsewhere.
    pub(super) blockers: bool,
    /// For what each thread waits.
    waits: bool,
    /// The kernel's numbers of threads.
    threads: bool,
    /// What is missing, in words; empty if nothing is.
    pub(super) gaps: String,
}

/// Sessions with the numbers of their threads, but for our own, without their waits. Sleeping ones wait for their client.
const COUNTS: &str = "\
    SELECT <thread>, command = 'Sleep', trx_state <=> 'LOCK WAIT', coalesce(state, ''), '', ''
      FROM information_schema.processlist
      LEFT JOIN information_schema.innodb_trx ON trx_mysql_thread_id = id
     WHERE id <> connection_id() AND command NOT IN ('Daemon', 'Binlog Dump', 'Connect')
       AND NOT (command = 'Sleep' AND db IS NULL)";

/// The same with the innermost wait of each thread that has not ended, and its operation. A wait for the rows of a
/// table is a frame around others.
const COUNTS_WITH_WAITS: &str = "\
    SELECT <thread>, command = 'Sleep', trx_state <=> 'LOCK WAIT', coalesce(state, ''), coalesce(event, ''),
           coalesce(operation, '')
      FROM information_schema.processlist
      LEFT JOIN information_schema.innodb_trx ON trx_mysql_thread_id = id
      LEFT JOIN (SELECT processlist_id AS waiter,
                        substring_index(group_concat(event_name ORDER BY event_id DESC), ',', 1) AS event,
                        substring_index(group_concat(operation ORDER BY event_id DESC), ',', 1) AS operation
                   FROM performance_schema.events_waits_current
                   JOIN performance_schema.threads USING (thread_id)
                  WHERE end_event_id IS NULL AND processlist_id IS NOT NULL
                    AND event_name LIKE 'wait/%' AND event_name NOT LIKE 'wait/io/table/%'
                  GROUP BY processlist_id) AS waits ON waiter = id
     WHERE id <> connection_id() AND command NOT IN ('Daemon', 'Binlog Dump', 'Connect')
       AND NOT (command = 'Sleep' AND db IS NULL)";

/// Waiters with one of their blockers per row, and the blockers: of the moment of the latest sample, because it is the same
/// list. A blocker without a session was prepared by a transaction manager, or has just ended.
const CHAINS: &str = "\
    SELECT trx.trx_mysql_thread_id, coalesce(command = 'Sleep', false), trx.trx_state = 'LOCK WAIT', coalesce(state, ''),
           blocker.trx_mysql_thread_id, <thread>
      FROM information_schema.innodb_trx AS trx
      LEFT JOIN information_schema.processlist ON id = trx.trx_mysql_thread_id
      LEFT JOIN information_schema.innodb_lock_waits AS waits ON waits.requesting_trx_id = trx.trx_id
      LEFT JOIN information_schema.innodb_trx AS blocker ON blocker.trx_id = waits.blocking_trx_id";

/// Whether the list of sessions has the numbers of their threads: MySQL's has not.
const THREADS: &str = "SELECT count(*) FROM information_schema.columns \
    WHERE table_schema = 'information_schema' AND table_name = 'PROCESSLIST' AND column_name = 'TID'";
/// What must be on for waits of threads to be known.
const CONSUMERS: &str = "SELECT count(*) FROM performance_schema.setup_consumers WHERE enabled = 'YES' \
    AND name IN ('events_waits_current', 'global_instrumentation', 'thread_instrumentation')";
/// Instrumented latches.
const LATCHES: &str = "SELECT count(*) FROM performance_schema.setup_instruments \
    WHERE enabled = 'YES' AND timed = 'YES' AND name LIKE 'wait/synch/%/innodb/%'";

/// Asks the server what it knows.
pub(super) async fn introduce(conn: &mut Conn) -> Result<Knows, Error> {
    let sql = "SELECT count(*) FROM information_schema.tables \
                WHERE table_schema = 'information_schema' AND lower(table_name) = 'innodb_lock_waits'";
    let blockers = conn.query_first::<u32, _>(sql).await?.unwrap_or_default() > 0;
    let threads = conn.query_first::<u32, _>(THREADS).await?.unwrap_or_default() > 0;
    let on: Option<bool> = conn.query_first("SELECT @@performance_schema").await?;
    let without =
        |why: &str| Knows { blockers, waits: false, threads, gaps: format!("{why}: {GAP}") };
    if on != Some(true) {
        return Ok(without("performance_schema is off"));
    }
    let consumers = match conn.query_first::<u32, _>(CONSUMERS).await {
        Ok(number) => number.unwrap_or_default(),
        // Not to be allowed to read is no reason to lose the connection.
        Err(Error::Server(error)) => {
            return Ok(without(&format!("performance_schema is not readable ({})", error.message)));
        }
        Err(error) => return Err(error),
    };
    if consumers < 3 {
        return Ok(without(
            "performance_schema keeps no waits of threads \
             (performance_schema_consumer_events_waits_current=ON would)",
        ));
    }
    let latches: u32 = conn.query_first(LATCHES).await?.unwrap_or_default();
    let gaps = if latches > 0 {
        String::new()
    } else {
        "InnoDB's latches are not instrumented and look like running \
         (performance_schema_instrument='wait/synch/%=ON' would name them)"
            .to_string()
    };
    Ok(Knows { blockers, waits: true, threads, gaps })
}

impl Knows {
    /// A query with the column that has the numbers of threads, if there is one.
    fn asked(&self, sql: &str) -> String {
        sql.replace("<thread>", if self.threads { "coalesce(tid, 0)" } else { "0" })
    }
}

/// The lock chains of the moment of the latest sample, by connection, the waiters they start from, and the kernel's
/// numbers of their threads.
pub(super) async fn chains(conn: &mut Conn, knows: &Knows) -> Result<Chains, Error> {
    let rows: Vec<(i32, bool, bool, String, Option<i32>, i32)> =
        conn.query(knows.asked(CHAINS)).await?;
    let mut links: BTreeMap<i32, Link> = BTreeMap::new();
    let mut kernel_threads = BTreeMap::new();
    for (thread, sleeps, waits, state, blocker, kernel_thread) in rows {
        kernel_threads.insert(thread, kernel_thread);
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
    Ok((links, waiters, kernel_threads))
}

/// One sample of all sessions.
pub(super) async fn counts(conn: &mut Conn, knows: &Knows) -> Result<Sample, Error> {
    let sql = if knows.waits { COUNTS_WITH_WAITS } else { COUNTS };
    let rows: Vec<(i32, bool, bool, String, String, String)> = conn.query(knows.asked(sql)).await?;
    Ok(rows
        .into_iter()
        .map(|(thread, sleeps, waits_for_row, state, event, operation)| {
            let mut key = key(sleeps, waits_for_row, &state);
            if key.state == "active" && key.class != LOCK && !event.is_empty() {
                (key.class, key.event) = mariadb_event::words(&event, &operation);
            }
            Sampled::new(thread, key, None)
        })
        .collect())
}

/// Names the wait of sessions that the server calls running, and whose threads sleep in I/O. What the server says is a
/// little older than the state of the thread: a session may have begun to commit in between, so the file in `call`
/// decides. Where it is not known the session reads, because outside of a commit InnoDB's sessions do no other I/O.
pub(super) fn name_io(sample: &mut Sample, call: impl Fn(i32) -> Option<FileCall>) {
    for session in sample {
        let key = &mut session.key;
        if session.doing == Some(Doing::InIo) && key.state == "active" && key.class.is_empty() {
            let event = call(session.thread).map_or(DATA_FILE_READ, |call| event_of(&call));
            (key.class, key.event) = (IO.to_string(), event.to_string());
        }
    }
}

fn event_of(call: &FileCall) -> &'static str {
    let name = call.file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    match call.operation {
        _ if name.starts_with("ib_logfile") => LOG_FLUSH,
        Operation::Read => DATA_FILE_READ,
        Operation::Write => "DataFileWrite",
        Operation::Sync => "DataFileSync",
    }
}

fn key(sleeps: bool, waits_for_row: bool, state: &str) -> WaitKey {
    let lower = state.to_ascii_lowercase();
    let (class, event) = match lower.as_str() {
        _ if sleeps => ("Client", "ClientRead"),
        _ if waits_for_row => ("Lock", "InnodbRow"),
        // Writing and flushing the redo log is what a commit waits for.
        _ if lower.starts_with("commit") => (IO, LOG_FLUSH),
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
    use super::{key, name_io};
    use crate::samplers::waits::sample::Sampled;
    use crate::samplers::waits::threads::{Doing, FileCall, Operation};

    #[test]
    fn a_session_asleep_in_io_outside_of_a_commit_is_named_by_its_file() {
        let of = |thread, state: &str, doing| {
            Sampled::new(thread, key(false, false, state), Some(doing))
        };
        let mut sample = vec![
            of(1, "Updating", Doing::InIo),
            of(1, "Updating", Doing::Asleep),
            of(1, "Commit", Doing::InIo),
            of(2, "Updating", Doing::InIo),
            of(3, "Updating", Doing::InIo),
            of(4, "Updating", Doing::InIo),
        ];
        name_io(&mut sample, |thread| {
            let (operation, file) = match thread {
                2 => (Operation::Sync, "/data/ib_logfile0"),
                3 => (Operation::Read, "/data/shop/t.ibd"),
                4 => (Operation::Write, "/data/ibdata1"),
                _ => return None,
            };
            Some(FileCall { operation, file: file.into() })
        });
        let events: Vec<&str> = sample.iter().map(|session| session.key.event.as_str()).collect();
        assert_eq!(
            events,
            [
                "DataFileRead",
                "Updating",
                "InnodbLogFlush",
                "InnodbLogFlush",
                "DataFileRead",
                "DataFileWrite"
            ]
        );
    }

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
