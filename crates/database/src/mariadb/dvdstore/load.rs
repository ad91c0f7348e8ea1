//! Loading the shop: generated rows streamed through `LOAD DATA LOCAL INFILE`, then indexes and references, then
//! statistics. No file exists; see [`crate::mariadb::infile`].

use std::time::Instant;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use underlay_workload::dvdstore::Parameters;
use underlay_workload::dvdstore::population::{Table, Units};

use super::schema::{self, execute, refused};
use super::{database_of, keys_sql, population_identity, references_sql, session};
use crate::dvdstore::{Counters, DvdStoreError, Piece, RowText, ShopLoad, UNIT_BYTES_MAX, pieces};
use crate::load_report::LoadReport;
use crate::mariadb::connection::connect;
use crate::mariadb::infile::{CHUNK_BYTES, Chunks, load_data};
use crate::mariadb::parallel::in_parallel;
use crate::parallel::on_runtime;
use crate::target::Target;

/// Creates and loads the shop, on `parallel` connections. Blocks; must not be called from within a runtime.
///
/// # Errors
/// See [`crate::dvdstore::load`].
pub fn load(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
) -> Result<ShopLoad, DvdStoreError> {
    let (target, _) = database_of(&target.with_application_name("underlay-load"));
    let identity = population_identity(parameters);
    on_runtime(schema::create(&target, parameters, &identity))?;
    let counters = Counters::default();
    let began = Instant::now();
    in_parallel(
        &target,
        (parallel, &session::SETTINGS),
        pieces(parameters, parallel),
        async |conn, piece| send_piece(conn, parameters, *piece, &counters).await,
    )?;
    let rows_duration = began.elapsed();

    let began = Instant::now();
    // Work is taken from the end, and the longest comes first in the text.
    let keys: Vec<&str> = keys_sql().lines().rev().collect();
    in_parallel(&target, (parallel, &session::SETTINGS), keys, async |conn, key| {
        execute(conn, key).await
    })?;
    // One after the other: each locks two tables.
    let references: Vec<&str> = references_sql().lines().collect();
    in_parallel(&target, (1, &session::SETTINGS), references, async |conn, reference| {
        execute(conn, reference).await
    })?;
    let keys_duration = began.elapsed();

    let began = Instant::now();
    let tables = Table::ALL.map(|table| format!("ANALYZE TABLE {}", table.as_str()));
    in_parallel(&target, (parallel, &session::SETTINGS), tables.to_vec(), async |conn, sql| {
        execute(conn, sql).await
    })?;
    let stored_bytes = on_runtime(settle(&target))?;
    let report = LoadReport {
        rows: counters.rows.into_inner(),
        bytes: counters.bytes.into_inner(),
        rows_duration,
        keys_duration,
        settle_duration: began.elapsed(),
    };
    Ok(ShopLoad { report, stored_bytes })
}

/// Marks the load complete; gives the bytes that it takes, full-text indexes not counted.
async fn settle(target: &Target) -> Result<u64, DvdStoreError> {
    let mut conn = connect(target).await?;
    schema::mark_complete(&mut conn).await?;
    let bytes: Option<u64> = conn
        .query_first(
            "SELECT CAST(coalesce(sum(data_length + index_length), 0) AS unsigned) \
             FROM information_schema.tables WHERE table_schema = database()",
        )
        .await
        .map_err(refused)?;
    Ok(bytes.unwrap_or(0))
}

async fn send_piece(
    conn: &mut Conn,
    parameters: &Parameters,
    piece: Piece,
    counters: &Counters,
) -> Result<(), DvdStoreError> {
    let (table, columns) = (piece.table.as_str(), piece.table.columns());
    let sql = format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET latin1 \
         FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n' ({columns})"
    );
    let generate = async |chunks: Chunks| {
        let mut text = RowText::with_capacity(CHUNK_BYTES + UNIT_BYTES_MAX);
        let mut units = Units::new(parameters, piece.table);
        for unit in piece.first..=piece.last {
            units.write(unit, &mut text);
            if text.buffer.len() >= CHUNK_BYTES {
                counters.add(0, text.buffer.len());
                // A server that refuses says why itself.
                if chunks.send(text.buffer.split().freeze()).await.is_err() {
                    return;
                }
                text.buffer.reserve(CHUNK_BYTES + UNIT_BYTES_MAX);
            }
        }
        counters.add(text.rows, text.buffer.len());
        let _ = chunks.send(text.buffer.freeze()).await;
    };
    load_data(conn, &sql, generate).await.map_err(refused)
}
