//! Loading the shop: generated rows through the engine's bulk path, then keys and references, then statistics.

use std::sync::atomic::{AtomicU64, Ordering};

use std::time::Instant;

use bytes::BytesMut;
use underlay_workload::dvdstore::Parameters;
use underlay_workload::dvdstore::population::{Table, Units};

use super::DvdStoreError;
use super::rows::{RowText, UNIT_BYTES_MAX};
use super::schema::{self, OURS};
use super::sql::{dialect, population_identity};
use crate::connection::{BulkFormat, BulkLoad, Connection};
use crate::load_report::LoadReport;
use crate::loading::{Loader, Values, in_parallel, on_connection};
use crate::parallel::on_runtime;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// Size of a message to the server.
const CHUNK_BYTES: usize = 128 << 10;

/// From this many threads on, tables are divided among them: nine in ten rows are in one table.
const DIVIDE_FROM: usize = 2;

/// The result of loading a shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShopLoad {
    /// As of every load.
    pub report: LoadReport,
    /// Bytes that tables and indexes take in the database.
    pub stored_bytes: u64,
}

/// Units `first..=last` of a table.
#[derive(Clone, Copy, Debug)]
struct Piece {
    table: Table,
    first: u64,
    last: u64,
}

/// How far the copying is.
#[derive(Default)]
struct Counters {
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    fn add(&self, rows: u64, bytes: usize) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The pieces of the copying, the largest last: work is taken from the end.
fn pieces(parameters: &Parameters, parallel: usize) -> Vec<Piece> {
    let bytes = |table: Table| table.units(parameters) * table.nominal_unit_bytes();
    let all: u64 = Table::ALL.into_iter().map(bytes).sum();
    let piece_bytes = (all / (parallel.max(1) as u64 * 4)).max(1);
    let mut pieces: Vec<Piece> = Table::ALL
        .into_iter()
        .flat_map(|table| {
            let units = table.units(parameters);
            let step = if parallel < DIVIDE_FROM {
                units
            } else {
                (piece_bytes / table.nominal_unit_bytes()).clamp(1, units.max(1))
            };
            (1..=units).step_by(step.max(1) as usize).map(move |first| Piece {
                table,
                first,
                last: (first + step - 1).min(units),
            })
        })
        .collect();
    pieces.sort_by_key(|piece| (piece.last - piece.first + 1) * piece.table.nominal_unit_bytes());
    pieces
}

/// Tables whose keys are given out by the server, and the keys.
const GIVEN_KEYS: [(Table, &str); 5] = [
    (Table::Customers, "customerid"),
    (Table::Products, "prod_id"),
    (Table::Orders, "orderid"),
    (Table::Reviews, "review_id"),
    (Table::ReviewsHelpfulness, "review_helpfulness_id"),
];

/// Creates and loads the shop, on `parallel` connections. Blocks.
pub(super) fn load<C: Loader + SchemaOwner>(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
) -> Result<ShopLoad, DvdStoreError> {
    let target = C::with_database(&target.with_application_name("underlay-load"), OURS);
    let identity = population_identity(C::ENGINE, parameters);
    let dialect = dialect(C::ENGINE);
    let names = Table::ALL.map(Table::as_str).into_iter().chain(["reorder"]);
    let tables: Vec<String> = names.map(|table| C::table(OURS, table)).collect();
    on_runtime(target.stop.unless(async {
        schema::create::<C>(&target, parameters, &identity).await?;
        Ok::<_, DvdStoreError>(C::before_rows(&target, &tables).await?)
    }))?;
    let counters = Counters::default();
    let began = Instant::now();
    let settings = (parallel, dialect.settings);
    let pieces = pieces(parameters, parallel);
    in_parallel(&target, settings, pieces, async |connection: &mut C, piece| {
        load_piece(connection, parameters, *piece, &counters).await
    })?;
    let rows_duration = began.elapsed();

    let began = Instant::now();
    // Work is taken from the end, and the longest comes first in the text.
    let keys: Vec<&str> = dialect.keys.lines().rev().collect();
    in_parallel(&target, settings, keys, async |connection: &mut C, key| {
        Ok::<_, DvdStoreError>(connection.run(&[*key]).await?)
    })?;
    on_connection(&target, dialect.settings, async |connection: &mut C| {
        // One after the other: each locks two tables.
        for reference in dialect.references.lines() {
            connection.query(reference.as_bytes()).await?;
        }
        for (table, key) in GIVEN_KEYS {
            // The next inserted row gets the number after the last loaded one.
            let Some(sql) = dialect.next_key else { break };
            let last = table.rows(parameters).to_string();
            let sql = sql.replace("{table}", table.as_str()).replace("{key}", key);
            connection.query(sql.replace("{last}", &last).as_bytes()).await?;
        }
        Ok::<_, DvdStoreError>(())
    })?;
    let keys_duration = began.elapsed();

    let began = Instant::now();
    C::settle::<DvdStoreError>(&target, parallel, &tables, Values::Any)?;
    let stored_bytes = on_connection(&target, &[], complete::<C>)?;
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
async fn complete<C: Loader + SchemaOwner>(connection: &mut C) -> Result<u64, DvdStoreError> {
    let sql = format!("UPDATE {} SET complete = true", C::table(OURS, OURS.marker()));
    connection.query(sql.as_bytes()).await?;
    connection.checkpoint().await?;
    let rows = connection.read_all(dialect(C::ENGINE).stored_bytes).await?;
    let bytes = rows.into_iter().flatten().flatten().next();
    Ok(bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0))
}

async fn load_piece<C: Connection + SchemaOwner>(
    connection: &mut C,
    parameters: &Parameters,
    piece: Piece,
    counters: &Counters,
) -> Result<(), DvdStoreError> {
    let load = BulkLoad {
        table: &C::table(OURS, piece.table.as_str()),
        columns: piece.table.columns(),
        binary_column: None,
        format: BulkFormat::Text,
        is_fresh: false,
    };
    let mut units = Units::new(parameters, piece.table);
    let mut numbers = piece.first..=piece.last;
    let mut text = RowText::default();
    let mut next = |out: &mut BytesMut| {
        out.reserve(CHUNK_BYTES + UNIT_BYTES_MAX);
        let before = out.len();
        std::mem::swap(out, &mut text.buffer);
        while text.buffer.len() - before < CHUNK_BYTES
            && let Some(unit) = numbers.next()
        {
            units.write(unit, &mut text);
        }
        std::mem::swap(out, &mut text.buffer);
        counters.add(std::mem::take(&mut text.rows), out.len() - before);
        !numbers.is_empty()
    };
    connection.bulk_load(load, &mut next).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::pieces;
    use underlay_core::RootSeed;
    use underlay_workload::dvdstore::population::Table;
    use underlay_workload::dvdstore::{Parameters, Size};

    #[test]
    fn pieces_cover_every_unit_once() {
        let parameters = Parameters::new(Size::SMALL, RootSeed(1));
        for parallel in [1, 2, 5, 16] {
            let pieces = pieces(&parameters, parallel);
            for table in Table::ALL {
                let mut of_table: Vec<_> =
                    pieces.iter().filter(|piece| piece.table == table).collect();
                of_table.sort_by_key(|piece| piece.first);
                let mut next = 1;
                for piece in of_table {
                    assert_eq!(piece.first, next, "{table:?}");
                    next = piece.last + 1;
                }
                assert_eq!(next, table.units(&parameters) + 1, "{table:?}");
            }
            assert_eq!(pieces.len() > Table::ALL.len(), parallel >= 2);
        }
    }
}
