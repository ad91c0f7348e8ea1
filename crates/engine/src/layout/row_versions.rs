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
    /// What the numbers in [`Moved`] are made of.
    packing: Packing,
}

/// A row that has left the page where it was loaded; [`NOWHERE`] if none has. Four bytes: a table has millions of pages.
type Moved = u32;

/// Its number among the rows of that page, and where it is: blocks behind those that were loaded.
#[derive(Clone, Copy, Debug)]
struct Packing {
    slot_bits: u32,
    loaded: u32,
}

impl Packing {
    /// Rows that have left fill pages as full as those they have left. So with the bits of a row's number, the blocks take
    /// at most two more bits than pages have.
    const PAGES_MAX: u64 = 1 << 30;

    fn new(pages: u64, rows_per_page: u32) -> Packing {
        assert!(pages <= Packing::PAGES_MAX, "a table of {pages} pages does not fit memory either");
        assert!(rows_per_page > 1, "a row alone on its page would move with each change");
        Packing { slot_bits: rows_per_page.next_power_of_two().ilog2(), loaded: pages as u32 }
    }

    fn pack(self, slot: u32, block: u32) -> Moved {
        let moved = u64::from(block - self.loaded) << self.slot_bits | u64::from(slot);
        // New rows fill blocks, too: 2^25 of them at most with 64 rows per page.
        assert!(moved < u64::from(NOWHERE), "row {slot} is on block {block}");
        moved as Moved
    }

    /// Row and block.
    fn unpack(self, moved: Moved) -> (u32, u32) {
        (moved & ((1 << self.slot_bits) - 1), self.loaded + (moved >> self.slot_bits))
    }
}

impl RowVersions {
    /// A table of `rows` rows.
    pub(crate) fn new(relation: u16, rows: u64, rows_per_page: u32) -> RowVersions {
        // New rows begin a page of their own: the last loaded page counts as full.
        let pages = rows.div_ceil(u64::from(rows_per_page));
        RowVersions {
            relation,
            rows_per_page,
            end: pages * u64::from(rows_per_page),
            room: Room::default(),
            moved: Vec::new(),
            packing: Packing::new(pages, rows_per_page),
        }
    }

    fn block(&self, place: u64) -> u32 {
        (place / u64::from(self.rows_per_page)) as u32
    }

    /// The page of a row, by its number in the order of loading.
    pub(crate) fn page(&self, row: u64) -> PageId {
        let loaded = self.block(row);
        let left = self.left(loaded).filter(|(slot, _)| *slot == self.slot(row));
        PageId::new(self.relation, left.map_or(loaded, |(_, block)| block))
    }

    /// The row that has left a loaded page, and the block where it is.
    fn left(&self, loaded: u32) -> Option<(u32, u32)> {
        let moved = self.moved.get(loaded as usize).filter(|moved| **moved != NOWHERE)?;
        Some(self.packing.unpack(*moved))
    }

    /// A row's number among those that were loaded to its page.
    fn slot(&self, row: u64) -> u32 {
        (row % u64::from(self.rows_per_page)) as u32
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
        let (loaded, slot) = (self.block(row), self.slot(row));
        let before = self.left(loaded);
        debug_assert!(before.is_none_or(|(other, _)| other == slot), "one row leaves");
        if loaded as usize >= self.moved.len() {
            self.moved.resize(loaded as usize + 1, NOWHERE);
        }
        self.moved[loaded as usize] = self.packing.pack(slot, block);
        (page, Some(PageId::new(self.relation, block)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Packing, RowVersions};
    use crate::page::{NOWHERE, PageId};

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
    fn the_largest_tables_fit_whatever_the_rows_of_a_page() {
        for rows_per_page in [2, 3, 31, 32, 33, 1_000] {
            let pages = Packing::PAGES_MAX;
            let packing = Packing::new(pages, rows_per_page);
            // Each loaded page is left by a row, and so are the pages that these fill.
            let filled = pages / u64::from(rows_per_page - 1);
            let last = (rows_per_page - 1, (pages + filled - 1) as u32);
            let moved = packing.pack(last.0, last.1);
            assert_ne!(moved, NOWHERE, "{rows_per_page}");
            assert_eq!(packing.unpack(moved), last, "{rows_per_page}");
        }
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
