//! Loading the population: generated rows through the engine's bulk path, then keys, then statistics.
//!
//! Each loader thread has a connection and takes the next piece of work from a list, the largest first. On few threads a
//! piece is a whole table, where that saves the server work: a PostgreSQL then writes its rows frozen, and with
//! `wal_level = minimal` writes no log for them. On many threads a piece is a table of some warehouses. Memory is one buffer per
//! thread, whatever the number of warehouses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::BytesMut;
use underlay_workload::tpcc::Parameters;
use underlay_workload::tpcc::population::Table;

use super::rows::{NextRow, rows};
use super::schema::{self, OURS};
use super::sql::{dialect, identity};
use super::{Mode, TpccError};
use crate::connection::{BulkFormat, BulkLoad, Connection};
use crate::load_report::LoadReport;
use crate::loading::{Loader, Values, in_parallel, on_connection};
use crate::parallel::on_runtime;
use crate::schema_ownership::state::SchemaOwner;
use crate::schema_ownership::tpcc_name;
use crate::target::Target;

/// Size of a message to the server.
const CHUNK_BYTES: usize = 128 << 10;
/// More than a row takes.
const ROW_BYTES_MAX: usize = 4096;

/// How to load.
pub struct LoadOptions<'a> {
    /// Loader threads, each with a connection. At least 1.
    pub parallel: usize,
    /// Called from loader threads, about every 128 KiB of rows.
    pub progress: &'a (dyn Fn(LoadProgress) + Sync),
}

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// What is being done.
    pub stage: LoadStage,
    /// Rows copied.
    pub rows: u64,
    /// Rows there will be, within a few per mille (orders have a random number of lines).
    pub rows_expected: u64,
}

/// What a load is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStage {
    /// Copying rows.
    Rows,
    /// Building keys and indexes.
    Keys,
    /// Vacuuming, gathering statistics, writing a checkpoint.
    Settle,
}

/// Creates the schema and loads the population. Blocks.
pub(super) fn load<C: Loader + SchemaOwner>(
    target: &Target,
    parameters: &Parameters,
    options: &LoadOptions<'_>,
) -> Result<LoadReport, TpccError> {
    let target = C::with_database(&target.with_application_name("underlay-load"), OURS);
    let dialect = dialect(C::ENGINE);
    // What is loaded is the same in both modes; the identity names the population.
    let population = identity(C::ENGINE, parameters, Mode::Procedures).to_string();
    let tables: Vec<String> = Table::ALL.map(|table| C::table(OURS, tpcc_name(table))).to_vec();
    on_runtime(target.stop.unless(async {
        schema::create::<C>(&target, parameters, &population).await?;
        Ok::<_, TpccError>(C::before_rows(&target, &tables).await?)
    }))?;

    let counters = Counters::default();
    let expected = Table::ALL.iter().map(|table| table.rows(parameters.warehouses)).sum();
    let report = |stage| {
        let rows = counters.rows.load(Ordering::Relaxed);
        (options.progress)(LoadProgress { stage, rows, rows_expected: expected });
    };
    let began = Instant::now();
    let settings = (options.parallel, dialect.settings);
    let pieces = pieces(parameters.warehouses, options.parallel, C::DIVIDE_FROM);
    in_parallel(&target, settings, pieces, async |connection: &mut C, piece| {
        load_piece(connection, parameters, *piece, &counters, &|| report(LoadStage::Rows)).await
    })?;
    let rows_duration = began.elapsed();

    report(LoadStage::Keys);
    let began = Instant::now();
    let keys: Vec<&str> = dialect.keys.lines().filter(|line| line.ends_with(';')).collect();
    in_parallel(&target, settings, keys, async |connection: &mut C, key| {
        Ok::<_, TpccError>(connection.run(&[*key]).await?)
    })?;
    let keys_duration = began.elapsed();

    report(LoadStage::Settle);
    let began = Instant::now();
    C::settle::<TpccError>(&target, options.parallel, &tables, Values::Any)?;
    on_connection(&target, &[], async |connection: &mut C| {
        let sql = format!("UPDATE {} SET complete = true", C::table(OURS, OURS.marker()));
        connection.query(sql.as_bytes()).await?;
        Ok::<_, TpccError>(connection.checkpoint().await?)
    })?;
    Ok(LoadReport {
        rows: counters.rows.into_inner(),
        bytes: counters.bytes.into_inner(),
        rows_duration,
        keys_duration,
        settle_duration: began.elapsed(),
    })
}

