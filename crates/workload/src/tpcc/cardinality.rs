//! How many rows of what: the fixed numbers of the schema (clause 1.2 and 4.3.3).
//!
//! Only counts are here; the content of rows is in [`population`](super::population).

/// Districts per warehouse; they are numbered from 1.
pub const DISTRICTS_PER_WAREHOUSE: u32 = 10;
/// Customers per district; they are numbered from 1.
pub const CUSTOMERS_PER_DISTRICT: u32 = 3_000;
/// Items, shared by all warehouses; they are numbered from 1.
pub const ITEMS: u32 = 100_000;
/// Stock rows per warehouse, one per item.
pub const STOCK_PER_WAREHOUSE: u32 = ITEMS;
/// Orders per district after the load: one per customer.
pub const INITIAL_ORDERS_PER_DISTRICT: u32 = CUSTOMERS_PER_DISTRICT;
/// The first order number of a district that is not delivered after the load.
pub const FIRST_UNDELIVERED_ORDER: u32 = 2_101;
/// NEW_ORDER rows per district after the load.
pub const INITIAL_NEW_ORDERS_PER_DISTRICT: u32 =
    INITIAL_ORDERS_PER_DISTRICT - FIRST_UNDELIVERED_ORDER + 1;
/// D_NEXT_O_ID after the load.
pub const INITIAL_NEXT_ORDER: u32 = INITIAL_ORDERS_PER_DISTRICT + 1;
/// Fewest lines of an order.
pub const LINES_PER_ORDER_MIN: u32 = 5;
/// Most lines of an order.
pub const LINES_PER_ORDER_MAX: u32 = 15;
/// Distinct customer last names.
pub const LAST_NAMES: u32 = 1_000;
/// Carriers; they are numbered from 1.
pub const CARRIERS: u32 = 10;
/// Terminals per warehouse in the specification (clause 4.2.2): one per district.
pub const TERMINALS_PER_WAREHOUSE: u32 = DISTRICTS_PER_WAREHOUSE;
