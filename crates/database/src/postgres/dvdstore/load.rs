//! Loading the shop: generated rows through COPY in parallel, then sequences, keys and references, then statistics.

use futures_util::SinkExt;
use std::pin::pin;
use std::time::Instant;
use tokio_postgres::Client;
use underlay_workload::dvdstore::Parameters;
use underlay_workload::dvdstore::population::{Table, Units};

use super::{keys_sql, population_identity, references_sql, schema};
use crate::dvdstore::{Counters, DvdStoreError, Piece, RowText, ShopLoad, UNIT_BYTES_MAX, pieces};
use crate::load_report::LoadReport;
use crate::postgres::parallel::{in_parallel, on_connection};
use crate::postgres::settling::{leave_alone, settle};
use crate::target::Target;

/// Settings of the loaders' connections; see the load of TPC-C.
const SETTINGS: &str = "SET maintenance_work_mem = '256MB'; SET synchronous_commit = local; \
    SET statement_timeout = 0; SET lock_timeout = 0; SET datestyle = 'ISO'";
/// Size of a message to the server.
const CHUNK_BYTES: usize = 128 << 10;

/// Tables whose keys are given out by a sequence, and the keys.
const SEQUENCES: [(Table, &str); 5] = [
    (Table::Customers, "customerid"),
    (Table::Products, "prod_id"),
    (Table::Orders, "orderid"),
    (Table::Reviews, "review_id"),
    (Table::ReviewsHelpfulness, "review_helpfulness_id"),
];

/// Creates and loads the shop, on `parallel` connections. Blocks; must not be called from within a runtime.
///
/// # Errors
/// See [`crate::dvdstore::load`].
pub fn load(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
) -> Result<ShopLoad, DvdStoreError> {
    let target = target.with_application_name("underlay-load");
    let identity = population_identity(parameters);
    let tables = Table::ALL.map(Table::as_str).into_iter().chain(["reorder"]);
    let tables: Vec<String> = tables.map(|table| format!("dvdstore.{table}")).collect();
    on_connection(&target, async |client| {
        schema::create(client, parameters, &identity).await?;
        Ok::<_, DvdStoreError>(leave_alone(client, &tables).await?)
    })?;
    let counters = Counters::default();
    let began = Instant::now();
    in_parallel(
        &target,
        (parallel, SETTINGS),
        pieces(parameters, parallel),
        async |client, piece| copy_piece(client, parameters, *piece, &counters).await,
    )?;
    let rows_duration = began.elapsed();

    let began = Instant::now();
    // Work is taken from the end, and the longest comes first in the text.
    let keys: Vec<&str> = keys_sql().lines().rev().collect();
    in_parallel(&target, (parallel, SETTINGS), keys, async |client, key| {
        Ok::<_, DvdStoreError>(client.batch_execute(key).await?)
    })?;
    on_connection(&target, async |client| {
        client.batch_execute(SETTINGS).await?;
        // One after the other: each locks two tables.
        client.batch_execute(references_sql()).await?;
        for (table, key) in SEQUENCES {
            // The next inserted row gets the number after the last loaded one.
            let (name, last) = (table.as_str(), table.rows(parameters));
            let sql = format!(
                "SELECT setval(pg_get_serial_sequence('dvdstore.{name}', '{key}'), {last})"
            );
            client.batch_execute(&sql).await?;
        }
        Ok::<_, DvdStoreError>(())
    })?;
    let keys_duration = began.elapsed();

    let began = Instant::now();
    settle::<DvdStoreError>(&target, parallel, &tables, "")?;
    let stored_bytes = on_connection(&target, complete)?;
    let report = LoadReport {
        rows: counters.rows.into_inner(),
        bytes: counters.bytes.into_inner(),
        rows_duration,
        keys_duration,
        settle_duration: began.elapsed(),
    };
    Ok(ShopLoad { report, stored_bytes })
}

/// Marks the load complete; gives the bytes that it takes.
async fn complete(client: &Client) -> Result<u64, DvdStoreError> {
    schema::mark_complete(client).await?;
    // Only some roles may ask for a checkpoint; without it the first run has a little more to write.
    if let Err(error) = client.batch_execute("CHECKPOINT").await {
        tracing::debug!(%error, "no checkpoint after the load");
    }
    let row = client
        .query_one(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
             WHERE relnamespace = 'dvdstore'::regnamespace AND relkind = 'r'",
            &[],
        )
        .await?;
    Ok(row.try_get::<_, i64>(0)?.cast_unsigned())
}

async fn copy_piece(
    client: &Client,
    parameters: &Parameters,
    piece: Piece,
    counters: &Counters,
) -> Result<(), DvdStoreError> {
    let (table, columns) = (piece.table.as_str(), piece.table.columns());
    let copy = format!("COPY dvdstore.{table} ({columns}) FROM STDIN");
    let mut sink = pin!(client.copy_in(&copy).await?);
    let mut text = RowText::with_capacity(CHUNK_BYTES + UNIT_BYTES_MAX);
    let mut units = Units::new(parameters, piece.table);
    for unit in piece.first..=piece.last {
        units.write(unit, &mut text);
        if text.buffer.len() >= CHUNK_BYTES {
            counters.add(0, text.buffer.len());
            sink.send(text.buffer.split().freeze()).await?;
            text.buffer.reserve(CHUNK_BYTES + UNIT_BYTES_MAX);
        }
    }
    counters.add(text.rows, text.buffer.len());
    sink.send(text.buffer.freeze()).await?;
    sink.finish().await?;
    Ok(())
}
