//! Waits by event and file I/O by kind from a server whose performance schema is on, raw.
//!
//! Its timers are in picoseconds and handed on in nanoseconds. Events that have never happened are left out, so the
//! list of series grows while a server runs. Nothing is switched on here: instruments are the server's settings.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use underlay_core::series::SeriesSpec;

/// Picoseconds in a nanosecond.
const PS_PER_NS: f64 = 1000.0;

/// A number with the name and the unit of its series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) value: f64,
}

impl Number {
    fn new(name: String, unit: &'static str, value: f64) -> Number {
        Number { name, unit, value }
    }

    pub(super) fn spec(&self) -> SeriesSpec {
        SeriesSpec::counter(self.name.clone(), self.unit)
    }
}

/// Whether the server keeps it and we may read it; why not otherwise.
pub(super) async fn absence(conn: &mut Conn) -> Result<Option<String>, Error> {
    let on: Option<bool> = conn.query_first("SELECT @@performance_schema").await?;
    if on != Some(true) {
        return Ok(Some("off: no waits by event and no file I/O by kind".to_string()));
    }
    let readable =
        "SELECT 1 FROM performance_schema.events_waits_summary_global_by_event_name LIMIT 1";
    match conn.query_drop(readable).await {
        Ok(()) => Ok(None),
        // Not to be allowed to read is no reason to lose the connection.
        Err(Error::Server(error)) => Ok(Some(format!("on, but not readable: {}", error.message))),
        Err(error) => Err(error),
    }
}

const WAITS: &str = "SELECT event_name, count_star, sum_timer_wait \
      FROM performance_schema.events_waits_summary_global_by_event_name \
     WHERE count_star > 0 AND event_name LIKE 'wait/%'";

const FILES: &str = "SELECT event_name, count_read, sum_timer_read, sum_number_of_bytes_read, \
           count_write, sum_timer_write, sum_number_of_bytes_write, count_misc, sum_timer_misc \
      FROM performance_schema.file_summary_by_event_name WHERE count_star > 0";

type FileRow = (String, u64, u64, i64, u64, u64, i64, u64, u64);

/// Everything that has happened since the server started.
pub(super) async fn read(conn: &mut Conn) -> Result<Vec<Number>, Error> {
    let waits: Vec<(String, u64, u64)> = conn.query(WAITS).await?;
    let files: Vec<FileRow> = conn.query(FILES).await?;
    Ok(waits.into_iter().flat_map(of_wait).chain(files.into_iter().flat_map(of_file)).collect())
}

fn of_wait((event, count, time_ps): (String, u64, u64)) -> [Number; 2] {
    let name = short(&event);
    [
        Number::new(format!("waits.{name}"), "waits", count as f64),
        Number::new(format!("waits.{name}.time"), "ns", time_ps as f64 / PS_PER_NS),
    ]
}

fn of_file(row: FileRow) -> [Number; 8] {
    let (event, reads, read_ps, read_bytes, writes, write_ps, written_bytes, others, other_ps) =
        row;
    let kind = event.strip_prefix("wait/io/file/").unwrap_or(&event).replace('/', ".");
    let number =
        |what: &str, unit, value: f64| Number::new(format!("file.{kind}.{what}"), unit, value);
    [
        number("reads", "requests", reads as f64),
        number("reads.time", "ns", read_ps as f64 / PS_PER_NS),
        number("reads.bytes", "bytes", read_bytes as f64),
        number("writes", "requests", writes as f64),
        number("writes.time", "ns", write_ps as f64 / PS_PER_NS),
        number("writes.bytes", "bytes", written_bytes as f64),
        number("others", "requests", others as f64),
        number("others.time", "ns", other_ps as f64 / PS_PER_NS),
    ]
}

/// `synch.mutex.innodb.trx_mutex` of `wait/synch/mutex/innodb/trx_mutex`.
fn short(event: &str) -> String {
    event.strip_prefix("wait/").unwrap_or(event).replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::{Number, of_file, of_wait};

    #[test]
    fn events_become_series_in_nanoseconds() {
        let event = "wait/io/file/innodb/innodb_data_file".to_string();
        assert_eq!(
            of_wait((event.clone(), 3, 4_500_000)),
            [
                Number::new("waits.io.file.innodb.innodb_data_file".to_string(), "waits", 3.0),
                Number::new("waits.io.file.innodb.innodb_data_file.time".to_string(), "ns", 4500.0),
            ]
        );
        let numbers = of_file((event, 1, 2_000, 16384, 4, 5_000, 65536, 7, 8_000));
        let values: Vec<f64> = numbers.iter().map(|number| number.value).collect();
        assert_eq!(values, [1.0, 2.0, 16384.0, 4.0, 5.0, 65536.0, 7.0, 8.0]);
        assert_eq!(numbers[0].name, "file.innodb.innodb_data_file.reads");
        assert_eq!(
            (numbers[7].name.as_str(), numbers[7].unit),
            ("file.innodb.innodb_data_file.others.time", "ns")
        );
    }
}
