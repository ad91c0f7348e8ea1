//! Loading: what both engines have in common.

use std::sync::atomic::{AtomicU64, Ordering};

use underlay_workload::dvdstore::Parameters;
use underlay_workload::dvdstore::population::Table;

use crate::load_report::LoadReport;

/// From this many threads on, tables are divided among them: nine in ten rows are in one table.
const DIVIDE_FROM: usize = 2;

/// What the load of a shop came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShopLoad {
    /// As of every load.
    pub report: LoadReport,
    /// Bytes that tables and indexes take in the database.
    pub stored_bytes: u64,
}

/// Units `first..=last` of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub table: Table,
    pub first: u64,
    pub last: u64,
}

/// How far the copying is.
#[derive(Default)]
pub(crate) struct Counters {
    pub rows: AtomicU64,
    pub bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn add(&self, rows: u64, bytes: usize) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The pieces of the copying, the largest last: work is taken from the end.
pub(crate) fn pieces(parameters: &Parameters, parallel: usize) -> Vec<Piece> {
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
