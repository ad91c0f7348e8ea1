//! The pieces of a check: contiguous warehouses, looked at in one transaction.
//!
//! Pieces are as large as the number of connections asks for, and no larger than what keeps their temporary
//! tables small (about 5 MB per warehouse), whatever the number of warehouses.

use super::TableNames;

/// Bounds the temporary tables of one connection to about 250 MB. Not smaller, because tables without an
/// index by warehouse are read once per piece.
const WAREHOUSES_MAX: u32 = 50;

/// Contiguous warehouses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first warehouse.
    lowest: i32,
    /// The last.
    highest: i32,
    /// The lower bound of warehouse numbers in this piece: open for the first piece, so that a row of
    /// a warehouse that should not exist is seen.
    first: i32,
    /// The upper bound; open for the last piece.
    last: i32,
}

impl Piece {
    /// A text with its placeholders replaced: `{table}` by names, `$first` and `$last` by the bounds of
    /// the warehouse numbers, `$warehouses` by a query of the numbers `w` that must exist.
    pub fn insert_into(&self, sql: &str, tables: &TableNames) -> String {
        let numbers: Vec<String> =
            (self.lowest..=self.highest).map(|number| format!("SELECT {number} AS w")).collect();
        tables
            .insert_into(sql)
            .replace("$first", &self.first.to_string())
            .replace("$last", &self.last.to_string())
            .replace("$warehouses", &format!("({})", numbers.join(" UNION ALL ")))
    }
}

/// All warehouses in pieces as even as possible, for `parallel` connections.
pub fn pieces(warehouses: u32, parallel: usize) -> Vec<Piece> {
    let warehouses = warehouses.max(1);
    let wanted = u32::try_from(parallel).unwrap_or(u32::MAX).max(1);
    // A multiple of the connections, so that all of them end at about the same time.
    let rounds = warehouses.div_ceil(wanted.saturating_mul(WAREHOUSES_MAX));
    let parts = wanted.saturating_mul(rounds).min(warehouses);
    let at = |part: u32| (u64::from(warehouses) * u64::from(part) / u64::from(parts)) as i32;
    (0..parts)
        .map(|part| {
            let (lowest, highest) = (at(part) + 1, at(part + 1));
            Piece {
                lowest,
                highest,
                first: if part == 0 { -i32::MAX } else { lowest },
                last: if part + 1 == parts { i32::MAX } else { highest },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{TableNames, WAREHOUSES_MAX, pieces};

    #[test]
    fn pieces_cover_every_warehouse_once() {
        for warehouses in (1..40).chain([99, 100, 101, 1000]) {
            for parallel in 1..10 {
                let pieces = pieces(warehouses, parallel);
                let covered: Vec<i32> =
                    pieces.iter().flat_map(|piece| piece.lowest..=piece.highest).collect();
                assert_eq!(covered, (1..=warehouses as i32).collect::<Vec<_>>());
                assert!(pieces.len() >= parallel.min(warehouses as usize));
                let largest = pieces.iter().map(|piece| piece.highest - piece.lowest + 1).max();
                assert!(largest.unwrap() <= WAREHOUSES_MAX as i32);
            }
        }
    }

    #[test]
    fn bounds_are_open_at_both_ends_alone() {
        let pieces = pieces(6, 3);
        let bounds: Vec<(i32, i32)> =
            pieces.iter().map(|piece| (piece.first, piece.last)).collect();
        assert_eq!(bounds, [(-i32::MAX, 2), (3, 4), (5, i32::MAX)]);
        let text = "{item} $first..$last $warehouses";
        assert_eq!(
            pieces[2].insert_into(text, &TableNames::underlay()),
            format!("tpcc.item 5..{} (SELECT 5 AS w UNION ALL SELECT 6 AS w)", i32::MAX)
        );
    }
}
