//! The tables of sysbench on pages: rows and their primary keys in the order of the ids, an index
//! on `k`.
//!
//! Tables lie one behind the other in the same relations. What is inserted goes to the end.

use super::Relation;
use super::leaf_splits::LeafSplits;
use super::row_versions::RowVersions;
use crate::page::PageId;

/// Rows on a page. PostgreSQL: 216 bytes and a pointer of 4 on 8,168 usable bytes, index entries of
/// 20 bytes on leaves filled to 90 %. InnoDB: 208 bytes, and entries of 14, on pages filled to
/// 15/16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowsPerPage {
    row: u64,
    key: u64,
    k: u64,
}

const POSTGRESQL: RowsPerPage = RowsPerPage { row: 37, key: 367, k: 367 };
const INNODB: RowsPerPage = RowsPerPage { row: 73, key: 73, k: 1_000 };
/// Pages in use at once for undo records: 16 of each of 128 segments.
const UNDO_BLOCKS: u64 = 128 * 16;

const ROWS: u16 = 0;
const KEYS: u16 = 1;
const K: u16 = 2;
const UNDO: u16 = 3;

/// Pages of sysbench's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SysbenchPages {
    tables: u64,
    table_size: u64,
    per: RowsPerPage,
    is_clustered: bool,
}

impl SysbenchPages {
    /// On PostgreSQL.
    pub fn postgresql(tables: u32, table_size: u32) -> SysbenchPages {
        let (tables, table_size) = (u64::from(tables), u64::from(table_size));
        SysbenchPages { tables, table_size, per: POSTGRESQL, is_clustered: false }
    }

    /// On InnoDB.
    pub fn innodb(tables: u32, table_size: u32) -> SysbenchPages {
        let pages = SysbenchPages::postgresql(tables, table_size);
        SysbenchPages { per: INNODB, is_clustered: true, ..pages }
    }

    /// Whether rows lie in the leaves of their primary keys.
    pub fn is_clustered(&self) -> bool {
        self.is_clustered
    }

    /// Rows that were loaded.
    pub fn rows(&self) -> u64 {
        self.tables * self.table_size
    }

    /// The relations with their initial sizes.
    pub fn relations(&self) -> Vec<Relation> {
        let of = |name, per: u64, (image_bytes, is_heap)| Relation {
            name,
            // What is cut off here does not fit any volume either.
            blocks: self.rows().div_ceil(per).min(u64::from(u32::MAX)) as u32,
            rows: if is_heap { self.rows() } else { 0 },
            image_bytes,
            is_heap,
            grows: true,
        };
        let leaf = (7_400, false);
        let mut keys = of("sbtest_pkey", self.per.key, leaf);
        let undo = if self.is_clustered { UNDO_BLOCKS as u32 } else { 0 };
        if self.is_clustered {
            keys.blocks = 0;
        }
        let undo = Relation::undo(undo);
        vec![of("sbtest", self.per.row, (8_150, true)), keys, of("k", self.per.k, leaf), undo]
    }

    /// The number of a row among all: tables and ids count from 1, and ids behind the loaded ones
    /// come round again.
    pub fn row(&self, table: u32, id: u32) -> u64 {
        let place = (u64::from(id) + self.table_size - 1) % self.table_size;
        u64::from(table - 1) % self.tables * self.table_size + place
    }

    /// Where rows are, of a heap.
    pub(crate) fn row_versions(&self) -> RowVersions {
        RowVersions::new(ROWS, self.rows(), self.per.row as u32)
    }

    /// Where the entries of the index on `k` are, on InnoDB.
    pub(crate) fn leaf_splits(&self) -> LeafSplits {
        LeafSplits::new(K, self.rows(), self.per.k)
    }

    /// The leaf of a row's key and the page that it was loaded to.
    pub fn of_row(&self, row: u64) -> [PageId; 2] {
        let page = PageId::new(ROWS, (row / self.per.row) as u32);
        if self.is_clustered {
            return [page, page];
        }
        [PageId::new(KEYS, (row / self.per.key) as u32), page]
    }

    /// The leaf of a loaded entry of the index on `k`, by its place among all entries of all tables.
    pub fn of_k(&self, place: u64) -> PageId {
        PageId::new(K, (place / self.per.k) as u32)
    }

    /// The page of the undo records of the `n`-th transaction.
    pub fn undo(&self, number: u64) -> PageId {
        let segment = number % 128;
        PageId::new(UNDO, (segment * 16 + number / 128 / 16 % 16) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::SysbenchPages;

    #[test]
    fn rows_take_what_they_take_on_a_server_and_lie_within_their_relations() {
        for (pages, page_bytes) in [
            (SysbenchPages::postgresql(4, 1_000_000), 8192),
            (SysbenchPages::innodb(4, 1_000_000), 16_384),
        ] {
            let relations = pages.relations();
            let bytes: u64 =
                relations.iter().map(|relation| u64::from(relation.blocks) * page_bytes).sum();
            // 230 to 270 bytes per row with its index entries.
            assert!((230..=275).contains(&(bytes / pages.rows())), "{}", bytes / pages.rows());
            for (table, id) in [(1, 1), (4, 1_000_000), (2, 5)] {
                let row = pages.row(table, id);
                let last = [pages.of_row(row)[0], pages.of_row(row)[1], pages.of_k(row)];
                for page in last {
                    assert!(page.block() < relations[usize::from(page.relation())].blocks);
                }
            }
            assert_eq!(pages.row(1, 1_000_001), pages.row(1, 1));
        }
    }
}
