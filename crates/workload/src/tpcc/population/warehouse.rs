//! WAREHOUSE: one row per warehouse.

use super::address::{AddressBuffer, AddressRow};
use super::text::{Text, TextBuffer, TextSource};
use crate::tpcc::Parameters;

/// A row of WAREHOUSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarehouseRow<'a> {
    /// W_ID, from 1.
    pub warehouse: u32,
    /// W_NAME, 6 to 10 characters.
    pub name: Text<'a>,
    /// W_STREET_1 to W_ZIP.
    pub address: AddressRow<'a>,
    /// W_TAX in ten-thousandths, 0 to 2,000.
    pub tax_ten_thousandths: u32,
    /// W_YTD in cents: 300,000.00.
    pub ytd_cents: i64,
}

/// Generates the row of WAREHOUSE of one warehouse.
#[derive(Clone, Debug)]
pub struct WarehouseRows {
    source: TextSource,
    warehouse: u32,
    done: bool,
    name: TextBuffer<10>,
    address: AddressBuffer,
}

impl WarehouseRows {
    /// The row of `warehouse`, counted from 1.
    pub fn new(parameters: &Parameters, warehouse: u32) -> WarehouseRows {
        WarehouseRows {
            source: TextSource::new(parameters, "tpcc/warehouse", warehouse),
            warehouse,
            done: false,
            name: TextBuffer::new(),
            address: AddressBuffer::new(),
        }
    }

    /// The next row; nothing after the only one.
    pub fn next_row(&mut self) -> Option<WarehouseRow<'_>> {
        if self.done {
            return None;
        }
        self.done = true;
        self.source.string(&mut self.name, 6, 10);
        self.address.generate(&mut self.source);
        Some(WarehouseRow {
            warehouse: self.warehouse,
            name: self.name.text(),
            address: self.address.row(),
            tax_ten_thousandths: self.source.number(0, 2_000),
            ytd_cents: 30_000_000,
        })
    }
}
