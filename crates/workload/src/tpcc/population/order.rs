//! ORDER: 3,000 rows per district, one per customer.

use rand_pcg::Pcg64;

use super::load_time::{LOADED_AT, UnixSeconds};
use crate::draw::{shuffle, uniform};
use crate::tpcc::Parameters;
use crate::tpcc::cardinality::{
    CARRIERS, CUSTOMERS_PER_DISTRICT, DISTRICTS_PER_WAREHOUSE, FIRST_UNDELIVERED_ORDER,
    INITIAL_ORDERS_PER_DISTRICT, LINES_PER_ORDER_MAX, LINES_PER_ORDER_MIN,
};

/// A row of ORDER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRow {
    /// O_W_ID, from 1.
    pub warehouse: u32,
    /// O_D_ID, 1 to 10.
    pub district: u32,
    /// O_ID, 1 to 3,000.
    pub order: u32,
    /// O_C_ID: the orders of a district name each customer exactly once.
    pub customer: u32,
    /// O_ENTRY_D.
    pub entry_date: UnixSeconds,
    /// O_CARRIER_ID, 1 to 10; none for orders that are not delivered.
    pub carrier: Option<u32>,
    /// O_OL_CNT, 5 to 15.
    pub line_count: u32,
    /// O_ALL_LOCAL: 1.
    pub all_local: u32,
}

/// Generates the rows of ORDER of one warehouse.
#[derive(Clone, Debug)]
pub struct OrderRows {
    carriers: Pcg64,
    permutations: Pcg64,
    line_counts: LineCounts,
    warehouse: u32,
    /// Rows generated so far.
    row: u32,
    /// The customers of the current district, by order.
    customers: Vec<u32>,
}

impl OrderRows {
    /// Rows per warehouse.
    pub const COUNT: u32 = DISTRICTS_PER_WAREHOUSE * INITIAL_ORDERS_PER_DISTRICT;

    /// The rows of `warehouse`, counted from 1.
    pub fn new(parameters: &Parameters, warehouse: u32) -> OrderRows {
        let index = u64::from(warehouse);
        OrderRows {
            carriers: parameters.seed.stream("tpcc/order", index),
            permutations: parameters.seed.stream("tpcc/order/customers", index),
            line_counts: LineCounts::new(parameters, warehouse),
            warehouse,
            row: 0,
            customers: (1..=CUSTOMERS_PER_DISTRICT).collect(),
        }
    }

    /// The next row, by district and order.
    pub fn next_row(&mut self) -> Option<OrderRow> {
        if self.row == Self::COUNT {
            return None;
        }
        let district = self.row / INITIAL_ORDERS_PER_DISTRICT + 1;
        let place = self.row % INITIAL_ORDERS_PER_DISTRICT;
        self.row += 1;
        if place == 0 {
            shuffle(&mut self.permutations, &mut self.customers);
        }
        let order = place + 1;
        let carrier = uniform(&mut self.carriers, 1, CARRIERS);
        Some(OrderRow {
            warehouse: self.warehouse,
            district,
            order,
            customer: self.customers[place as usize],
            entry_date: LOADED_AT,
            carrier: is_delivered(order).then_some(carrier),
            line_count: self.line_counts.next(),
            all_local: 1,
        })
    }
}

/// Whether an order of the population is delivered.
pub(super) const fn is_delivered(order: u32) -> bool {
    order < FIRST_UNDELIVERED_ORDER
}

/// The number of lines of each order of a warehouse, by district and order: a stream of its own,
/// since ORDER and ORDER_LINE are generated apart and must agree.
#[derive(Clone, Debug)]
pub(super) struct LineCounts(Pcg64);

impl LineCounts {
    pub(super) fn new(parameters: &Parameters, warehouse: u32) -> LineCounts {
        LineCounts(parameters.seed.stream("tpcc/order/lines", u64::from(warehouse)))
    }

    pub(super) fn next(&mut self) -> u32 {
        uniform(&mut self.0, LINES_PER_ORDER_MIN, LINES_PER_ORDER_MAX)
    }
}
