//! Generated rows never change: hashes per table and seed, and every warehouse generated twice.
//!
//! When a hash changes on purpose, raise `population::GENERATION`: results on other rows must not
//! be compared with results on these.

use sha2::{Digest, Sha256};
use underlay_core::RootSeed;
use underlay_workload::tpcc::population::{
    AddressRow, CustomerRows, DistrictRows, HistoryRows, ItemRows, NewOrderRows, OrderLineRows,
    OrderRows, StockRows, Table, Text, UnixSeconds, WarehouseRows,
};
use underlay_workload::tpcc::{Entropy, Parameters};

/// A hash over columns, independent of how the generator's types are printed.
struct Columns(Sha256);

impl Columns {
    fn number(&mut self, number: impl Into<i64>) -> &mut Columns {
        self.0.update(number.into().to_le_bytes());
        self
    }

    fn text(&mut self, text: Text<'_>) -> &mut Columns {
        self.number(text.as_bytes().len() as i64);
        self.0.update(text.as_bytes());
        self
    }

    fn date(&mut self, date: Option<UnixSeconds>) -> &mut Columns {
        self.number(date.map_or(-1, |date| date.0))
    }

    fn address(&mut self, address: AddressRow<'_>) -> &mut Columns {
        self.text(address.street_1).text(address.street_2).text(address.city);
        self.text(address.state).text(address.zip)
    }
}

fn parameters(seed: u64, percent: u8) -> Parameters {
    Parameters::new(2, RootSeed(seed), Entropy::new(percent).unwrap()).unwrap()
}

/// The first eight bytes of the hash of a table, in hexadecimal.
fn hash(parameters: &Parameters, warehouse: u32, table: Table) -> String {
    let mut columns = Columns(Sha256::new());
    match table {
        Table::Item => items(parameters, &mut columns),
        Table::Warehouse => warehouses(parameters, warehouse, &mut columns),
        Table::District => districts(parameters, warehouse, &mut columns),
        Table::Customer => customers(parameters, warehouse, &mut columns),
        Table::History => history(parameters, warehouse, &mut columns),
        Table::Stock => stock(parameters, warehouse, &mut columns),
        Table::Order => orders(parameters, warehouse, &mut columns),
        Table::NewOrder => new_orders(warehouse, &mut columns),
        Table::OrderLine => order_lines(parameters, warehouse, &mut columns),
    }
    columns.0.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hashes(parameters: &Parameters, warehouse: u32) -> Vec<(&'static str, String)> {
    Table::ALL.map(|table| (table.as_str(), hash(parameters, warehouse, table))).to_vec()
}

fn items(parameters: &Parameters, columns: &mut Columns) {
    let mut rows = ItemRows::new(parameters);
    while let Some(row) = rows.next_row() {
        columns.number(row.item).number(row.image).text(row.name);
        columns.number(row.price_cents).text(row.data);
    }
}

fn warehouses(parameters: &Parameters, warehouse: u32, columns: &mut Columns) {
    let mut rows = WarehouseRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        columns.number(row.warehouse).text(row.name).address(row.address);
        columns.number(row.tax_ten_thousandths).number(row.ytd_cents);
    }
}

fn districts(parameters: &Parameters, warehouse: u32, columns: &mut Columns) {
    let mut rows = DistrictRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        columns.number(row.warehouse).number(row.district).text(row.name).address(row.address);
        columns.number(row.tax_ten_thousandths).number(row.ytd_cents).number(row.next_order);
    }
}

fn customers(parameters: &Parameters, warehouse: u32, columns: &mut Columns) {
    let mut rows = CustomerRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        columns.number(row.warehouse).number(row.district).number(row.customer);
        columns.text(row.first).text(row.last).address(row.address).text(row.phone);
        columns.date(Some(row.since)).number(row.credit as i64).number(row.credit_limit_cents);
        columns.number(row.discount_ten_thousandths).number(row.balance_cents);
        columns.number(row.ytd_payment_cents).number(row.payment_count);
        columns.number(row.delivery_count).text(row.data);
    }
}

