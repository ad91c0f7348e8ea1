//! NEW_ORDER: the 900 undelivered orders of each district.

use crate::tpcc::cardinality::{
    DISTRICTS_PER_WAREHOUSE, FIRST_UNDELIVERED_ORDER, INITIAL_NEW_ORDERS_PER_DISTRICT,
};

/// A row of NEW_ORDER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrderRow {
    /// NO_W_ID, from 1.
    pub warehouse: u32,
    /// NO_D_ID, 1 to 10.
    pub district: u32,
    /// NO_O_ID, 2,101 to 3,000.
    pub order: u32,
}

/// Generates the rows of NEW_ORDER of one warehouse. Nothing in them is random.
#[derive(Clone, Debug)]
pub struct NewOrderRows {
    warehouse: u32,
    /// Rows generated so far.
    row: u32,
}

impl NewOrderRows {
    /// Rows per warehouse.
    pub const COUNT: u32 = DISTRICTS_PER_WAREHOUSE * INITIAL_NEW_ORDERS_PER_DISTRICT;

    /// The rows of `warehouse`, counted from 1.
    pub fn new(warehouse: u32) -> NewOrderRows {
        NewOrderRows { warehouse, row: 0 }
    }

    /// The next row, by district and order.
    pub fn next_row(&mut self) -> Option<NewOrderRow> {
        if self.row == Self::COUNT {
            return None;
        }
        let district = self.row / INITIAL_NEW_ORDERS_PER_DISTRICT + 1;
        let order = self.row % INITIAL_NEW_ORDERS_PER_DISTRICT + FIRST_UNDELIVERED_ORDER;
        self.row += 1;
        Some(NewOrderRow { warehouse: self.warehouse, district, order })
    }
}
