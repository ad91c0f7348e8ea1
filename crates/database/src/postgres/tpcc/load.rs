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
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::Client;
use underlay_workload::tpcc::Parameters;
use underlay_workload::tpcc::population::Table;

use super::copy::{self, HEADER, TRAILER};
use super::schema::{self, TpccError};
use super::{Mode, identity, keys_sql};
use crate::target::Target;

/// From this many threads on, tables are divided among them.
const DIVIDE_FROM: usize = 5;
/// Size of a message to the server.
const CHUNK_BYTES: usize = 128 << 10;

/// Settings of the loaders' connections. A commit is flushed, whatever the server's default: until it is, no
/// vacuum can mark its rows as visible to all, and the first run would do it instead.
const SETTINGS: &str = "SET maintenance_work_mem = '256MB'; SET synchronous_commit = local; \
    SET statement_timeout = 0; SET lock_timeout = 0";

/// How to load.
pub struct LoadOptions<'a> {
    /// Loader threads, each with a connection. At least 1.
    pub parallel: usize,
    /// Called from loader threads, about every [`CHUNK_BYTES`] of rows.
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

/// What was loaded, and how long each stage took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes sent to the server.
    pub bytes: u64,
    /// Copying rows.
    pub rows_duration: Duration,
    /// Building keys and indexes.
    pub keys_duration: Duration,
    /// Vacuuming, gathering statistics, writing a checkpoint.
    pub settle_duration: Duration,
}

impl LoadReport {
    /// All stages.
    pub fn duration(&self) -> Duration {
        self.rows_duration + self.keys_duration + self.settle_duration
    }
}

/// A piece of the copying.
#[derive(Clone, Copy)]
struct Piece {
    table: Table,
    first: u32,
    last: u32,
    /// The whole table: truncated and frozen in one transaction.
    whole: bool,
}

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
    on_connection(&target, async |client| schema::create(client, parameters, &population).await)?;

    let counters = Counters::default();
    let expected = Table::ALL.iter().map(|table| table.rows(parameters.warehouses)).sum();
    let report = |stage| {
        let rows = counters.rows.load(Ordering::Relaxed);
        (options.progress)(LoadProgress { stage, rows, rows_expected: expected });
    };
    let began = Instant::now();
    in_parallel(
        &target,
        options.parallel,
        pieces(parameters.warehouses, options.parallel),
        async |client, piece| {
            copy_piece(client, parameters, *piece, &counters, &|| report(LoadStage::Rows)).await
        },
    )?;
    let rows_duration = began.elapsed();

    report(LoadStage::Keys);
    let began = Instant::now();
    let keys: Vec<&str> = keys_sql().lines().filter(|line| line.ends_with(';')).collect();
    in_parallel(&target, options.parallel, keys, async |client, key| {
        Ok(client.batch_execute(key).await?)
    })?;
    let keys_duration = began.elapsed();

    report(LoadStage::Settle);
    let began = Instant::now();
    let vacuums = Table::ALL.map(|table| format!("VACUUM (FREEZE, ANALYZE) {}", name(table)));
    in_parallel(&target, options.parallel, vacuums.to_vec(), async |client, vacuum| {
        Ok(client.batch_execute(vacuum).await?)
    })?;
    on_connection(&target, async |client| {
        schema::mark_complete(client).await?;
        // Only some roles may ask for a checkpoint; without it the first run has a little more to write.
        if let Err(error) = client.batch_execute("CHECKPOINT").await {
            tracing::debug!(%error, "no checkpoint after the load");
        }
        Ok(())
    })?;
    Ok(LoadReport {
        rows: counters.rows.into_inner(),
        bytes: counters.bytes.into_inner(),
        rows_duration,
        keys_duration,
        settle_duration: began.elapsed(),
    })
}

#[derive(Default)]
struct Counters {
    rows: AtomicU64,
    bytes: AtomicU64,
}

/// The pieces of the copying, the largest last: work is taken from the end.
fn pieces(warehouses: u32, parallel: usize) -> Vec<Piece> {
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
            _ if parallel < DIVIDE_FROM => whole(table),
            _ => divided(table),
        })
        .collect()
}

fn name(table: Table) -> String {
    format!("tpcc.{}", if table == Table::Order { "orders" } else { table.as_str() })
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

/// Carries out `work` on each of `items`, the last first, on `parallel` threads with a connection each.
/// Ends early at the first error.
fn in_parallel<T: Send>(
    target: &Target,
    parallel: usize,
    items: Vec<T>,
    work: impl AsyncFn(&Client, &T) -> Result<(), TpccError> + Sync,
) -> Result<(), TpccError> {
    let threads = parallel.clamp(1, items.len().max(1));
    let items = Mutex::new(items);
    // A poisoned list belongs to a thread that panicked; joining that thread reports it.
    let take = || items.lock().map_or(None, |mut items| items.pop());
    let loader = || {
        on_connection(target, async |client| {
            client.batch_execute(SETTINGS).await?;
            while let Some(item) = take() {
                let done = work(client, &item).await;
                if done.is_err() {
                    // The others find nothing left to do.
                    while take().is_some() {}
                    return done;
                }
            }
            Ok(())
        })
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|index| {
                std::thread::Builder::new()
                    .name(format!("load-{index}"))
                    .spawn_scoped(scope, loader)
                    .map_err(TpccError::Thread)
            })
            .collect();
        let mut result = Ok(());
        for handle in handles {
            let done = handle.and_then(|handle| {
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            result = result.and(done);
        }
        result
    })
}

/// Carries out `work` on a connection of its own, on this thread.
fn on_connection<T>(
    target: &Target,
    work: impl AsyncFnOnce(&Client) -> Result<T, TpccError>,
) -> Result<T, TpccError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(TpccError::Thread)?;
    runtime.block_on(async {
        let client = target.connect().await?;
        work(&client).await
    })
}
