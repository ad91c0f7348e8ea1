//! HISTORY: one row per customer.

use super::load_time::{LOADED_AT, UnixSeconds};
use super::text::{Text, TextBuffer, TextSource};
use crate::tpcc::Parameters;
use crate::tpcc::cardinality::{CUSTOMERS_PER_DISTRICT, DISTRICTS_PER_WAREHOUSE};

/// A row of HISTORY: the first payment of a customer, at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRow<'a> {
    /// H_C_ID, 1 to 3,000.
    pub customer: u32,
    /// H_C_D_ID and H_D_ID, 1 to 10.
    pub district: u32,
    /// H_C_W_ID and H_W_ID, from 1.
    pub warehouse: u32,
    /// H_DATE.
    pub date: UnixSeconds,
    /// H_AMOUNT in cents: 10.00.
    pub amount_cents: i64,
    /// H_DATA, 12 to 24 characters.
    pub data: Text<'a>,
}

/// Generates the rows of HISTORY of one warehouse.
#[derive(Clone, Debug)]
pub struct HistoryRows {
    source: TextSource,
    warehouse: u32,
    /// Rows generated so far.
    row: u32,
    data: TextBuffer<24>,
}

impl HistoryRows {
    /// Rows per warehouse.
    pub const COUNT: u32 = DISTRICTS_PER_WAREHOUSE * CUSTOMERS_PER_DISTRICT;

    /// The rows of `warehouse`, counted from 1.
    pub fn new(parameters: &Parameters, warehouse: u32) -> HistoryRows {
        HistoryRows {
            source: TextSource::new(parameters, "tpcc/history", warehouse),
            warehouse,
            row: 0,
            data: TextBuffer::new(),
        }
    }

    /// The next row, by district and customer.
    pub fn next_row(&mut self) -> Option<HistoryRow<'_>> {
        if self.row == Self::COUNT {
            return None;
        }
        let district = self.row / CUSTOMERS_PER_DISTRICT + 1;
        let customer = self.row % CUSTOMERS_PER_DISTRICT + 1;
        self.row += 1;
        self.source.string(&mut self.data, 12, 24);
        Some(HistoryRow {
            customer,
            district,
            warehouse: self.warehouse,
            date: LOADED_AT,
            amount_cents: 1_000,
            data: self.data.text(),
        })
    }
}
