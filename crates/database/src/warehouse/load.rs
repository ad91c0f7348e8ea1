//! Loading: generated rows streamed in parallel, then keys and indexes, then statistics.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use underlay_workload::warehouse::Population;

use super::connection::Connection;
use super::rows::{Piece, Table, pieces};
use super::{WarehouseError, on_runtime, schema};
use crate::Engine;
use crate::load_report::LoadReport;
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
    let settle = |table: Table| match target.engine {
        Engine::Postgresql => format!("VACUUM (FREEZE, ANALYZE) {}", table.name()),
        Engine::Mariadb => format!("ANALYZE TABLE {}", table.name()),
    };
    in_parallel(&target, parallel, Table::ALL.map(settle).to_vec(), async |connection, sql| {
        connection.execute("gathering statistics", &sql).await
    })?;
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
    let threads = parallel.clamp(1, items.len().max(1));
    let items = Mutex::new(VecDeque::from(items));
    // A poisoned list belongs to a thread that panicked; joining that thread reports it.
    let take = || items.lock().map_or(None, |mut items| items.pop_front());
    let loader = || {
        let done = on_runtime(async {
            let mut connection = Connection::open(target, true).await?;
            while let Some(item) = take() {
                work(&mut connection, item).await?;
            }
            Ok(())
        });
        if done.is_err() {
            // The others find nothing left to do.
            while take().is_some() {}
        }
        done
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|index| {
                let named = std::thread::Builder::new().name(format!("load-{index}"));
                named.spawn_scoped(scope, loader).map_err(WarehouseError::Thread)
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