fn history(parameters: &Parameters, warehouse: u32, columns: &mut Columns) {
    let mut rows = HistoryRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        columns.number(row.customer).number(row.district).number(row.warehouse);
        columns.date(Some(row.date)).number(row.amount_cents).text(row.data);
    }
}

fn stock(parameters: &Parameters, warehouse: u32, columns: &mut Columns) {
    let mut rows = StockRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        columns.number(row.warehouse).number(row.item).number(row.quantity);
        row.districts.iter().for_each(|text| {
            columns.text(*text);
        });
        columns.number(row.ytd).number(row.order_count).number(row.remote_count).text(row.data);
    }
}

fn orders(parameters: &Parameters, warehouse: u32, columns: &mut Columns) {
    let mut rows = OrderRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        columns.number(row.warehouse).number(row.district).number(row.order).number(row.customer);
        columns.date(Some(row.entry_date)).number(row.carrier.map_or(-1, i64::from));
        columns.number(row.line_count).number(row.all_local);
    }
}

fn new_orders(warehouse: u32, columns: &mut Columns) {
    let mut rows = NewOrderRows::new(warehouse);
    while let Some(row) = rows.next_row() {
        columns.number(row.warehouse).number(row.district).number(row.order);
    }
}

fn order_lines(parameters: &Parameters, warehouse: u32, columns: &mut Columns) {
    let mut rows = OrderLineRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        columns.number(row.warehouse).number(row.district).number(row.order).number(row.number);
        columns.number(row.item).date(row.delivery_date).number(row.quantity);
        columns.number(row.amount_cents).text(row.district_info);
    }
}

#[track_caller]
fn check(parameters: &Parameters, warehouse: u32, expected: [(&'static str, &str); 9]) {
    let expected: Vec<_> = expected.map(|(table, hash)| (table, hash.to_owned())).to_vec();
    assert_eq!(hashes(parameters, warehouse), expected);
}

#[test]
fn rows_of_seed_42() {
    check(
        &parameters(42, 100),
        1,
        [
            ("item", "0ce9469f97321ca6"),
            ("warehouse", "85dc5840c67002c0"),
            ("district", "d8e167b7d43b45ba"),
            ("customer", "97545ba6b88d3327"),
            ("history", "e1de60866f11067a"),
            ("stock", "38f7b59c0c3a9c4c"),
            ("order", "86a5348e77842f4d"),
            ("new_order", "f4f1245086fbb729"),
            ("order_line", "46b45cba301ce8a9"),
        ],
    );
}

#[test]
fn rows_of_another_seed_warehouse_and_entropy() {
    check(
        &parameters(7, 50),
        2,
        [
            ("item", "850724918321e62e"),
            ("warehouse", "3aa33736778b986a"),
            ("district", "a4249ed3d9697396"),
            ("customer", "17a9e036598f42bf"),
            ("history", "27a539fdcf4a14ba"),
            ("stock", "2678d205aab5ee82"),
            ("order", "03a8c4fceee78c98"),
            ("new_order", "402ee975c4a84c4b"),
            ("order_line", "bc6da8f3b9c45c51"),
        ],
    );
}

#[test]
fn a_warehouse_is_the_same_each_time_and_unlike_the_others() {
    let parameters = parameters(1, 100);
    let (first, second) = (hashes(&parameters, 1), hashes(&parameters, 2));
    assert_eq!(hashes(&parameters, 1), first);
    for ((table, one), (_, other)) in first.iter().zip(&second) {
        assert_eq!(one == other, *table == "item", "{table}");
    }
}

#[test]
fn the_number_of_warehouses_changes_no_warehouse() {
    let small = parameters(1, 100);
    let large = Parameters { warehouses: 1_000, ..small };
    for table in [Table::Customer, Table::Order, Table::District] {
        assert_eq!(hash(&small, 2, table), hash(&large, 2, table));
    }
}