async fn load_piece<C: Connection + SchemaOwner>(
    connection: &mut C,
    parameters: &Parameters,
    piece: Piece,
    counters: &Counters,
    report: &(dyn Fn() + Sync),
) -> Result<(), TpccError> {
    let table = C::table(OURS, tpcc_name(piece.table));
    if piece.whole {
        connection.begin_fresh(&table).await?;
    }
    let load = BulkLoad {
        table: &table,
        columns: "",
        binary_column: None,
        format: BulkFormat::Encoded,
        is_fresh: piece.whole,
    };
    // Items belong to no warehouse: all of them come with the first.
    let last = if piece.table == Table::Item { piece.first } else { piece.last };
    let mut warehouses = piece.first..=last;
    let mut next_row: Option<NextRow> = None;
    let mut next = |out: &mut BytesMut| {
        out.reserve(CHUNK_BYTES + ROW_BYTES_MAX);
        let (before, mut count, mut has_more) = (out.len(), 0, true);
        while out.len() - before < CHUNK_BYTES {
            if next_row.as_mut().is_some_and(|next_row| next_row(out)) {
                count += 1;
                continue;
            }
            let Some(warehouse) = warehouses.next() else {
                has_more = false;
                break;
            };
            next_row = Some(rows::<C::Encoder>(parameters, piece.table, warehouse));
        }
        counters.bytes.fetch_add((out.len() - before) as u64, Ordering::Relaxed);
        counters.rows.fetch_add(count, Ordering::Relaxed);
        report();
        has_more
    };
    connection.bulk_load(load, &mut next).await?;
    if piece.whole {
        connection.end_fresh().await?;
    }
    Ok(())
}

/// A piece of the copying.
#[derive(Clone, Copy)]
struct Piece {
    /// Of which table.
    table: Table,
    /// The first warehouse.
    first: u32,
    /// The last warehouse.
    last: u32,
    /// The whole table, which no other thread writes to.
    whole: bool,
}

/// How far the copying is.
#[derive(Default)]
struct Counters {
    /// Rows generated.
    rows: AtomicU64,
    /// Bytes sent to the server.
    bytes: AtomicU64,
}

/// The pieces of the copying, the largest last: work is taken from the end. From `divide_from` threads on, tables
/// are divided among them.
fn pieces(warehouses: u32, parallel: usize, divide_from: usize) -> Vec<Piece> {
    let mut tables = Table::ALL.to_vec();
    tables.sort_by_key(|table| table.rows(warehouses) * table.nominal_row_bytes());
    let threads = u32::try_from(parallel).unwrap_or(u32::MAX);
    let whole = |table| vec![Piece { table, first: 1, last: warehouses, whole: true }];
    let divided = |table| {
        let step = warehouses.div_ceil(threads.min(warehouses).max(1) * 4).max(1);
        (1..=warehouses)
            .step_by(step as usize)
            .map(|first| Piece {
                table,
                first,
                last: (first + step - 1).min(warehouses),
                whole: false,
            })
            .collect()
    };
    tables
        .into_iter()
        .flat_map(|table| match table {
            // Items belong to no warehouse: they are one piece.
            Table::Item => whole(table),
            _ if parallel < divide_from => whole(table),
            _ => divided(table),
        })
        .collect()
}
