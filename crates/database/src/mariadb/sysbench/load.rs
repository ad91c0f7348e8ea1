//! Loading the tables: generated rows through `LOAD DATA LOCAL INFILE`, then secondary keys, then statistics.
//!
//! Each table is loaded by one connection in one statement: while a table is empty the server can fill it without
//! a log of every row, and it lets only one `LOAD DATA` at a time number the rows of a table. Connections beyond the
//! number of tables therefore have nothing to do. No file exists: the client answers the server's request for one
//! with rows as it generates them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::{BufMut, BytesMut};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use underlay_workload::sysbench::{Parameters, Row, Sampler};

use super::{schema, with_database};
use crate::mariadb::connection::connect;
use crate::mariadb::infile::{CHUNK_BYTES, Chunks, load_data};
use crate::parallel::{on_runtime, spread};
use crate::sysbench::{LoadReport, SysbenchError, numbered};
use crate::target::Target;

/// Settings of the loaders' connections. Uniqueness is by construction.
const SETTINGS: &str = "SET SESSION unique_checks = 0, foreign_key_checks = 0, \
    innodb_lock_wait_timeout = 3600 /*M!100100 , max_statement_time = 0 */ /*!50708 , max_execution_time = 0 */";

/// Creates and loads the tables, on `parallel` connections. Blocks; must not be called from within a runtime.
pub fn load(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
) -> Result<LoadReport, SysbenchError> {
    let target = with_database(&target.with_application_name("underlay-load"));
    on_runtime(async { schema::create(&target, parameters).await })?;
    let sampler = parameters.distribution.sampler(parameters.table_size);
    let bytes = AtomicU64::new(0);
    // Work is taken from the end, so the first table comes first.
    let tables = || (1..=parameters.tables).rev().collect::<Vec<u32>>();
    let began = Instant::now();
    in_parallel(&target, parallel, tables(), async |conn, table| {
        load_table(conn, parameters, &sampler, *table, &bytes).await
    })?;
    let rows_duration = began.elapsed();

    let began = Instant::now();
    in_parallel(&target, parallel, tables(), async |conn, table| {
        Ok(conn.query_drop(numbered(schema::KEYS_SQL, *table)).await?)
    })?;
    let keys_duration = began.elapsed();

    let began = Instant::now();
    in_parallel(&target, parallel, tables(), async |conn, table| {
        Ok(conn.query_drop(format!("ANALYZE TABLE sbtest{table}")).await?)
    })?;
    on_runtime(async { schema::mark_complete(&target).await })?;
    Ok(LoadReport {
        rows: parameters.rows(),
        bytes: bytes.into_inner(),
        rows_duration,
        keys_duration,
        settle_duration: began.elapsed(),
    })
}

async fn load_table(
    conn: &mut Conn,
    parameters: &Parameters,
    sampler: &Sampler,
    table: u32,
    bytes: &AtomicU64,
) -> Result<(), SysbenchError> {
    let sql = format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE sbtest{table} CHARACTER SET latin1 \
         FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n' (id, k, c, pad)"
    );
    load_data(conn, &sql, async |chunks: Chunks| {
        let mut buffer = BytesMut::with_capacity(CHUNK_BYTES + 4096);
        for id in 1..=parameters.table_size {
            put_row(&mut buffer, &Row::of(parameters.seed, table, id, sampler));
            if buffer.len() >= CHUNK_BYTES || id == parameters.table_size {
                bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
                // A server that refuses says why itself.
                if chunks.send(buffer.split().freeze()).await.is_err() {
                    return;
                }
                buffer.reserve(CHUNK_BYTES + 4096);
            }
        }
    })
    .await
    .map_err(SysbenchError::from)
}

/// One line: tabs between, nothing in it needs an escape.
fn put_row(out: &mut BytesMut, row: &Row) {
    for number in [row.id, row.k] {
        put_number(out, number);
        out.put_u8(b'\t');
    }
    out.put_slice(&row.c);
    out.put_u8(b'\t');
    out.put_slice(&row.pad);
    out.put_u8(b'\n');
}

fn put_number(out: &mut BytesMut, number: u32) {
    let mut digits = [0u8; 10];
    let mut rest = number;
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.put_slice(&digits[first..]);
}

/// Carries out `work` on each of `items` on `parallel` threads with a connection each.
fn in_parallel<T: Send>(
    target: &Target,
    parallel: usize,
    items: Vec<T>,
    work: impl AsyncFn(&mut Conn, &T) -> Result<(), SysbenchError> + Sync,
) -> Result<(), SysbenchError> {
    spread(parallel, items, async |take| {
        let mut conn = connect(target).await?;
        conn.query_drop(SETTINGS).await?;
        while let Some(item) = take() {
            work(&mut conn, &item).await?;
        }
        // A courtesy: everything was answered.
        let _ = conn.disconnect().await;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use underlay_core::RootSeed;
    use underlay_workload::sysbench::{Distribution, Row};

    use super::{put_number, put_row};

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 999, 4_294_967_295] {
            let mut out = BytesMut::new();
            put_number(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }

    #[test]
    fn a_row_is_a_line_of_four_fields() {
        let row = Row::of(RootSeed(1), 2, 31, &Distribution::Uniform.sampler(100));
        let mut out = BytesMut::new();
        put_row(&mut out, &row);
        let text = std::str::from_utf8(&out).unwrap();
        let fields: Vec<&str> = text.strip_suffix('\n').unwrap().split('\t').collect();
        assert_eq!(fields[..2], ["31".to_string(), row.k.to_string()]);
        assert_eq!((fields[2].as_bytes(), fields[3].as_bytes()), (&row.c[..], &row.pad[..]));
        assert_eq!(fields.len(), 4);
    }
}
