//! Loading the tables: generated rows through `LOAD DATA LOCAL INFILE`, then secondary keys, then statistics.
//!
//! Where there are enough tables, a connection takes one after the other from its first row to its statistics. Fewer tables
//! than connections are divided among them, stage by stage; but under `innodb_autoinc_lock_mode` below 2 the server lets
//! only one `LOAD DATA` at a time into a table that numbers its rows, even where the rows bring their numbers. No file
//! exists: the client answers the server's request for one with rows as it generates them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::{BufMut, BytesMut};
use mysql_async::Conn;
use underlay_workload::sysbench::{Parameters, Row, Sampler};

use super::{schema, with_database};
use crate::mariadb::infile::{CHUNK_BYTES, Chunks, load_data};
use crate::mariadb::parallel::{execute, in_parallel};
use crate::parallel::on_runtime;
use crate::sysbench::{
    LoadReport, Piece, Spent, Stage, SysbenchError, has_table_per_connection, numbered, pieces,
    whole,
};
use crate::target::Target;

/// Creates and loads the tables, on `parallel` connections. Blocks; must not be called from within a runtime.
pub fn load(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
) -> Result<LoadReport, SysbenchError> {
    let target = with_database(&target.with_application_name("underlay-load"));
    on_runtime(async { schema::create(&target, parameters).await })?;
    let sampler = parameters.distribution.sampler(parameters.table_size);
    let began = Instant::now();
    let spent = Spent::default();
    if has_table_per_connection(parameters, parallel) {
        in_parallel(&target, (parallel, &[]), tables(parameters), async |conn, table| {
            let began = Instant::now();
            let piece = whole(parameters, *table);
            load_piece(conn, parameters, &sampler, piece, &spent.bytes).await?;
            let began = spent.add(Stage::Rows, began);
            execute(conn, &numbered(schema::KEYS_SQL, *table)).await?;
            let began = spent.add(Stage::Keys, began);
            execute(conn, &format!("ANALYZE TABLE sbtest{table}")).await?;
            spent.add(Stage::Settle, began);
            Ok::<_, SysbenchError>(())
        })?;
    } else {
        divided(&target, parameters, parallel, &sampler, &spent)?;
    }
    let last = Instant::now();
    on_runtime(async { schema::mark_complete(&target).await })?;
    spent.add(Stage::Settle, last);
    Ok(spent.report(parameters, began.elapsed()))
}

/// Work is taken from the end, so the first table comes first.
fn tables(parameters: &Parameters) -> Vec<u32> {
    (1..=parameters.tables).rev().collect()
}

/// Tables that several connections load at once, stage by stage.
fn divided(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
    sampler: &Sampler,
    spent: &Spent,
) -> Result<(), SysbenchError> {
    let began = Instant::now();
    in_parallel(target, (parallel, &[]), pieces(parameters), async |conn, piece| {
        load_piece(conn, parameters, sampler, *piece, &spent.bytes).await
    })?;
    let began = spent.add(Stage::Rows, began);
    in_parallel(target, (parallel, &[]), tables(parameters), async |conn, table| {
        let sql = numbered(schema::KEYS_SQL, *table);
        execute(conn, &sql).await.map_err(SysbenchError::from)
    })?;
    let began = spent.add(Stage::Keys, began);
    in_parallel(target, (parallel, &[]), tables(parameters), async |conn, table| {
        let sql = format!("ANALYZE TABLE sbtest{table}");
        execute(conn, &sql).await.map_err(SysbenchError::from)
    })?;
    spent.add(Stage::Settle, began);
    Ok(())
}

async fn load_piece(
    conn: &mut Conn,
    parameters: &Parameters,
    sampler: &Sampler,
    piece: Piece,
    bytes: &AtomicU64,
) -> Result<(), SysbenchError> {
    let Piece { table, first, last } = piece;
    let sql = format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE sbtest{table} CHARACTER SET latin1 \
         FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n' (id, k, c, pad)"
    );
    load_data(conn, &sql, async |chunks: Chunks| {
        let mut buffer = BytesMut::with_capacity(CHUNK_BYTES + 4096);
        for id in first..=last {
            put_row(&mut buffer, &Row::of(parameters.seed, table, id, sampler));
            if buffer.len() >= CHUNK_BYTES || id == last {
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
