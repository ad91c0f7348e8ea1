//! Loading: generated rows streamed in parallel, then keys and indexes, then statistics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use underlay_workload::warehouse::Population;

use super::connection::Connection;
use super::rows::{Piece, Table, pieces};
use super::{WarehouseError, schema};
use crate::Engine;
use crate::load_report::LoadReport;
use crate::parallel::{on_runtime, spread};
use crate::target::Target;

/// Size of a message to the server.
const CHUNK_BYTES: usize = 256 << 10;

/// Creates the tables and loads the population, on `parallel` connections. Blocks; must not be called from within a
/// runtime.
///
/// # Errors
/// When there are tables already. After any other error they are there without their mark of completion: they cannot
/// be used by mistake, and can be dropped.
pub fn load(
    target: &Target,
    population: &Population,
    parallel: usize,
) -> Result<LoadReport, WarehouseError> {
    let target = target.with_application_name("underlay-load");
    on_runtime(schema::create(&target, population))?;
    if target.engine == Engine::Postgresql {
        on_runtime(super::postgres::leave_alone(&target))?;
    }
    let (rows, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    in_parallel(&target, parallel, pieces(population), async |connection, piece| {
        let (sent_rows, sent_bytes) = stream(connection, population, &piece).await?;
        rows.fetch_add(sent_rows, Ordering::Relaxed);
        bytes.fetch_add(sent_bytes, Ordering::Relaxed);
        Ok(())
    })?;
    let rows_duration = began.elapsed();

    let began = Instant::now();
    in_parallel(&target, parallel, schema::keys(target.engine), async |connection, sql| {
        if target.engine == Engine::Postgresql {
            connection.execute("preparing an index", "SET maintenance_work_mem = '256MB'").await?;
        }
        connection.execute("making an index", &sql).await
    })?;
    let keys_duration = began.elapsed();

    let began = Instant::now();
    match target.engine {
        Engine::Postgresql => super::postgres::settle::<WarehouseError>(&target, parallel)?,
        Engine::Mariadb => {
            let tables = Table::ALL.map(|table| format!("ANALYZE TABLE {}", table.name()));
            in_parallel(&target, parallel, tables.to_vec(), async |connection, sql| {
                connection.execute("gathering statistics", &sql).await
            })?;
        }
    }
    on_runtime(schema::mark_complete(&target))?;
    Ok(LoadReport {
        rows: rows.into_inner(),
        bytes: bytes.into_inner(),
        rows_duration,
        keys_duration,
        settle_duration: began.elapsed(),
    })
}

async fn stream(
    connection: &mut Connection,
    population: &Population,
    piece: &Piece,
) -> Result<(u64, u64), WarehouseError> {
    let (mut rows, mut bytes) = (0, 0);
    let mut items = piece.items.clone();
    let mut next = || {
        let mut text = String::with_capacity(CHUNK_BYTES + 4096);
        while text.len() < CHUNK_BYTES {
            let Some(item) = items.next() else { break };
            rows += piece.table.put(population, item, &mut text);
        }
        bytes += text.len() as u64;
        if text.is_empty() { None } else { Some(Bytes::from(text)) }
    };
    connection.stream(piece.table.name(), &mut next).await?;
    Ok((rows, bytes))
}

/// Carries out `work` on each of `items`, the first first, on `parallel` threads with a connection each. Ends early at
/// the first error.
fn in_parallel<T: Send>(
    target: &Target,
    parallel: usize,
    items: Vec<T>,
    work: impl AsyncFn(&mut Connection, T) -> Result<(), WarehouseError> + Sync,
) -> Result<(), WarehouseError> {
    // They are taken from the end.
    let items = items.into_iter().rev().collect();
    spread((parallel, target.stop), items, async |take| {
        let mut connection = Connection::open(target, true).await?;
        while let Some(item) = take() {
            work(&mut connection, item).await?;
        }
        Ok(())
    })
}
