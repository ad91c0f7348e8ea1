//! Loading the population: generated rows streamed through `LOAD DATA LOCAL INFILE`, then secondary
//! indexes, then statistics.
//!
//! Memory is some buffers per thread, whatever the number of warehouses.

use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::BytesMut;
use mysql_async::Conn;
use underlay_workload::tpcc::Parameters;
use underlay_workload::tpcc::population::Table;

use super::{database_of, identity, keys_sql, rows, schema, session};
use crate::mariadb::infile::{CHUNK_BYTES, Chunks, load_data};
use crate::mariadb::parallel::{execute, in_parallel, refused};
use crate::schema_ownership::tpcc_name as name;
use crate::target::Target;
use crate::tpcc::{
    Counters, LoadOptions, LoadProgress, LoadReport, LoadStage, Mode, Piece, TpccError, on_runtime,
    pieces,
};

/// From this many threads on, tables are divided among them.
const DIVIDE_FROM: usize = 2;

/// Creates the tables and loads the population. Blocks; must not be called from within a runtime.
///
/// # Errors
/// When the database holds tables already. After any other error the tables are there without their mark
/// of completion: they cannot be used by mistake, and can be dropped.
pub fn load(
    target: &Target,
    parameters: &Parameters,
    options: &LoadOptions<'_>,
) -> Result<LoadReport, TpccError> {
    let (target, _) = database_of(&target.with_application_name("underlay-load"));
    // What is loaded is the same in both modes; the identity names the population.
    let population = identity(parameters, Mode::Procedures).to_string();
    on_runtime(async { schema::create(&target, parameters, &population).await })?;

    let counters = Counters::default();
    let expected = Table::ALL.iter().map(|table| table.rows(parameters.warehouses)).sum();
    let report = |stage| {
        let rows = counters.rows.load(Ordering::Relaxed);
        (options.progress)(LoadProgress { stage, rows, rows_expected: expected });
    };
    let began = Instant::now();
    in_parallel(
        &target,
        (options.parallel, &session::SETTINGS),
        pieces(parameters.warehouses, options.parallel, DIVIDE_FROM),
        async |conn, piece| {
            send_piece(conn, parameters, *piece, &counters, &|| report(LoadStage::Rows)).await
        },
    )?;
    let rows_duration = began.elapsed();

    report(LoadStage::Keys);
    let began = Instant::now();
    let keys: Vec<&str> = keys_sql().lines().filter(|line| line.ends_with(';')).collect();
    in_parallel(&target, (options.parallel, &session::SETTINGS), keys, async |conn, key| {
        execute(conn, key).await.map_err(TpccError::from)
    })?;
    let keys_duration = began.elapsed();

    report(LoadStage::Settle);
    let began = Instant::now();
    let analyses = Table::ALL.map(|table| format!("ANALYZE TABLE {}", name(table)));
    in_parallel(
        &target,
        (options.parallel, &session::SETTINGS),
        analyses.to_vec(),
        async |conn, sql| execute(conn, sql).await.map_err(TpccError::from),
    )?;
    on_runtime(async { schema::mark_complete(&target).await })?;
    Ok(LoadReport {
        rows: counters.rows.into_inner(),
        bytes: counters.bytes.into_inner(),
        rows_duration,
        keys_duration,
        settle_duration: began.elapsed(),
    })
}

async fn send_piece(
    conn: &mut Conn,
    parameters: &Parameters,
    piece: Piece,
    counters: &Counters,
    report: &(dyn Fn() + Sync),
) -> Result<(), TpccError> {
    let sql = format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET latin1 \
         FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n'",
        name(piece.table)
    );
    load_data(conn, &sql, async |sender| {
        generate(parameters, piece, counters, report, sender).await;
    })
    .await
    .map_err(|error| refused(error).into())
}

async fn generate(
    parameters: &Parameters,
    piece: Piece,
    counters: &Counters,
    report: &(dyn Fn() + Sync),
    sender: Chunks,
) {
    let mut buffer = BytesMut::with_capacity(CHUNK_BYTES + 4096);
    let last = if piece.table == Table::Item { piece.first } else { piece.last };
    let mut rows_done = 0;
    for warehouse in piece.first..=last {
        let mut next_row = rows::rows(parameters, piece.table, warehouse);
        while next_row(&mut buffer) {
            rows_done += 1;
            if buffer.len() >= CHUNK_BYTES {
                counters.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
                counters.rows.fetch_add(rows_done, Ordering::Relaxed);
                rows_done = 0;
                if sender.send(buffer.split().freeze()).await.is_err() {
                    return;
                }
                buffer.reserve(CHUNK_BYTES + 4096);
                report();
            }
        }
    }
    counters.rows.fetch_add(rows_done, Ordering::Relaxed);
    counters.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
    // Nobody to tell when the server has refused: its error says why.
    let _ = sender.send(buffer.freeze()).await;
}
