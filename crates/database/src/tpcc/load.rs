//! Loading a population: what all engines have in common.

use std::sync::atomic::AtomicU64;

use underlay_workload::tpcc::population::Table;

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

/// A piece of the copying.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    /// Of which table.
    pub table: Table,
    /// The first warehouse.
    pub first: u32,
    /// The last warehouse.
    pub last: u32,
    /// The whole table, which nobody else then writes to.
    pub whole: bool,
}

/// How far the copying is.
#[derive(Default)]
pub(crate) struct Counters {
    /// Rows generated.
    pub rows: AtomicU64,
    /// Bytes sent to the server.
    pub bytes: AtomicU64,
}

/// The pieces of the copying, the largest last: work is taken from the end. From `divide_from` threads on, tables
/// are divided among them.
pub(crate) fn pieces(warehouses: u32, parallel: usize, divide_from: usize) -> Vec<Piece> {
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
