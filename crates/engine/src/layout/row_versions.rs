//! Where PostgreSQL puts new versions of rows.
//!
//! A page that was loaded full has no room for a new version of one of its rows. The first change
//! on it moves the row to the end of its table, and every index of the table gets an entry for the
//! new place. The version that was left behind is pruned as soon as nobody sees it; from then on
//! changes on the page stay there, as heap-only tuples (PostgreSQL's `README.HOT`). One free place
//! suffices where transactions are short: it is pruned again before the next change.
//!
//! Not here: vacuum, which would let other pages take rows, and splits of index leaves.

use crate::page::{BlockSet, NOWHERE, PageId};

/// Pages of a table that have room for a new version. A row on block `b` changes: [`BlockSet::insert`] says whether its new
/// version stays there. Afterwards there is room, as the old version goes.
pub(crate) type Room = BlockSet;

/// The places of the rows of a table that was loaded in the order of its keys, with full pages.
#[derive(Clone, Debug)]
pub(crate) struct RowVersions {
    relation: u16,
    rows_per_page: u32,
    /// The place behind the last row, in rows.
    end: u64,
    room: Room,
    /// Per loaded page: the row that has left it, which makes room for the others. As long as the highest page that one
    /// has left.
    moved: Vec<Moved>,
}

/// A row that has left the page where it was loaded.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// Its number among the rows of that page.
    slot: u16,
    /// Where it is; [`NOWHERE`] if none has left.
    block: u32,
}

impl Moved {
    const NONE: Moved = Moved { slot: 0, block: NOWHERE };
}

impl RowVersions {
    /// A table of `rows` rows.
    pub(crate) fn new(relation: u16, rows: u64, rows_per_page: u32) -> RowVersions {
        // New rows begin a page of their own: the last loaded page counts as full.
        let end = rows.div_ceil(u64::from(rows_per_page)) * u64::from(rows_per_page);
        RowVersions { relation, rows_per_page, end, room: Room::default(), moved: Vec::new() }
    }

    fn block(&self, place: u64) -> u32 {
        (place / u64::from(self.rows_per_page)) as u32
    }

    /// The page of a row, by its number in the order of loading.
    pub(crate) fn page(&self, row: u64) -> PageId {
        let loaded = self.block(row);
        let moved = self.moved.get(loaded as usize).copied().unwrap_or(Moved::NONE);
        let has_left = moved.block != NOWHERE && moved.slot == self.slot(row);
        PageId::new(self.relation, if has_left { moved.block } else { loaded })
    }

    /// A row's number among those that were loaded to its page.
    fn slot(&self, row: u64) -> u16 {
        (row % u64::from(self.rows_per_page)) as u16
    }

    /// A row changes. The page where it was, and where its new version is unless it is the same.
    pub(crate) fn change(&mut self, row: u64) -> (PageId, Option<PageId>) {
        let page = self.page(row);
        let block = self.block(self.end);
        // The page at the end is not full yet.
        if self.room.insert(page.block()) || block == page.block() {
            return (page, None);
        }
        self.end += 1;
        let loaded = self.block(row) as usize;
        if loaded >= self.moved.len() {
            self.moved.resize(loaded + 1, Moved::NONE);
        }
        let moved = &self.moved[loaded];
        debug_assert!(moved.block == NOWHERE || moved.slot == self.slot(row), "one row leaves");
        self.moved[loaded] = Moved { slot: self.slot(row), block };
        (page, Some(PageId::new(self.relation, block)))
    }
}

#[cfg(test)]
mod tests {
    use super::RowVersions;
    use crate::page::PageId;

    #[test]
    fn the_first_change_on_a_full_page_moves_the_row_and_makes_room() {
        let mut rows = RowVersions::new(3, 95, 10);
        let page = |block| PageId::new(3, block);
        assert_eq!(rows.page(25), page(2));
        assert_eq!(rows.change(25), (page(2), Some(page(10))));
        assert_eq!(rows.page(25), page(10));
        // The others stay, and so do their later changes.
        assert_eq!((rows.change(26), rows.change(29)), ((page(2), None), (page(2), None)));
        // Rows that moved fill a page of the end, which is full in its turn.
        for block in (0..10).filter(|block| *block != 2) {
            assert_eq!(rows.change(block * 10), (page(block as u32), Some(page(10))));
        }
        assert_eq!(rows.change(25), (page(10), Some(page(11))));
        assert_eq!(rows.change(0), (page(10), None));
    }

    #[test]
    fn every_page_makes_at_most_one_row_move() {
        let mut rows = RowVersions::new(0, 1_000, 10);
        let moved = (0..5_000_u64).filter(|n| rows.change(n * 7 % 1_000).1.is_some()).count();
        // 100 loaded pages, the pages their rows fill, and the pages that those rows fill.
        assert!((100..=111).contains(&moved), "{moved}");
        assert!((0..1_000).all(|row| rows.change(row).1.is_none()));
    }
}
