//! Loading the tables: what all engines have in common.

use underlay_workload::sysbench::Parameters;

/// Rows of one piece of work.
const PIECE_ROWS: u32 = 200_000;

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
    use super::pieces;
    use underlay_core::RootSeed;
    use underlay_workload::sysbench::{Distribution, Parameters, Script};

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
