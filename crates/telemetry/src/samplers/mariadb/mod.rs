//! Status counters of a MariaDB or MySQL server, raw.
//!
//! * **Reads** `SHOW GLOBAL STATUS`, as far as it is about InnoDB, commits, sessions, bytes and handlers; waits and
//!   file I/O of the performance schema where that is on (see `performance`).
//! * **Emits** `status.<name>` in lower case for every one of them that is a number; `waits.<event>` and
//!   `file.<kind>.<operation>` with their times.
//! * **Costs** about 0.3 ms of CPU here and 1 ms in the server per tick.
//! * **Needs** a login, no privilege.
//!
//! Names are discovered as they are met, so that no version is built in: they come and go between
//! versions, and an event of the performance schema is there once it has happened. The counters of a server that was restarted start again at zero: that is a reset for the reader.

mod performance;

use crate::declare::{SamplerDoc, SeriesDoc};
use crate::identity::{Identity, identify};
use crate::mariadb_session::MariadbSession;
use crate::source::{SampleError, Sampler, Status};
use mysql_async::prelude::Queryable;
use std::collections::HashMap;
use underlay_core::series::{Layer, SeriesSpec};
use underlay_database::Target;

/// The declaration.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "mariadb",
    layer: Layer::Database,
    reads: "SHOW GLOBAL STATUS: Innodb_*, Com_commit and other statements, Threads_*, Bytes_*, Handler_*, Binlog_*, Aborted_*, Queries, Created_tmp_*; where the performance schema is on, its events_waits_summary_global_by_event_name and file_summary_by_event_name",
    costs: "one round trip: 0.3 ms of CPU here, 1 ms in the server; two more for the performance schema",
    needs: "a login to the server; performance_schema=ON and SELECT on it for waits and file I/O, otherwise a note \
        says what is missing",
    traps: &[
        "counters are of the whole server and restart at zero with it",
        "com_commit counts COMMIT statements, also within procedures; a statement that commits by itself is not one",
        "handler_commit counts one for each statement that used a table, within transactions too, one for each COMMIT, and those of a binary log",
        "innodb_os_log_written counts what was written including the filling of blocks; innodb_lsn_current is the position in the log",
        "innodb_data_fsyncs does not count writes that a file opened for synchronous writing makes durable",
        "innodb_row_lock_time counts in ms and only waits that have ended",
        "only instrumented events are timed: InnoDB's latches need performance_schema_instrument='wait/synch/%=ON', which costs the server CPU time",
        "MariaDB since 10.8 does not instrument the file of InnoDB's redo log: what a commit waits for is known from the thread's state alone",
        "waits of the performance schema nest: io.table.* contains the file I/O and latches of the same rows",
        "file.*.others counts opening, closing and flushing; a flush of a file opened for synchronous writing is part of its write",
        "a page that innodb_buffer_pool_reads counts was not in InnoDB's cache; with O_DIRECT it came from the device",
    ],
    series: &[
        SeriesDoc::gauge(
            "status.<level>",
            "<by name>",
            "every status number that is a level: threads, pages, pending and current counts, ages, averages, maxima",
        ),
        SeriesDoc::counter("status.<counter>", "<by name>", "every other status number"),
        SeriesDoc::counter(
            "waits.<event>",
            "waits",
            "waits that have ended, by event of the performance schema, all threads",
        ),
        SeriesDoc::counter("waits.<event>.time", "ns", "time of these waits"),
        SeriesDoc::counter(
            "file.<kind>.<operation>",
            "requests",
            "reads, writes and others (flushes, opens, ...) by kind of file, as innodb.innodb_data_file",
        ),
        SeriesDoc::counter("file.<kind>.<operation>.time", "ns", "time of these requests"),
        SeriesDoc::counter("file.<kind>.<operation>.bytes", "bytes", "bytes of reads and writes"),
    ],
};

/// What is asked; the server picks the rows.
const QUERY: &str = "SHOW GLOBAL STATUS WHERE variable_name REGEXP \
    '^(Innodb_|Com_(begin|commit|rollback|select|insert|update|delete|call_procedure|stmt_execute)$|Threads_|\
Bytes_|Handler_(commit|rollback|read_.*|write|update|delete|prepare)$|Binlog_|Aborted_|Queries$|\
Created_tmp_|Slow_queries$|Opened_tables$|Uptime$)'";

/// Parts of names of numbers that are levels, not counters.
const LEVELS: [&str; 25] = [
    "_pending",
    "pending_",
    "_current",
    "pages_data",
    "pages_dirty",
    "pages_free",
    "pages_misc",
    "pages_total",
    "pages_old",
    "pages_lru",
    "bytes_data",
    "bytes_dirty",
    "_age",
    "history_list",
    "page_size",
    "_avg",
    "_max",
    "_mem_",
    "num_open",
    "open_files",
    "threads_connected",
    "threads_running",
    "threads_cached",
    "ibuf_size",
    "ibuf_free_list",
];

