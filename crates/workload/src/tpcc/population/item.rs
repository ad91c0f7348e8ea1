//! ITEM: 100,000 rows, shared by all warehouses.

use super::selection::Selection;
use super::text::{Text, TextBuffer, TextSource};
use crate::tpcc::Parameters;
use crate::tpcc::cardinality::ITEMS;

/// What a tenth of I_DATA and S_DATA contain: the mark of brand goods.
pub(super) const ORIGINAL: &[u8] = b"ORIGINAL";

/// A row of ITEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemRow<'a> {
    /// I_ID, 1 to 100,000.
    pub item: u32,
    /// I_IM_ID, 1 to 10,000.
    pub image: u32,
    /// I_NAME, 14 to 24 characters.
    pub name: Text<'a>,
    /// I_PRICE in cents, 100 to 10,000.
    pub price_cents: i64,
    /// I_DATA, 26 to 50 characters; 10 % contain `ORIGINAL`.
    pub data: Text<'a>,
}

/// Generates the rows of ITEM.
#[derive(Clone, Debug)]
pub struct ItemRows {
    source: TextSource,
    original: Selection,
    /// Rows generated so far.
    row: u32,
    name: TextBuffer<24>,
    data: TextBuffer<50>,
}

impl ItemRows {
    /// Rows of the table.
    pub const COUNT: u32 = ITEMS;

    /// All rows.
    pub fn new(parameters: &Parameters) -> ItemRows {
        ItemRows {
            source: TextSource::new(parameters, "tpcc/item", 0),
            original: Selection::tenth_of(Self::COUNT),
            row: 0,
            name: TextBuffer::new(),
            data: TextBuffer::new(),
        }
    }

    /// The next row, by item.
    pub fn next_row(&mut self) -> Option<ItemRow<'_>> {
        if self.row == Self::COUNT {
            return None;
        }
        self.row += 1;
        self.source.string(&mut self.name, 14, 24);
        self.source.string(&mut self.data, 26, 50);
        if self.original.next(self.source.random()) {
            self.data.overwrite(&mut self.source, ORIGINAL);
        }
        Some(ItemRow {
            item: self.row,
            image: self.source.number(1, 10_000),
            price_cents: i64::from(self.source.number(100, 10_000)),
            name: self.name.text(),
            data: self.data.text(),
        })
    }
}
