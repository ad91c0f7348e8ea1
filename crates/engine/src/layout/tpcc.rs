//! The tables and indexes of TPC-C on pages.
//!
//! Rows that were loaded lie in the order of their keys, warehouse after warehouse. What users
//! insert goes to the end of a heap, and to the end of its district in an index: districts grow at
//! the same pace, so their further leaves alternate. A row of NEW_ORDER takes the place of one that
//! was delivered. Where new versions of rows go on PostgreSQL is in [`super::row_versions`]; on
//! InnoDB they stay on the row's page.

use super::Relation;
use super::row_versions::RowVersions;
use crate::page::PageId;
use underlay_workload::tpcc::cardinality::{
    CUSTOMERS_PER_DISTRICT, DISTRICTS_PER_WAREHOUSE, FIRST_UNDELIVERED_ORDER,
    INITIAL_NEW_ORDERS_PER_DISTRICT, INITIAL_ORDERS_PER_DISTRICT, ITEMS, STOCK_PER_WAREHOUSE,
};

/// Lines per order on average (5 to 15).
pub const LINES_PER_ORDER: u32 = 10;

/// Rows on a page of each relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowsPerPage {
    warehouse: u32,
    district: u32,
    customer: u32,
    history: u32,
    orders: u32,
    new_order: u32,
    order_line: u32,
    stock: u32,
    item: u32,
    stock_key: u32,
    three_numbers_key: u32,
    order_line_key: u32,
    customer_by_name: u32,
    orders_by_customer: u32,
}

/// 8 KiB pages with 8,168 usable bytes. A row has a header of 24 bytes and a pointer of 4; an index
/// entry 8 and 4, on pages filled to 90 %. Warehouses and districts are loaded with a fill factor
/// of 20 %.
const POSTGRESQL: RowsPerPage = RowsPerPage {
    warehouse: 15,
    district: 14,
    customer: 13,
    history: 97,
    orders: 136,
    new_order: 185,
    order_line: 88,
    stock: 23,
    item: 81,
    stock_key: 367,
    three_numbers_key: 262,
    order_line_key: 262,
    customer_by_name: 141,
    orders_by_customer: 262,
};

/// 16 KiB pages filled to 15/16, rows with a header of 5 bytes and 13 of versions; clustered by
/// primary key, so that the keys have no relations of their own.
const INNODB: RowsPerPage = RowsPerPage {
    warehouse: 130,
    district: 126,
    customer: 26,
    history: 190,
    orders: 300,
    new_order: 460,
    order_line: 200,
    stock: 46,
    item: 150,
    stock_key: 46,
    three_numbers_key: 300,
    order_line_key: 200,
    customer_by_name: 330,
    orders_by_customer: 580,
};

/// Undo pages in use at once: 16 of each of 128 rollback segments.
const UNDO_BLOCKS: u32 = 128 * 16;

/// The relations, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Table {
    /// The table `warehouse`.
    Warehouse,
    /// The table `district`.
    District,
    /// The table `customer`.
    Customer,
    /// The table `history`.
    History,
    /// The table `orders`.
    Orders,
    /// The table `new_order`.
    NewOrder,
    /// The table `order_line`.
    OrderLine,
    /// The table `stock`.
    Stock,
    /// The table `item`.
    Item,
    /// The index of customers by last name.
    CustomerByName,
    /// The index of orders by customer.
    OrdersByCustomer,
    /// The primary key of `stock`, and so on: relations of their own where tables are heaps.
    StockKey,
    /// The primary key of `customer`.
    CustomerKey,
    /// The primary key of `orders`.
    OrdersKey,
    /// The primary key of `new_order`.
    NewOrderKey,
    /// The primary key of `order_line`.
    OrderLineKey,
    /// InnoDB's undo log.
    Undo,
}

/// Pages of TPC-C's rows, for a number of warehouses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpccPages {
    warehouses: u32,
    per: RowsPerPage,
    is_clustered: bool,
}

impl TpccPages {
    /// On PostgreSQL.
    pub fn postgresql(warehouses: u32) -> TpccPages {
        TpccPages { warehouses, per: POSTGRESQL, is_clustered: false }
    }

    /// On InnoDB.
    pub fn innodb(warehouses: u32) -> TpccPages {
        TpccPages { warehouses, per: INNODB, is_clustered: true }
    }

    /// Whether rows lie in the leaves of their primary keys.
    pub fn is_clustered(&self) -> bool {
        self.is_clustered
    }

    /// All districts of all warehouses.
    pub fn districts(&self) -> u32 {
        self.warehouses * DISTRICTS_PER_WAREHOUSE
    }

