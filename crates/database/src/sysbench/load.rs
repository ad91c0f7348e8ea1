//! Loading the tables: what all engines have in common.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use underlay_workload::sysbench::Parameters;

use crate::load_report::LoadReport;

/// Rows of one piece of work.
const PIECE_ROWS: u32 = 200_000;

/// What all connections of a load spent on each stage, and sent.
#[derive(Default)]
pub(crate) struct Spent {
    /// Bytes sent to the server.
    pub bytes: AtomicU64,
    rows_ns: AtomicU64,
    keys_ns: AtomicU64,
    settle_ns: AtomicU64,
}

/// A stage of a load.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    /// Copying rows.
    Rows,
    /// Building keys and indexes.
    Keys,
    /// What comes after them.
    Settle,
}

impl Spent {
    /// Counts what was done since `began` to a stage; gives the present, from which the next one counts.
    pub(crate) fn add(&self, stage: Stage, began: Instant) -> Instant {
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
    pub(crate) fn report(&self, parameters: &Parameters, whole: Duration) -> LoadReport {
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
pub(crate) fn has_table_per_connection(parameters: &Parameters, parallel: usize) -> bool {
    parameters.tables as usize >= parallel.max(1)
}

/// A whole table.
pub(crate) fn whole(parameters: &Parameters, table: u32) -> Piece {
    Piece { table, first: 1, last: parameters.table_size }
}

/// Rows `first..=last` of a table.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    /// The table, from 1.
    pub table: u32,
    /// The first id.
    pub first: u32,
    /// The last id.
    pub last: u32,
}

/// The pieces; work is taken from the end, so the first table comes last.
pub(crate) fn pieces(parameters: &Parameters) -> Vec<Piece> {
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
