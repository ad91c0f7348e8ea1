//! Loading the tables: generated rows through the engine's bulk path, then keys, then statistics.
//!
//! Where there are enough tables, a connection takes one after the other from its first row to its statistics, in one transaction
//! where that saves the server work: rows are then written frozen, and a PostgreSQL with `wal_level = minimal` writes no log for them.
//! Fewer tables than connections are divided among them, stage by stage. A MariaDB under `innodb_autoinc_lock_mode`
//! below 2 lets only one bulk load at a time into a table that numbers its rows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use underlay_workload::sysbench::{Parameters, Row, Sampler};

use super::names::numbered;
use super::sql::dialect;
use super::{SysbenchError, schema};
use crate::connection::{BulkFormat, BulkLoad, Connection, RowEncoder};
use crate::load_report::LoadReport;
use crate::loading::{Loader, Values, in_parallel, on_connection};
use crate::parallel::on_runtime;
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// Size of a message to the server.
const CHUNK_BYTES: usize = 128 << 10;
/// More than a row takes.
const ROW_BYTES_MAX: usize = 4096;

/// Creates and loads the tables, on `parallel` connections. Blocks.
pub(super) fn load<C: Loader + SchemaOwner>(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
) -> Result<LoadReport, SysbenchError> {
    let target = target.with_application_name("underlay-load");
    let target = C::with_database(&target, WorkloadTables::Sysbench);
    on_runtime(target.stop.unless(schema::create::<C>(&target, parameters)))?;
    let sampler = parameters.distribution.sampler(parameters.table_size);
    let began = Instant::now();
    let spent = Spent::default();
    if has_table_per_connection(parameters, parallel) {
        let settings = (parallel, C::OWN_TABLE_SETTINGS);
        in_parallel(&target, settings, tables(parameters), async |connection: &mut C, table| {
            load_table(connection, parameters, &sampler, *table, &spent).await
        })?;
    } else {
        divided::<C>(&target, parameters, parallel, &sampler, &spent)?;
    }
    let last = Instant::now();
    on_connection(&target, &[], async |connection: &mut C| {
        connection.query(b"UPDATE underlay_sysbench SET complete = true").await?;
        Ok::<_, SysbenchError>(connection.checkpoint().await?)
    })?;
    spent.add(Stage::Settle, last);
    Ok(spent.report(parameters, began.elapsed()))
}

/// Work is taken from the end, so the first table comes first.
fn tables(parameters: &Parameters) -> Vec<u32> {
    (1..=parameters.tables).rev().collect()
}

/// One table from its rows to its statistics.
async fn load_table<C: Loader>(
    connection: &mut C,
    parameters: &Parameters,
    sampler: &Sampler,
    table: u32,
    spent: &Spent,
) -> Result<(), SysbenchError> {
    let name = format!("sbtest{table}");
    let began = Instant::now();
    connection.begin_fresh(&name).await?;
    let piece = Piece { table, first: 1, last: parameters.table_size };
    load_piece(connection, parameters, sampler, piece, (true, &spent.bytes)).await?;
    let began = spent.add(Stage::Rows, began);
    create_keys(connection, parameters, table).await?;
    connection.end_fresh().await?;
    let began = spent.add(Stage::Keys, began);
    connection.settle_own(&name).await?;
    spent.add(Stage::Settle, began);
    Ok(())
}

/// Tables that several connections load at once, stage by stage.
fn divided<C: Loader>(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
    sampler: &Sampler,
    spent: &Spent,
) -> Result<(), SysbenchError> {
    let names: Vec<String> =
        tables(parameters).into_iter().map(|table| format!("sbtest{table}")).collect();
    on_runtime(async { Ok::<_, SysbenchError>(C::before_rows(target, &names).await?) })?;
    let began = Instant::now();
    let pieces = pieces(parameters);
    in_parallel(target, (parallel, &[]), pieces, async |connection: &mut C, piece| {
        load_piece(connection, parameters, sampler, *piece, (false, &spent.bytes)).await
    })?;
    let began = spent.add(Stage::Rows, began);
    in_parallel(target, (parallel, &[]), tables(parameters), async |connection: &mut C, table| {
        create_keys(connection, parameters, *table).await
    })?;
    let began = spent.add(Stage::Keys, began);
    C::settle::<SysbenchError>(target, parallel, &names, Values::Even)?;
    spent.add(Stage::Settle, began);
    Ok(())
}

/// Keys of a table; the next inserted row gets the id after the last loaded one.
async fn create_keys<C: Connection>(
    connection: &mut C,
    parameters: &Parameters,
    table: u32,
) -> Result<(), SysbenchError> {
    let dialect = dialect(C::ENGINE);
    connection.query(numbered(dialect.keys, table).as_bytes()).await?;
    if let Some(sequence) = dialect.sequence {
        let sql = sequence.replace("{rows}", &parameters.table_size.to_string());
        connection.query(numbered(&sql, table).as_bytes()).await?;
    }
    Ok(())
}

