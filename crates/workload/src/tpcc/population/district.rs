//! DISTRICT: ten rows per warehouse.

use super::address::{AddressBuffer, AddressRow};
use super::text::{Text, TextBuffer, TextSource};
use crate::tpcc::Parameters;
use crate::tpcc::cardinality::{DISTRICTS_PER_WAREHOUSE, INITIAL_NEXT_ORDER};

/// A row of DISTRICT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistrictRow<'a> {
    /// D_W_ID, from 1.
    pub warehouse: u32,
    /// D_ID, 1 to 10.
    pub district: u32,
    /// D_NAME, 6 to 10 characters.
    pub name: Text<'a>,
    /// D_STREET_1 to D_ZIP.
    pub address: AddressRow<'a>,
    /// D_TAX in ten-thousandths, 0 to 2,000.
    pub tax_ten_thousandths: u32,
    /// D_YTD in cents: 30,000.00.
    pub ytd_cents: i64,
    /// D_NEXT_O_ID: 3,001.
    pub next_order: u32,
}

/// Generates the rows of DISTRICT of one warehouse.
#[derive(Clone, Debug)]
pub struct DistrictRows {
    source: TextSource,
    warehouse: u32,
    district: u32,
    name: TextBuffer<10>,
    address: AddressBuffer,
}

impl DistrictRows {
    /// The rows of `warehouse`, counted from 1.
    pub fn new(parameters: &Parameters, warehouse: u32) -> DistrictRows {
        DistrictRows {
            source: TextSource::new(parameters, "tpcc/district", warehouse),
            warehouse,
            district: 0,
            name: TextBuffer::new(),
            address: AddressBuffer::new(),
        }
    }

    /// The next row, by district.
    pub fn next_row(&mut self) -> Option<DistrictRow<'_>> {
        if self.district == DISTRICTS_PER_WAREHOUSE {
            return None;
        }
        self.district += 1;
        self.source.string(&mut self.name, 6, 10);
        self.address.generate(&mut self.source);
        Some(DistrictRow {
            warehouse: self.warehouse,
            district: self.district,
            name: self.name.text(),
            address: self.address.row(),
            tax_ten_thousandths: self.source.number(0, 2_000),
            ytd_cents: 3_000_000,
            next_order: INITIAL_NEXT_ORDER,
        })
    }
}