    /// The number of a district, from 0; warehouses and their districts count from 1.
    pub fn district_number(warehouse: u32, district: u32) -> u32 {
        (warehouse - 1) * DISTRICTS_PER_WAREHOUSE + district - 1
    }

    /// The relations with their initial sizes.
    pub fn relations(&self) -> Vec<Relation> {
        let per = &self.per;
        let districts = u64::from(self.districts());
        let warehouses = u64::from(self.warehouses);
        let customers = districts * u64::from(CUSTOMERS_PER_DISTRICT);
        let orders = districts * u64::from(INITIAL_ORDERS_PER_DISTRICT);
        let new_orders = districts * u64::from(INITIAL_NEW_ORDERS_PER_DISTRICT);
        let stock = warehouses * u64::from(STOCK_PER_WAREHOUSE);
        let relation = |name, (rows, blocks): (u64, u64), (image_bytes, is_heap), grows| {
            // Parameters::WAREHOUSES_MAX keeps all of them below 2^32.
            Relation { name, blocks: blocks as u32, rows, image_bytes, is_heap, grows }
        };
        let packed = |rows: u64, per: u32| rows.div_ceil(u64::from(per));
        let table = |rows: u64, per: u32| (rows, packed(rows, per));
        // Indexes that grow have leaves of their own per district.
        let by_district = |rows: u32, per: u32| districts * u64::from(rows.div_ceil(per));
        let (heap, leaf) = ((7_900, true), (7_400, false));
        let (clustered, heaps) = if self.is_clustered { (1, 0) } else { (0, 1) };
        let ordered = |rows: u64, per: u32, leaves: u64| {
            (rows, clustered * leaves + heaps * packed(rows, per))
        };
        let orders_leaves = by_district(INITIAL_ORDERS_PER_DISTRICT, per.three_numbers_key);
        let lines = INITIAL_ORDERS_PER_DISTRICT * LINES_PER_ORDER;
        let line_leaves = by_district(lines, per.order_line_key);
        let lines = districts * u64::from(lines);
        let new_order_leaves = by_district(INITIAL_NEW_ORDERS_PER_DISTRICT, per.new_order);
        let by_name = by_district(CUSTOMERS_PER_DISTRICT, per.customer_by_name);
        let by_customer = by_district(INITIAL_ORDERS_PER_DISTRICT, per.orders_by_customer);
        let new_order_keys = by_district(INITIAL_NEW_ORDERS_PER_DISTRICT, per.three_numbers_key);
        let small = (4_000, true);
        let is_heap = !self.is_clustered;
        let index = |name, blocks: u64, grows| relation(name, (0, blocks), leaf, grows);
        vec![
            relation("warehouse", table(warehouses, per.warehouse), small, false),
            relation("district", table(districts, per.district), small, false),
            relation("customer", table(customers, per.customer), heap, is_heap),
            relation("history", table(customers, per.history), heap, true),
            relation("orders", ordered(orders, per.orders, orders_leaves), heap, true),
            relation(
                "new_order",
                ordered(new_orders, per.new_order, new_order_leaves),
                heap,
                false,
            ),
            relation("order_line", ordered(lines, per.order_line, line_leaves), heap, true),
            relation("stock", table(stock, per.stock), heap, is_heap),
            relation("item", table(u64::from(ITEMS), per.item), heap, false),
            index("customer_by_name", by_name, false),
            index("orders_by_customer", by_customer, false),
            index("stock_pkey", heaps * packed(stock, per.stock_key), false),
            index("customer_pkey", heaps * packed(customers, per.three_numbers_key), false),
            index("orders_pkey", heaps * orders_leaves, true),
            index("new_order_pkey", heaps * new_order_keys, false),
            index("order_line_pkey", heaps * line_leaves, true),
            Relation::undo((clustered as u32) * UNDO_BLOCKS),
        ]
    }

    fn page(table: Table, row: u64, per: u32) -> PageId {
        PageId::new(table as u16, (row / u64::from(per)) as u32)
    }

    /// The leaf of a row's key and the page of the row, which are the same where rows are
    /// clustered.
    fn row(&self, key: PageId, page: PageId) -> [PageId; 2] {
        if self.is_clustered { [page, page] } else { [key, page] }
    }

    /// The leaf of row `row` of a district, of which `initial` were loaded.
    fn district_leaf(
        &self,
        table: Table,
        district: u32,
        row: u32,
        initial: u32,
        per: u32,
    ) -> PageId {
        let leaves = initial.div_ceil(per);
        let leaf = row / per;
        if leaf < leaves {
            return PageId::new(table as u16, district * leaves + leaf);
        }
        let districts = self.districts();
        PageId::new(table as u16, districts * leaves + (leaf - leaves) * districts + district)
    }

