//! The tables: names, how many rows, how many bytes.

use underlay_core::Bytes;

use super::order::{LineCounts, OrderRows};
use crate::tpcc::Parameters;
use crate::tpcc::cardinality::{
    CUSTOMERS_PER_DISTRICT, DISTRICTS_PER_WAREHOUSE, INITIAL_NEW_ORDERS_PER_DISTRICT,
    INITIAL_ORDERS_PER_DISTRICT, ITEMS, LINES_PER_ORDER_MAX, LINES_PER_ORDER_MIN,
    STOCK_PER_WAREHOUSE,
};

/// The nine tables, in an order that satisfies their foreign keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Items, shared by all warehouses.
    Item,
    /// Warehouses.
    Warehouse,
    /// Districts.
    District,
    /// Customers.
    Customer,
    /// Payments.
    History,
    /// Stock.
    Stock,
    /// Orders.
    Order,
    /// Orders to be delivered.
    NewOrder,
    /// Order lines.
    OrderLine,
}

impl Table {
    /// All tables, in an order that satisfies their foreign keys.
    pub const ALL: [Table; 9] = [
        Table::Item,
        Table::Warehouse,
        Table::District,
        Table::Customer,
        Table::History,
        Table::Stock,
        Table::Order,
        Table::NewOrder,
        Table::OrderLine,
    ];

    /// The name in progress and reports. Engines choose the names of their tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Table::Item => "item",
            Table::Warehouse => "warehouse",
            Table::District => "district",
            Table::Customer => "customer",
            Table::History => "history",
            Table::Stock => "stock",
            Table::Order => "order",
            Table::NewOrder => "new_order",
            Table::OrderLine => "order_line",
        }
    }

    /// Rows after the load of `warehouses`; of ORDER_LINE the expected number, which the real one
    /// ([`order_line_count`]) meets within a percent.
    pub const fn rows(self, warehouses: u32) -> u64 {
        let districts = warehouses as u64 * DISTRICTS_PER_WAREHOUSE as u64;
        match self {
            Table::Item => ITEMS as u64,
            Table::Warehouse => warehouses as u64,
            Table::District => districts,
            Table::Customer | Table::History => districts * CUSTOMERS_PER_DISTRICT as u64,
            Table::Stock => warehouses as u64 * STOCK_PER_WAREHOUSE as u64,
            Table::Order => districts * INITIAL_ORDERS_PER_DISTRICT as u64,
            Table::NewOrder => districts * INITIAL_NEW_ORDERS_PER_DISTRICT as u64,
            Table::OrderLine => {
                let lines = (LINES_PER_ORDER_MIN + LINES_PER_ORDER_MAX) as u64;
                districts * INITIAL_ORDERS_PER_DISTRICT as u64 * lines / 2
            }
        }
    }

    /// The nominal bytes of a row (clause 4.2.2): columns only, no row headers, no indexes.
    pub const fn nominal_row_bytes(self) -> u64 {
        match self {
            Table::Item => 82,
            Table::Warehouse => 89,
            Table::District => 95,
            Table::Customer => 655,
            Table::History => 46,
            Table::Stock => 306,
            Table::Order => 24,
            Table::NewOrder => 8,
            Table::OrderLine => 54,
        }
    }
}

/// The nominal size of a database: about 68.6 MB per warehouse and 8.2 MB of items. An engine stores
/// more: row headers, page headers, indexes.
pub fn nominal_size(warehouses: u32) -> Bytes {
    Bytes(Table::ALL.iter().map(|table| table.rows(warehouses) * table.nominal_row_bytes()).sum())
}

/// The exact number of rows of ORDER_LINE of one warehouse, without generating them.
pub fn order_line_count(parameters: &Parameters, warehouse: u32) -> u64 {
    let mut counts = LineCounts::new(parameters, warehouse);
    (0..OrderRows::COUNT).map(|_| u64::from(counts.next())).sum()
}

#[cfg(test)]
mod tests {
    use super::{Table, nominal_size};

    #[test]
    fn sizes_are_those_of_the_specification() {
        let one = nominal_size(1).0;
        let two = nominal_size(2).0;
        assert_eq!(one - (two - one), 8_200_000, "items");
        assert_eq!((two - one) / 100_000, 686, "68.6 MB per warehouse");
        assert_eq!(
            Table::ALL.map(|table| table.rows(2)),
            [100_000, 2, 20, 60_000, 60_000, 200_000, 60_000, 18_000, 600_000]
        );
    }
}