/// Positions in the log: they only grow, whatever their name says.
const POSITIONS: [&str; 3] =
    ["innodb_lsn_current", "innodb_lsn_flushed", "innodb_lsn_last_checkpoint"];

/// The sampler.
struct StatusCounters {
    identity: Identity,
    session: Option<MariadbSession>,
    /// Number of the connection on which the names were last compared.
    generation: u64,
    places: HashMap<String, usize>,
    /// Whether the performance schema is read on this connection.
    has_performance: bool,
    facts: Vec<String>,
}

/// The sampler of this server.
pub(crate) fn status_counters(target: &Target) -> Box<dyn Sampler> {
    let mut identity = Identity::available(&DOC, Vec::new());
    let session = match MariadbSession::new(target) {
        Ok(session) => {
            identity.status = Status::Absent("not connected yet".to_string());
            Some(session)
        }
        Err(error) => {
            identity.status = Status::Absent(format!("could not make a runtime: {error}"));
            None
        }
    };
    Box::new(StatusCounters {
        identity,
        session,
        generation: 0,
        places: HashMap::new(),
        has_performance: false,
        facts: Vec::new(),
    })
}

impl StatusCounters {
    fn read(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        let Some(session) = &mut self.session else {
            return Err(self.identity.absence());
        };
        let generation = session.connected()?;
        if generation != self.generation {
            let version: Option<String> =
                session.run(async |conn| conn.query_first("SELECT version()").await)?;
            let absence = session.run(async |conn| performance::absence(conn).await)?;
            self.has_performance = absence.is_none();
            let performance = absence.unwrap_or_else(|| "on".to_string());
            self.facts = version.into_iter().map(|text| format!("version = {text}")).collect();
            self.facts.push(format!("performance_schema = {performance}"));
        }
        let rows: Vec<(String, String)> = session.run(async |conn| conn.query(QUERY).await)?;
        let performance = if self.has_performance {
            session.run(async |conn| performance::read(conn).await)?
        } else {
            Vec::new()
        };
        self.generation = generation;
        self.identity.status = Status::Available;
        values.resize(self.identity.series.len(), f64::NAN);
        for (name, value) in rows {
            if let Ok(number) = value.parse() {
                let name = name.to_ascii_lowercase();
                self.put(values, &name, number, || series(&name));
            }
        }
        for number in &performance {
            self.put(values, &number.name, number.value, || number.spec());
        }
        Ok(())
    }

    /// A number at the place of its series; a new series where there is none of this name yet.
    fn put(
        &mut self,
        values: &mut Vec<f64>,
        name: &str,
        number: f64,
        spec: impl FnOnce() -> SeriesSpec,
    ) {
        match self.places.get(name) {
            Some(place) => values[*place] = number,
            None => {
                self.places.insert(name.to_string(), self.identity.series.len());
                self.identity.series.push(spec());
                values.push(number);
            }
        }
    }
}

/// The series of a status variable.
fn series(name: &str) -> SeriesSpec {
    let is_level = LEVELS.iter().any(|part| name.contains(part)) && !POSITIONS.contains(&name);
    let unit = match name {
        _ if name.ends_with("_time") || name.contains("_time_") => "ms",
        "uptime" => "s",
        "innodb_data_read" | "innodb_data_written" | "innodb_os_log_written" => "bytes",
        _ if name.contains("bytes_") || name.starts_with("innodb_lsn_") => "bytes",
        _ if name.contains("pages_") => "pages",
        _ => "1",
    };
    let name = format!("status.{name}");
    if is_level { SeriesSpec::gauge(name, unit) } else { SeriesSpec::counter(name, unit) }
}

impl Sampler for StatusCounters {
    identify!();

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        let outcome = self.read(values);
        if let Err(error) = &outcome {
            self.identity.status.still_absent_because(error);
        }
        outcome
    }

    fn facts(&self) -> Vec<String> {
        self.facts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{series, status_counters};
    use crate::source::Status;
    use underlay_core::series::SeriesKind;
    use underlay_database::Target;

    #[test]
    fn gauges_are_distinguished_from_counters() {
        let kind = |name: &str| series(name).kind;
        for name in ["threads_running", "innodb_buffer_pool_pages_dirty", "innodb_checkpoint_age"] {
            assert_eq!(kind(name), SeriesKind::Gauge, "{name}");
        }
        for name in [
            "com_commit",
            "innodb_data_fsyncs",
            "innodb_lsn_current",
            "innodb_buffer_pool_pages_flushed",
        ] {
            assert_eq!(kind(name), SeriesKind::Counter, "{name}");
        }
        assert_eq!(series("innodb_row_lock_time").unit, "ms");
    }

    #[test]
    fn a_missing_server_is_an_absence_that_says_why() {
        let target = Target::mariadb_socket("/nonexistent/socket".into(), "nobody");
        let mut nowhere = status_counters(&target);
        assert!(nowhere.sample(&mut Vec::new()).is_err());
        assert!(matches!(nowhere.status(), Status::Absent(why) if why.contains("nonexistent")));
    }
}