    /// The page of a warehouse.
    pub fn warehouse(&self, warehouse: u32) -> PageId {
        Self::page(Table::Warehouse, u64::from(warehouse - 1), self.per.warehouse)
    }

    /// The page of a district.
    pub fn district(&self, district: u32) -> PageId {
        Self::page(Table::District, u64::from(district), self.per.district)
    }

    /// The page of an item.
    pub fn item(&self, item: u32) -> PageId {
        Self::page(Table::Item, u64::from(item - 1), self.per.item)
    }

    /// The number of a row of STOCK in the order of loading.
    pub fn stock_row(warehouse: u32, item: u32) -> u64 {
        u64::from(warehouse - 1) * u64::from(STOCK_PER_WAREHOUSE) + u64::from(item - 1)
    }

    /// The number of a customer, 1 to 3,000 of its district, in the order of loading.
    pub fn customer_row(district: u32, customer: u32) -> u64 {
        u64::from(district) * u64::from(CUSTOMERS_PER_DISTRICT) + u64::from(customer - 1)
    }

    /// Where rows of STOCK are, of a heap.
    pub(crate) fn stock_versions(&self) -> RowVersions {
        let rows = u64::from(self.warehouses) * u64::from(STOCK_PER_WAREHOUSE);
        RowVersions::new(Table::Stock as u16, rows, self.per.stock)
    }

    /// Where customers are, of a heap.
    pub(crate) fn customer_versions(&self) -> RowVersions {
        let rows = u64::from(self.districts()) * u64::from(CUSTOMERS_PER_DISTRICT);
        RowVersions::new(Table::Customer as u16, rows, self.per.customer)
    }

    /// The leaf of the key of a row of STOCK and the page that it was loaded to.
    pub fn stock(&self, warehouse: u32, item: u32) -> [PageId; 2] {
        let row = Self::stock_row(warehouse, item);
        let key = Self::page(Table::StockKey, row, self.per.stock_key);
        self.row(key, Self::page(Table::Stock, row, self.per.stock))
    }

    /// The leaf of the key of a customer, 1 to 3,000, and the page that it was loaded to.
    pub fn customer(&self, district: u32, customer: u32) -> [PageId; 2] {
        let row = Self::customer_row(district, customer);
        let key = Self::page(Table::CustomerKey, row, self.per.three_numbers_key);
        self.row(key, Self::page(Table::Customer, row, self.per.customer))
    }

    /// The leaf of the names at `place` of 1,000 in their order.
    pub fn customers_of_name(&self, district: u32, place: u32) -> PageId {
        let leaves = CUSTOMERS_PER_DISTRICT.div_ceil(self.per.customer_by_name);
        PageId::new(Table::CustomerByName as u16, district * leaves + place * leaves / 1_000)
    }

    /// The leaf of a customer's orders.
    pub fn orders_of_customer(&self, district: u32, customer: u32) -> PageId {
        let leaves = INITIAL_ORDERS_PER_DISTRICT.div_ceil(self.per.orders_by_customer);
        let leaf = (customer - 1) * leaves / CUSTOMERS_PER_DISTRICT;
        PageId::new(Table::OrdersByCustomer as u16, district * leaves + leaf)
    }

    /// The page of the `n`-th row of HISTORY, those that were loaded included.
    pub fn history(&self, row: u64) -> PageId {
        let loaded = u64::from(self.districts()) * u64::from(CUSTOMERS_PER_DISTRICT);
        Self::page(Table::History, loaded + row, self.per.history)
    }

    /// The page of the `n`-th row of ORDERS in a heap: `n` from 0, those that were loaded included.
    pub fn orders(&self, row: u64) -> PageId {
        Self::page(Table::Orders, row, self.per.orders)
    }

    /// The page of the `n`-th row of ORDER_LINE in a heap.
    pub fn order_line(&self, row: u64) -> PageId {
        Self::page(Table::OrderLine, row, self.per.order_line)
    }

    /// The page of the undo records of the `n`-th transaction.
    pub fn undo(&self, number: u64) -> PageId {
        // A segment's page is used for several transactions before the next one.
        let segment = number % 128;
        let page = number / 128 / 16 % 16;
        PageId::new(Table::Undo as u16, (segment * 16 + page) as u32)
    }

    /// The row in the heap of an order that was loaded, counted from 1 in its district.
    pub fn loaded_order(district: u32, order: u32) -> u64 {
        u64::from(district) * u64::from(INITIAL_ORDERS_PER_DISTRICT) + u64::from(order - 1)
    }

