//! STOCK: 100,000 rows per warehouse, nearly half of all bytes.

use super::item::ORIGINAL;
use super::selection::Selection;
use super::text::{Text, TextBuffer, TextSource};
use crate::tpcc::Parameters;
use crate::tpcc::cardinality::{DISTRICTS_PER_WAREHOUSE, STOCK_PER_WAREHOUSE};

/// A row of STOCK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StockRow<'a> {
    /// S_W_ID, from 1.
    pub warehouse: u32,
    /// S_I_ID, 1 to 100,000.
    pub item: u32,
    /// S_QUANTITY, 10 to 100.
    pub quantity: u32,
    /// S_DIST_01 to S_DIST_10, 24 characters each, by district.
    pub districts: [Text<'a>; DISTRICTS_PER_WAREHOUSE as usize],
    /// S_YTD: 0.
    pub ytd: u32,
    /// S_ORDER_CNT: 0.
    pub order_count: u32,
    /// S_REMOTE_CNT: 0.
    pub remote_count: u32,
    /// S_DATA, 26 to 50 characters; 10 % contain `ORIGINAL`.
    pub data: Text<'a>,
}

/// Generates the rows of STOCK of one warehouse.
#[derive(Clone, Debug)]
pub struct StockRows {
    source: TextSource,
    original: Selection,
    warehouse: u32,
    /// Rows generated so far.
    row: u32,
    districts: [TextBuffer<24>; DISTRICTS_PER_WAREHOUSE as usize],
    data: TextBuffer<50>,
}

impl StockRows {
    /// Rows per warehouse.
    pub const COUNT: u32 = STOCK_PER_WAREHOUSE;

    /// The rows of `warehouse`, counted from 1.
    pub fn new(parameters: &Parameters, warehouse: u32) -> StockRows {
        StockRows {
            source: TextSource::new(parameters, "tpcc/stock", warehouse),
            original: Selection::tenth_of(Self::COUNT),
            warehouse,
            row: 0,
            districts: [const { TextBuffer::new() }; DISTRICTS_PER_WAREHOUSE as usize],
            data: TextBuffer::new(),
        }
    }

    /// The next row, by item.
    pub fn next_row(&mut self) -> Option<StockRow<'_>> {
        if self.row == Self::COUNT {
            return None;
        }
        self.row += 1;
        for district in &mut self.districts {
            self.source.fill(district.resize(24));
        }
        self.source.string(&mut self.data, 26, 50);
        if self.original.next(self.source.random()) {
            self.data.overwrite(&mut self.source, ORIGINAL);
        }
        Some(StockRow {
            warehouse: self.warehouse,
            item: self.row,
            quantity: self.source.number(10, 100),
            districts: self.districts.each_ref().map(TextBuffer::text),
            ytd: 0,
            order_count: 0,
            remote_count: 0,
            data: self.data.text(),
        })
    }
}
