//! ORDER_LINE: 5 to 15 rows per order.

use super::load_time::{LOADED_AT, UnixSeconds};
use super::order::{LineCounts, OrderRows, is_delivered};
use super::text::{Text, TextBuffer, TextSource};
use crate::tpcc::Parameters;
use crate::tpcc::cardinality::{INITIAL_ORDERS_PER_DISTRICT, ITEMS};

/// A row of ORDER_LINE. OL_SUPPLY_W_ID is the warehouse itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLineRow<'a> {
    /// OL_W_ID and OL_SUPPLY_W_ID, from 1.
    pub warehouse: u32,
    /// OL_D_ID, 1 to 10.
    pub district: u32,
    /// OL_O_ID, 1 to 3,000.
    pub order: u32,
    /// OL_NUMBER, from 1.
    pub number: u32,
    /// OL_I_ID, 1 to 100,000, uniform.
    pub item: u32,
    /// OL_DELIVERY_D: the entry date of the order when it is delivered.
    pub delivery_date: Option<UnixSeconds>,
    /// OL_QUANTITY: 5.
    pub quantity: u32,
    /// OL_AMOUNT in cents: 0 when the order is delivered, otherwise 1 to 999,999.
    pub amount_cents: i64,
    /// OL_DIST_INFO, 24 characters.
    pub district_info: Text<'a>,
}

/// Generates the rows of ORDER_LINE of one warehouse.
#[derive(Clone, Debug)]
pub struct OrderLineRows {
    source: TextSource,
    line_counts: LineCounts,
    warehouse: u32,
    /// Orders begun so far.
    orders: u32,
    /// Lines of the current order, and how many of them were generated.
    line_count: u32,
    number: u32,
    district_info: TextBuffer<24>,
}

impl OrderLineRows {
    /// The rows of `warehouse`, counted from 1.
    pub fn new(parameters: &Parameters, warehouse: u32) -> OrderLineRows {
        OrderLineRows {
            source: TextSource::new(parameters, "tpcc/order_line", warehouse),
            line_counts: LineCounts::new(parameters, warehouse),
            warehouse,
            orders: 0,
            line_count: 0,
            number: 0,
            district_info: TextBuffer::new(),
        }
    }

    /// The next row, by district, order and number.
    pub fn next_row(&mut self) -> Option<OrderLineRow<'_>> {
        if self.number == self.line_count {
            if self.orders == OrderRows::COUNT {
                return None;
            }
            self.orders += 1;
            self.line_count = self.line_counts.next();
            self.number = 0;
        }
        self.number += 1;
        Some(self.line())
    }

    fn line(&mut self) -> OrderLineRow<'_> {
        let order = (self.orders - 1) % INITIAL_ORDERS_PER_DISTRICT + 1;
        let delivered = is_delivered(order);
        let item = self.source.number(1, ITEMS);
        let amount = self.source.number(1, 999_999);
        self.source.fill(self.district_info.resize(24));
        OrderLineRow {
            warehouse: self.warehouse,
            district: (self.orders - 1) / INITIAL_ORDERS_PER_DISTRICT + 1,
            order,
            number: self.number,
            item,
            delivery_date: delivered.then_some(LOADED_AT),
            quantity: 5,
            amount_cents: if delivered { 0 } else { i64::from(amount) },
            district_info: self.district_info.text(),
        }
    }
}
