//! Loading the tables: generated rows through binary COPY in parallel, then keys, then statistics.

use bytes::{BufMut, BytesMut};
use futures_util::SinkExt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio_postgres::Client;
use underlay_workload::sysbench::{Parameters, Row, Sampler};

use super::schema::{self, KEYS_SQL};
use crate::postgres::parallel::{in_parallel, on_connection};
use crate::sysbench::{LoadReport, Piece, SysbenchError, numbered, pieces};
use crate::target::Target;

/// Settings of the loaders' connections; see the load of TPC-C.
const SETTINGS: &str = "SET maintenance_work_mem = '256MB'; SET synchronous_commit = local; \
    SET statement_timeout = 0; SET lock_timeout = 0";
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
    let bytes = AtomicU64::new(0);
    let began = Instant::now();
    in_parallel(&target, (parallel, SETTINGS), pieces(parameters), async |client, piece| {
        copy_piece(client, parameters, &sampler, *piece, &bytes).await
    })?;
    let rows_duration = began.elapsed();

    let began = Instant::now();
    let tables = || (1..=parameters.tables).rev().collect::<Vec<u32>>();
    in_parallel(&target, (parallel, SETTINGS), tables(), async |client, table| {
        client.batch_execute(&numbered(KEYS_SQL, *table)).await?;
        // The next inserted row gets the id after the last loaded one.
        let sequence = format!(
            "SELECT setval(pg_get_serial_sequence('sbtest{table}', 'id'), {})",
            parameters.table_size
        );
        Ok::<_, SysbenchError>(client.batch_execute(&sequence).await?)
    })?;
    let keys_duration = began.elapsed();

    let began = Instant::now();
    in_parallel(&target, (parallel, SETTINGS), tables(), async |client, table| {
        let vacuum = format!("VACUUM (FREEZE, ANALYZE) sbtest{table}");
        Ok::<_, SysbenchError>(client.batch_execute(&vacuum).await?)
    })?;
    on_connection(&target, async |client| {
        schema::mark_complete(client).await?;
        // Only some roles may ask for a checkpoint; without it the first run has a little more to write.
        if let Err(error) = client.batch_execute("CHECKPOINT").await {
            tracing::debug!(%error, "no checkpoint after the load");
        }
        Ok::<_, SysbenchError>(())
    })?;
    Ok(LoadReport {
        rows: parameters.rows(),
        bytes: bytes.into_inner(),
        rows_duration,
        keys_duration,
        settle_duration: began.elapsed(),
    })
}

async fn copy_piece(
    client: &Client,
    parameters: &Parameters,
    sampler: &Sampler,
    piece: Piece,
    bytes: &AtomicU64,
) -> Result<(), SysbenchError> {
    let table = piece.table;
    let copy = format!("COPY sbtest{table} (id, k, c, pad) FROM STDIN (FORMAT binary)");
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