async fn load_piece<C: Connection>(
    connection: &mut C,
    parameters: &Parameters,
    sampler: &Sampler,
    piece: Piece,
    (is_fresh, bytes): (bool, &AtomicU64),
) -> Result<(), SysbenchError> {
    let Piece { table, first, last } = piece;
    let load = BulkLoad {
        table: &format!("sbtest{table}"),
        columns: "id, k, c, pad",
        binary_column: None,
        format: BulkFormat::Encoded,
        is_fresh,
    };
    let mut encoder = C::Encoder::default();
    let mut ids = first..=last;
    let mut next = |out: &mut BytesMut| {
        out.reserve(CHUNK_BYTES + ROW_BYTES_MAX);
        let before = out.len();
        while out.len() - before < CHUNK_BYTES
            && let Some(id) = ids.next()
        {
            let row = Row::of(parameters.seed, table, id, sampler);
            encoder.begin(out, 4);
            encoder.int(out, row.id);
            encoder.int(out, row.k);
            encoder.text(out, &row.c);
            encoder.text(out, &row.pad);
            encoder.end(out);
        }
        bytes.fetch_add((out.len() - before) as u64, Ordering::Relaxed);
        !ids.is_empty()
    };
    connection.bulk_load(load, &mut next).await?;
    Ok(())
}

/// Rows of one piece of work.
const PIECE_ROWS: u32 = 200_000;

/// What all connections of a load spent on each stage, and sent.
#[derive(Default)]
struct Spent {
    /// Bytes sent to the server.
    bytes: AtomicU64,
    rows_ns: AtomicU64,
    keys_ns: AtomicU64,
    settle_ns: AtomicU64,
}

/// A stage of a load.
#[derive(Clone, Copy)]
enum Stage {
    /// Copying rows.
    Rows,
    /// Building keys and indexes.
    Keys,
    /// What comes after them.
    Settle,
}

impl Spent {
    /// Counts what was done since `began` to a stage; gives the present, from which the next one counts.
    fn add(&self, stage: Stage, began: Instant) -> Instant {
        let now = Instant::now();
        let counter = match stage {
            Stage::Rows => &self.rows_ns,
            Stage::Keys => &self.keys_ns,
            Stage::Settle => &self.settle_ns,
        };
        counter.fetch_add((now - began).as_nanos() as u64, Ordering::Relaxed);
        now
    }

    /// The report of a load that took `whole`.
    fn report(&self, parameters: &Parameters, whole: Duration) -> LoadReport {
        let [rows, keys, settle] = [&self.rows_ns, &self.keys_ns, &self.settle_ns]
            .map(|counter| u128::from(counter.load(Ordering::Relaxed)));
        let all = (rows + keys + settle).max(1);
        let part = |of: u128| Duration::from_nanos((whole.as_nanos() * of / all) as u64);
        LoadReport {
            rows: parameters.rows(),
            bytes: self.bytes.load(Ordering::Relaxed),
            rows_duration: part(rows),
            keys_duration: part(keys),
            // What rounding left over, too.
            settle_duration: whole - part(rows) - part(keys),
        }
    }
}

/// Whether each connection can have tables of its own all along.
fn has_table_per_connection(parameters: &Parameters, parallel: usize) -> bool {
    parameters.tables as usize >= parallel.max(1)
}

/// Rows `first..=last` of a table.
#[derive(Clone, Copy)]
struct Piece {
    /// The table, from 1.
    table: u32,
    /// The first id.
    first: u32,
    /// The last id.
    last: u32,
}

/// The pieces; work is taken from the end, so the first table comes last.
fn pieces(parameters: &Parameters) -> Vec<Piece> {
    let size = parameters.table_size;
    (1..=parameters.tables)
        .rev()
        .flat_map(|table| {
            (1..=size).step_by(PIECE_ROWS as usize).map(move |first| Piece {
                table,
                first,
                last: first.saturating_add(PIECE_ROWS - 1).min(size),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Spent, Stage, pieces};
    use std::time::{Duration, Instant};
    use underlay_core::RootSeed;
    use underlay_workload::sysbench::{Distribution, Parameters, Script};

    #[test]
    fn overlapping_stages_add_up_to_the_whole() {
        let parameters =
            Parameters::new(3, 10, RootSeed(1), Distribution::Uniform, Script::ReadWrite).unwrap();
        let spent = Spent::default();
        let long_ago = Instant::now() - Duration::from_millis(600);
        for (stage, millis) in [(Stage::Rows, 500), (Stage::Keys, 400), (Stage::Settle, 100)] {
            spent.add(stage, long_ago + Duration::from_millis(600 - millis));
        }
        let whole = Duration::from_millis(500);
        let report = spent.report(&parameters, whole);
        assert_eq!((report.duration(), report.rows), (whole, 30));
        assert!(report.rows_duration > report.keys_duration);
        assert!(report.keys_duration > report.settle_duration);
        assert_eq!(Spent::default().report(&parameters, whole).duration(), whole);
    }

    #[test]
    fn pieces_cover_every_row_once() {
        for size in [1, 199_999, 200_000, 200_001, 450_000] {
            let parameters =
                Parameters::new(3, size, RootSeed(1), Distribution::Uniform, Script::ReadWrite);
            let pieces = pieces(&parameters.unwrap());
            for table in 1..=3 {
                let mut next = 1;
                for piece in pieces.iter().filter(|piece| piece.table == table) {
                    assert_eq!(piece.first, next);
                    next = piece.last + 1;
                }
                assert_eq!(next, size + 1);
            }
        }
    }
}