    /// The leaf of the key of an order.
    pub fn orders_key(&self, district: u32, order: u32) -> PageId {
        let per = self.per.three_numbers_key;
        let initial = INITIAL_ORDERS_PER_DISTRICT;
        let table = if self.is_clustered { Table::Orders } else { Table::OrdersKey };
        self.district_leaf(table, district, order - 1, initial, per)
    }

    /// The leaf of the keys of an order's lines.
    pub fn order_line_key(&self, district: u32, order: u32) -> PageId {
        let per = self.per.order_line_key;
        let initial = INITIAL_ORDERS_PER_DISTRICT * LINES_PER_ORDER;
        let row = (order - 1).saturating_mul(LINES_PER_ORDER);
        let table = if self.is_clustered { Table::OrderLine } else { Table::OrderLineKey };
        self.district_leaf(table, district, row, initial, per)
    }

    /// The leaf of the key and the page of an order that is not delivered.
    pub fn new_order(&self, district: u32, order: u32) -> [PageId; 2] {
        let initial = INITIAL_NEW_ORDERS_PER_DISTRICT;
        let place = order.saturating_sub(FIRST_UNDELIVERED_ORDER) % initial;
        if self.is_clustered {
            let leaf =
                self.district_leaf(Table::NewOrder, district, place, initial, self.per.new_order);
            return [leaf, leaf];
        }
        let per = self.per.three_numbers_key;
        let key = self.district_leaf(Table::NewOrderKey, district, place, initial, per);
        let row = u64::from(district) * u64::from(initial) + u64::from(place);
        [key, Self::page(Table::NewOrder, row, self.per.new_order)]
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, TpccPages};
    use std::collections::BTreeSet;
    use underlay_workload::tpcc::cardinality::{
        CUSTOMERS_PER_DISTRICT, INITIAL_ORDERS_PER_DISTRICT,
    };

    #[test]
    fn a_warehouse_takes_what_one_takes_on_a_server() {
        let bytes = |pages: TpccPages, page: u64| {
            let relations = pages.relations();
            relations.iter().map(|relation| u64::from(relation.blocks) * page).sum::<u64>()
        };
        let postgresql = |warehouses| bytes(TpccPages::postgresql(warehouses), 8192);
        let per_warehouse = (postgresql(101) - postgresql(1)) / 100;
        // Measured on loaded databases: 100 to 110 MB.
        assert!((98_000_000..=112_000_000).contains(&per_warehouse), "{per_warehouse}");
        let innodb = |warehouses| bytes(TpccPages::innodb(warehouses), 16_384);
        let per_warehouse = (innodb(101) - innodb(1)) / 100;
        assert!((78_000_000..=98_000_000).contains(&per_warehouse), "{per_warehouse}");
    }

    #[test]
    fn loaded_rows_are_within_their_relations_and_later_ones_behind_them() {
        check_rows(TpccPages::postgresql(3));
        check_rows(TpccPages::innodb(3));
    }

    fn check_rows(pages: TpccPages) {
        let blocks: Vec<u32> = pages.relations().iter().map(|relation| relation.blocks).collect();
        let check = |page: crate::page::PageId, is_loaded: bool| {
            let inside = page.block() < blocks[usize::from(page.relation())];
            assert_eq!(inside, is_loaded, "{page:?}");
        };
        let last = pages.districts() - 1;
        for district in [0, last] {
            for customer in [1, CUSTOMERS_PER_DISTRICT] {
                pages.customer(district, customer).into_iter().for_each(|page| check(page, true));
                check(pages.orders_of_customer(district, customer), true);
            }
            for order in [1, 2_101, INITIAL_ORDERS_PER_DISTRICT] {
                check(pages.orders_key(district, order), true);
                check(pages.order_line_key(district, order), true);
                pages.new_order(district, order).into_iter().for_each(|page| check(page, true));
                if !pages.is_clustered() {
                    check(pages.orders(TpccPages::loaded_order(district, order)), true);
                }
            }
            check(pages.orders_key(district, 2 * INITIAL_ORDERS_PER_DISTRICT), false);
            check(pages.customers_of_name(district, 999), true);
            check(pages.district(district), true);
        }
        pages.stock(3, 100_000).into_iter().for_each(|page| check(page, true));
        check(pages.item(100_000), true);
        check(pages.warehouse(3), true);
    }

    #[test]
    fn leaves_of_districts_are_their_own() {
        let pages = TpccPages::postgresql(2);
        let leaves = |district: u32| -> BTreeSet<u32> {
            (1..9_000).map(|order| pages.orders_key(district, order).block()).collect()
        };
        assert!(leaves(0).is_disjoint(&leaves(1)) && leaves(3).is_disjoint(&leaves(19)));
        assert_eq!(pages.orders_key(0, 1).relation(), Table::OrdersKey as u16);
    }
}
