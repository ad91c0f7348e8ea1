//! Loading the population: generated rows streamed through binary COPY, then keys, then statistics.
//!
//! Each loader thread has a connection and takes the next piece of work from a list, the largest first. On
//! few threads a piece is a whole table, truncated and copied in one transaction: then rows can be
//! written frozen, and a server with `wal_level = minimal` writes no log for them. On many threads a piece is a
//! table of some warehouses, and a final vacuum freezes the rows. Memory is one buffer per thread, whatever
//! the number of warehouses.

use bytes::BytesMut;
use futures_util::SinkExt;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio_postgres::Client;
use underlay_workload::tpcc::Parameters;
use underlay_workload::tpcc::population::Table;

use super::copy::{self, HEADER, TRAILER};
use super::schema;
use super::{
    LoadOptions, LoadProgress, LoadReport, LoadStage, Mode, TpccError, identity, keys_sql,
};
use crate::postgres::parallel::{in_parallel, on_connection};
use crate::postgres::settling::{leave_alone, settle};
use crate::schema_ownership::tpcc_name;
use crate::target::Target;
use crate::tpcc::{Counters, Piece, pieces};

/// From this many threads on, tables are divided among them; a whole one can be frozen as it is copied.
const DIVIDE_FROM: usize = 5;
/// Size of a message to the server.
const CHUNK_BYTES: usize = 128 << 10;

/// Settings of the loaders' connections. A commit is flushed, whatever the server's default: until it is, no
/// vacuum can mark its rows as visible to all, and the first run would do it instead.
const SETTINGS: &str = "SET maintenance_work_mem = '256MB'; SET synchronous_commit = local; \
    SET statement_timeout = 0; SET lock_timeout = 0";

/// Creates the schema and loads the population. Blocks; must not be called from within a runtime.
///
/// # Errors
/// When there is a schema `tpcc` already. After any other error the schema is there without its mark of
/// completion: it cannot be used by mistake, and can be dropped.
pub fn load(
    target: &Target,
    parameters: &Parameters,
    options: &LoadOptions<'_>,
) -> Result<LoadReport, TpccError> {
    let target = target.with_application_name("underlay-load");
    // What is loaded is the same in both modes; the identity names the population.
    let population = identity(parameters, Mode::Procedures).to_string();
    let tables = Table::ALL.map(name);
    on_connection(&target, async |client| {
        schema::create(client, parameters, &population).await?;
        Ok::<_, TpccError>(leave_alone(client, &tables).await?)
    })?;

    let counters = Counters::default();
    let expected = Table::ALL.iter().map(|table| table.rows(parameters.warehouses)).sum();
    let report = |stage| {
        let rows = counters.rows.load(Ordering::Relaxed);
        (options.progress)(LoadProgress { stage, rows, rows_expected: expected });
    };
    let began = Instant::now();
    in_parallel(
        &target,
        (options.parallel, SETTINGS),
        pieces(parameters.warehouses, options.parallel, DIVIDE_FROM),
        async |client, piece| {
            copy_piece(client, parameters, *piece, &counters, &|| report(LoadStage::Rows)).await
        },
    )?;
    let rows_duration = began.elapsed();

    report(LoadStage::Keys);
    let began = Instant::now();
    let keys: Vec<&str> = keys_sql().lines().filter(|line| line.ends_with(';')).collect();
    in_parallel(&target, (options.parallel, SETTINGS), keys, async |client, key| {
        Ok::<_, TpccError>(client.batch_execute(key).await?)
    })?;
    let keys_duration = began.elapsed();

    report(LoadStage::Settle);
    let began = Instant::now();
    settle::<TpccError>(&target, options.parallel, &tables, "")?;
    on_connection(&target, async |client| {
        schema::mark_complete(client).await?;
        // Only some roles may ask for a checkpoint; without it the first run has a little more to write.
        if let Err(error) = client.batch_execute("CHECKPOINT").await {
            tracing::debug!(%error, "no checkpoint after the load");
        }
        Ok::<_, TpccError>(())
    })?;
    Ok(LoadReport {
        rows: counters.rows.into_inner(),
        bytes: counters.bytes.into_inner(),
        rows_duration,
        keys_duration,
        settle_duration: began.elapsed(),
    })
}

fn name(table: Table) -> String {
    format!("tpcc.{}", tpcc_name(table))
}

async fn copy_piece(
    client: &Client,
    parameters: &Parameters,
    piece: Piece,
    counters: &Counters,
    report: &(dyn Fn() + Sync),
) -> Result<(), TpccError> {
    let table = name(piece.table);
    let freeze = if piece.whole { ", FREEZE" } else { "" };
    if piece.whole {
        client.batch_execute(&format!("BEGIN; TRUNCATE {table}")).await?;
    }
    let sink = client.copy_in(&format!("COPY {table} FROM STDIN (FORMAT binary{freeze})")).await?;
    let mut sink = pin!(sink);
    let mut buffer = BytesMut::with_capacity(CHUNK_BYTES + 4096);
    buffer.extend_from_slice(HEADER);
    let last = if piece.table == Table::Item { piece.first } else { piece.last };
    for warehouse in piece.first..=last {
        let mut next_row = copy::rows(parameters, piece.table, warehouse);
        let mut rows = 0;
        while next_row(&mut buffer) {
            rows += 1;
            if buffer.len() >= CHUNK_BYTES {
                counters.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
                counters.rows.fetch_add(rows, Ordering::Relaxed);
                rows = 0;
                sink.send(buffer.split().freeze()).await?;
                buffer.reserve(CHUNK_BYTES + 4096);
                report();
            }
        }
        counters.rows.fetch_add(rows, Ordering::Relaxed);
    }
    buffer.extend_from_slice(TRAILER);
    counters.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
    sink.send(buffer.freeze()).await?;
    sink.finish().await?;
    if piece.whole {
        client.batch_execute("COMMIT").await?;
    }
    Ok(())
}
