//! Loading: generated rows through the engine's bulk path, then keys and indexes, then statistics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::BytesMut;
use underlay_workload::warehouse::Population;

use super::rows::{Piece, pieces};
use super::schema::OURS;
use super::sql::{dialect, keys};
use super::{TABLE_NAMES, WarehouseError, schema};
use crate::connection::{BulkFormat, BulkLoad, Connection};
use crate::load_report::LoadReport;
use crate::loading::{Loader, Values, in_parallel, on_connection};
use crate::parallel::on_runtime;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// Size of a message to the server.
const CHUNK_BYTES: usize = 256 << 10;
/// More than the rows of an item take.
const ITEM_BYTES_MAX: usize = 4096;

/// See [`super::load`].
pub(super) fn load<C: Loader + SchemaOwner>(
    target: &Target,
    population: &Population,
    parallel: usize,
) -> Result<LoadReport, WarehouseError> {
    let target = C::with_database(&target.with_application_name("underlay-load"), OURS);
    // Work is taken from the end: the first table comes first.
    let tables = TABLE_NAMES.map(|table| C::table(OURS, table)).into_iter().rev();
    let tables: Vec<String> = tables.collect();
    on_runtime(target.stop.unless(async {
        schema::create::<C>(&target, population).await?;
        Ok::<_, WarehouseError>(C::before_rows(&target, &tables).await?)
    }))?;
    let dialect = dialect(C::ENGINE);
    let settings = (parallel, dialect.settings);
    let (rows, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    in_parallel(&target, settings, pieces(population), async |connection: &mut C, piece| {
        let (sent_rows, sent_bytes) = load_piece(connection, population, piece).await?;
        rows.fetch_add(sent_rows, Ordering::Relaxed);
        bytes.fetch_add(sent_bytes, Ordering::Relaxed);
        Ok::<_, WarehouseError>(())
    })?;
    let rows_duration = began.elapsed();

    let began = Instant::now();
    let keys = keys(dialect).into_iter().rev().collect();
    in_parallel(&target, settings, keys, async |connection: &mut C, sql: &String| {
        connection.run(&[sql]).await.map_err(WarehouseError::during("making an index"))
    })?;
    let keys_duration = began.elapsed();

    let began = Instant::now();
    C::settle::<WarehouseError>(&target, parallel, &tables, Values::Any)?;
    on_connection(&target, dialect.settings, async |connection: &mut C| {
        let marked = connection.run(&["UPDATE underlay_warehouse SET is_complete = 1"]).await;
        marked.map_err(WarehouseError::during("marking the end"))
    })?;
    Ok(LoadReport {
        rows: rows.into_inner(),
        bytes: bytes.into_inner(),
        rows_duration,
        keys_duration,
        settle_duration: began.elapsed(),
    })
}

async fn load_piece<C: Connection>(
    connection: &mut C,
    population: &Population,
    piece: &Piece,
) -> Result<(u64, u64), WarehouseError> {
    let table = piece.table.name();
    let format = BulkFormat::Text;
    let load = BulkLoad { table, columns: "", binary_column: None, format, is_fresh: false };
    let (mut rows, mut bytes) = (0, 0);
    let mut items = piece.items.clone();
    let mut next = |out: &mut BytesMut| {
        out.reserve(CHUNK_BYTES + ITEM_BYTES_MAX);
        let before = out.len();
        while out.len() - before < CHUNK_BYTES
            && let Some(item) = items.next()
        {
            rows += piece.table.put(population, item, out);
        }
        bytes += (out.len() - before) as u64;
        !items.is_empty()
    };
    let loaded = connection.bulk_load(load, &mut next).await;
    loaded.map_err(WarehouseError::during(&format!("loading {table}")))?;
    Ok((rows, bytes))
}
