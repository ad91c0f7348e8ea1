//! Loading the tables: generated rows through binary COPY, then keys, then statistics.
//!
//! Where there are enough tables, a connection takes one after the other from its first row to its statistics: rows and
//! keys come in the transaction that truncated the table, so that rows are written frozen, every page is seen by all at
//! once, and the vacuum has nothing left to do; a server with `wal_level = minimal` writes no log for them. Fewer tables
//! than connections are divided among them, stage by stage, and the vacuum freezes the rows.

use bytes::{BufMut, BytesMut};
use futures_util::SinkExt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio_postgres::Client;
use underlay_workload::sysbench::{Parameters, Row, Sampler};

use super::schema::{self, KEYS_SQL};
use crate::postgres::parallel::{in_parallel, on_connection};
use crate::postgres::settling::{leave_alone, settle};
use crate::sysbench::{
    LoadReport, Piece, Spent, Stage, SysbenchError, has_table_per_connection, numbered, pieces,
    whole,
};
use crate::target::Target;

/// Settings of the loaders' connections; see the load of TPC-C.
const SETTINGS: &str = "SET maintenance_work_mem = '256MB'; SET synchronous_commit = local; \
    SET statement_timeout = 0; SET lock_timeout = 0";
/// Besides, of connections that each have a table: there are as many as the user wants to be busy, so that helpers would
/// only stand in each other's way.
const ALONE: &str = "SET max_parallel_maintenance_workers = 0";
/// Statistics from 3,000 rows of a table: its columns are drawn evenly, so ten times as many would say the same. For all
/// columns, or the server would soon repeat it by itself.
const STATISTICS: &str = "SET default_statistics_target = 10";
/// Size of a message to the server.
const CHUNK_BYTES: usize = 128 << 10;
/// Before and after the rows; see the manual, chapter COPY, "Binary Format".
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: &[u8] = &[0xff, 0xff];

/// Creates and loads the tables, on `parallel` connections. Blocks; must not be called from within a runtime.
///
/// # Errors
/// When there are such tables already. After any other error they are there without their mark of completion:
/// they cannot be used by mistake, and can be dropped.
pub fn load(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
) -> Result<LoadReport, SysbenchError> {
    let target = target.with_application_name("underlay-load");
    on_connection(&target, async |client| schema::create(client, parameters).await)?;
    let sampler = parameters.distribution.sampler(parameters.table_size);
    let began = Instant::now();
    let spent = Spent::default();
    if has_table_per_connection(parameters, parallel) {
        let settings = format!("{SETTINGS}; {ALONE}; {STATISTICS}");
        in_parallel(&target, (parallel, &settings), tables(parameters), async |client, table| {
            load_table(client, parameters, &sampler, *table, &spent).await
        })?;
    } else {
        divided(&target, parameters, parallel, &sampler, &spent)?;
    }
    let last = Instant::now();
    on_connection(&target, async |client| {
        schema::mark_complete(client).await?;
        // Only some roles may ask for a checkpoint; without it the first run has a little more to write.
        if let Err(error) = client.batch_execute("CHECKPOINT").await {
            tracing::debug!(%error, "no checkpoint after the load");
        }
        Ok::<_, SysbenchError>(())
    })?;
    spent.add(Stage::Settle, last);
    Ok(spent.report(parameters, began.elapsed()))
}

/// Work is taken from the end, so the first table comes first.
fn tables(parameters: &Parameters) -> Vec<u32> {
    (1..=parameters.tables).rev().collect()
}

/// One table from its rows to its statistics.
async fn load_table(
    client: &Client,
    parameters: &Parameters,
    sampler: &Sampler,
    table: u32,
    spent: &Spent,
) -> Result<(), SysbenchError> {
    let began = Instant::now();
    client.batch_execute(&format!("BEGIN; TRUNCATE sbtest{table}")).await?;
    let piece = whole(parameters, table);
    copy_piece(client, parameters, sampler, piece, ", FREEZE", &spent.bytes).await?;
    let began = spent.add(Stage::Rows, began);
    client.batch_execute(&format!("{}; COMMIT", keys_of(parameters, table))).await?;
    let began = spent.add(Stage::Keys, began);
    client.batch_execute(&format!("VACUUM (FREEZE, ANALYZE) sbtest{table}")).await?;
    spent.add(Stage::Settle, began);
    Ok(())
}

/// Tables that several connections load at once, stage by stage.
fn divided(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
    sampler: &Sampler,
    spent: &Spent,
) -> Result<(), SysbenchError> {
    let names: Vec<String> =
        tables(parameters).into_iter().map(|table| format!("sbtest{table}")).collect();
    on_connection(target, async |client| {
        Ok::<_, SysbenchError>(leave_alone(client, &names).await?)
    })?;
    let began = Instant::now();
    in_parallel(target, (parallel, SETTINGS), pieces(parameters), async |client, piece| {
        copy_piece(client, parameters, sampler, *piece, "", &spent.bytes).await
    })?;
    let began = spent.add(Stage::Rows, began);
    in_parallel(target, (parallel, SETTINGS), tables(parameters), async |client, table| {
        Ok::<_, SysbenchError>(client.batch_execute(&keys_of(parameters, *table)).await?)
    })?;
    let began = spent.add(Stage::Keys, began);
    settle::<SysbenchError>(target, parallel, &names, STATISTICS)?;
    spent.add(Stage::Settle, began);
    Ok(())
}

/// Keys of a table; the next inserted row gets the id after the last loaded one.
fn keys_of(parameters: &Parameters, table: u32) -> String {
    let (keys, last) = (numbered(KEYS_SQL, table), parameters.table_size);
    format!("{keys}; SELECT setval(pg_get_serial_sequence('sbtest{table}', 'id'), {last})")
}

async fn copy_piece(
    client: &Client,
    parameters: &Parameters,
    sampler: &Sampler,
    piece: Piece,
    freeze: &str,
    bytes: &AtomicU64,
) -> Result<(), SysbenchError> {
    let table = piece.table;
    let copy = format!("COPY sbtest{table} (id, k, c, pad) FROM STDIN (FORMAT binary{freeze})");
    let mut sink = pin!(client.copy_in(&copy).await?);
    let mut buffer = BytesMut::with_capacity(CHUNK_BYTES + 4096);
    buffer.extend_from_slice(HEADER);
    for id in piece.first..=piece.last {
        put_row(&mut buffer, &Row::of(parameters.seed, table, id, sampler));
        if buffer.len() >= CHUNK_BYTES {
            bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
            sink.send(buffer.split().freeze()).await?;
            buffer.reserve(CHUNK_BYTES + 4096);
        }
    }
    buffer.extend_from_slice(TRAILER);
    bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
    sink.send(buffer.freeze()).await?;
    sink.finish().await?;
    Ok(())
}

fn put_row(out: &mut BytesMut, row: &Row) {
    out.put_i16(4);
    for number in [row.id, row.k] {
        out.put_i32(4);
        out.put_u32(number);
    }
    for text in [&row.c[..], &row.pad[..]] {
        out.put_i32(text.len() as i32);
        out.put_slice(text);
    }
}
