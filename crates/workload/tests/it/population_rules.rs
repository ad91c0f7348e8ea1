//! The rules of the population (clause 4.3.3.1) and the twelve consistency conditions (3.3.2) on a
//! generated warehouse, computed here from the rows alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use underlay_core::RootSeed;
use underlay_workload::tpcc::population::{
    AddressRow, Credit, CustomerRows, DistrictRows, HistoryRows, ItemRows, LOADED_AT, NewOrderRow,
    NewOrderRows, OrderLineRows, OrderRow, OrderRows, StockRows, Table, Text, WarehouseRows,
    order_line_count,
};
use underlay_workload::tpcc::{Entropy, Parameters, names};

/// The warehouse under test, of a database of three.
const WAREHOUSE: u32 = 2;

fn parameters() -> Parameters {
    Parameters::new(3, RootSeed(42), Entropy::FULL).unwrap()
}

fn assert_text(text: Text<'_>, lengths: std::ops::RangeInclusive<usize>) {
    let bytes = text.as_bytes();
    assert!(lengths.contains(&bytes.len()), "{text:?}");
    assert!(bytes.iter().all(u8::is_ascii_alphanumeric), "{text:?}");
}

fn assert_address(address: AddressRow<'_>) {
    for text in [address.street_1, address.street_2, address.city] {
        assert_text(text, 10..=20);
    }
    assert_eq!(address.state.as_bytes().len(), 2);
    assert!(address.state.as_bytes().iter().all(u8::is_ascii_uppercase));
    let zip = address.zip.as_str();
    assert!(zip.len() == 9 && zip.ends_with("11111"), "{zip}");
    assert!(zip.bytes().all(|byte| byte.is_ascii_digit()));
}

#[test]
fn warehouses_and_districts() {
    let parameters = parameters();
    let mut rows = WarehouseRows::new(&parameters, WAREHOUSE);
    let row = rows.next_row().unwrap();
    assert_eq!((row.warehouse, row.ytd_cents), (WAREHOUSE, 30_000_000));
    assert_text(row.name, 6..=10);
    assert_address(row.address);
    assert!(row.tax_ten_thousandths <= 2_000);
    assert!(rows.next_row().is_none());

    let mut rows = DistrictRows::new(&parameters, WAREHOUSE);
    let mut count = 0;
    while let Some(row) = rows.next_row() {
        count += 1;
        assert_eq!((row.warehouse, row.district), (WAREHOUSE, count));
        assert_eq!((row.ytd_cents, row.next_order), (3_000_000, 3_001));
        assert_text(row.name, 6..=10);
        assert_address(row.address);
        assert!(row.tax_ten_thousandths <= 2_000);
    }
    assert_eq!(count, 10);
}

#[test]
fn taxes_reach_both_ends_of_their_range() {
    let parameters = Parameters { warehouses: 3_000, ..parameters() };
    let mut taxes = BTreeSet::new();
    for warehouse in 1..=parameters.warehouses {
        let mut rows = DistrictRows::new(&parameters, warehouse);
        while let Some(row) = rows.next_row() {
            taxes.insert(row.tax_ten_thousandths);
        }
    }
    assert_eq!((taxes.first(), taxes.last()), (Some(&0), Some(&2_000)));
    assert!(taxes.len() > 1_990, "{} of 2001 taxes", taxes.len());
}

#[test]
fn customers() {
    let mut rows = CustomerRows::new(&parameters(), WAREHOUSE);
    let (mut count, mut bad) = (0u32, 0u32);
    let mut discounts = (u32::MAX, 0);
    let mut names_of_district = BTreeSet::new();
    while let Some(row) = rows.next_row() {
        assert_eq!((row.district, row.customer), (count / 3_000 + 1, count % 3_000 + 1));
        assert_eq!(row.warehouse, WAREHOUSE);
        count += 1;
        if row.customer <= 1_000 {
            assert_eq!(row.last.as_str(), names::last_name(row.customer - 1));
            names_of_district.insert(row.last.as_str().to_owned());
        } else {
            assert!(names_of_district.contains(row.last.as_str()), "{:?}", row.last);
        }
        assert_text(row.first, 8..=16);
        assert_address(row.address);
        assert!(row.phone.as_str().len() == 16);
        assert!(row.phone.as_bytes().iter().all(u8::is_ascii_digit));
        assert_text(row.data, 300..=500);
        bad += u32::from(row.credit == Credit::Bad);
        discounts.0 = discounts.0.min(row.discount_ten_thousandths);
        discounts.1 = discounts.1.max(row.discount_ten_thousandths);
        assert_eq!((row.since, row.credit_limit_cents), (LOADED_AT, 5_000_000));
        assert_eq!((row.balance_cents, row.ytd_payment_cents), (-1_000, 1_000));
        assert_eq!((row.payment_count, row.delivery_count), (1, 0));
    }
    assert_eq!((count, bad), (30_000, 3_000));
    assert_eq!(names_of_district.len(), 1_000);
    assert!(discounts.0 < 5 && discounts.1 > 4_995 && discounts.1 <= 5_000, "{discounts:?}");
}

#[test]
fn items() {
    let mut rows = ItemRows::new(&parameters());
    let (mut count, mut original) = (0u32, 0u32);
    let mut prices = (i64::MAX, 0);
    while let Some(row) = rows.next_row() {
        count += 1;
        assert_eq!(row.item, count);
        assert!((1..=10_000).contains(&row.image));
        assert_text(row.name, 14..=24);
        assert_text(row.data, 26..=50);
        prices = (prices.0.min(row.price_cents), prices.1.max(row.price_cents));
        original += u32::from(row.data.as_str().contains("ORIGINAL"));
    }
    assert_eq!((count, original), (100_000, 10_000));
    assert!(prices.0 >= 100 && prices.0 < 105 && prices.1 <= 10_000 && prices.1 > 9_995);
}

#[test]
fn stock() {
    let mut rows = StockRows::new(&parameters(), WAREHOUSE);
    let (mut count, mut original) = (0u32, 0u32);
    let mut quantities = BTreeSet::new();
    while let Some(row) = rows.next_row() {
        count += 1;
        assert_eq!((row.warehouse, row.item), (WAREHOUSE, count));
        row.districts.iter().for_each(|text| assert_text(*text, 24..=24));
        assert_text(row.data, 26..=50);
        assert_eq!((row.ytd, row.order_count, row.remote_count), (0, 0, 0));
        quantities.insert(row.quantity);
        original += u32::from(row.data.as_str().contains("ORIGINAL"));
    }
    assert_eq!((count, original), (100_000, 10_000));
    assert_eq!(quantities, (10..=100).collect());
}

#[test]
fn text_of_low_entropy_keeps_every_rule() {
    let parameters = Parameters { entropy: Entropy::new(0).unwrap(), ..parameters() };
    let mut firsts = BTreeSet::new();
    let mut rows = CustomerRows::new(&parameters, WAREHOUSE);
    while let Some(row) = rows.next_row() {
        assert_text(row.data, 300..=500);
        assert!(row.data.as_str().starts_with("underlayunderlay"));
        firsts.insert(row.first.as_str().to_owned());
    }
    assert!(firsts.len() > 29_990, "first names order namesakes at every entropy");
    let mut rows = StockRows::new(&parameters, WAREHOUSE);
    let mut original = 0;
    while let Some(row) = rows.next_row() {
        original += u32::from(row.data.as_str().contains("ORIGINAL"));
    }
    assert_eq!(original, 10_000);
}

/// Order lines summed up per order.
#[derive(Clone, Copy, Default)]
struct Lines {
    count: u32,
    delivered: u32,
    amount_cents: i64,
}

/// All that the conditions look at, by (district, number).
struct Database {
    orders: BTreeMap<(u32, u32), OrderRow>,
    lines: BTreeMap<(u32, u32), Lines>,
    new_orders: Vec<NewOrderRow>,
    /// Payments by customer, and by district.
    paid_cents: HashMap<(u32, u32), i64>,
    paid_to_district_cents: BTreeMap<u32, i64>,
    line_rows: u64,
}

fn database() -> Database {
    let parameters = parameters();
    let mut database = Database {
        orders: orders(&parameters),
        lines: BTreeMap::new(),
        new_orders: new_orders(),
        paid_cents: HashMap::new(),
        paid_to_district_cents: BTreeMap::new(),
        line_rows: 0,
    };
    sum_lines(&parameters, &mut database);
    sum_payments(&parameters, &mut database);
    database
}

fn orders(parameters: &Parameters) -> BTreeMap<(u32, u32), OrderRow> {
    let mut rows = OrderRows::new(parameters, WAREHOUSE);
    std::iter::from_fn(|| rows.next_row()).map(|row| ((row.district, row.order), row)).collect()
}

fn new_orders() -> Vec<NewOrderRow> {
    let mut rows = NewOrderRows::new(WAREHOUSE);
    std::iter::from_fn(|| rows.next_row()).collect()
}

fn sum_lines(parameters: &Parameters, database: &mut Database) {
    let mut rows = OrderLineRows::new(parameters, WAREHOUSE);
    while let Some(row) = rows.next_row() {
        database.line_rows += 1;
        let lines = database.lines.entry((row.district, row.order)).or_default();
        lines.count += 1;
        lines.delivered += u32::from(row.delivery_date.is_some());
        lines.amount_cents += row.amount_cents;
        assert_eq!((row.warehouse, row.number, row.quantity), (WAREHOUSE, lines.count, 5));
        assert!((1..=100_000).contains(&row.item));
        assert_eq!(row.delivery_date.is_some(), row.order < 2_101);
        assert!(row.delivery_date.is_none_or(|date| date == LOADED_AT));
        let amounts = if row.order < 2_101 { 0..=0 } else { 1..=999_999 };
        assert!(amounts.contains(&row.amount_cents));
        assert_text(row.district_info, 24..=24);
    }
}

fn sum_payments(parameters: &Parameters, database: &mut Database) {
    let mut rows = HistoryRows::new(parameters, WAREHOUSE);
    let mut count = 0;
    while let Some(row) = rows.next_row() {
        assert_eq!((row.warehouse, row.district), (WAREHOUSE, count / 3_000 + 1));
        assert_eq!((row.customer, row.amount_cents), (count % 3_000 + 1, 1_000));
        assert_eq!(row.date, LOADED_AT);
        assert_text(row.data, 12..=24);
        count += 1;
        *database.paid_cents.entry((row.district, row.customer)).or_default() += row.amount_cents;
        *database.paid_to_district_cents.entry(row.district).or_default() += row.amount_cents;
    }
    assert_eq!(count, 30_000);
}

#[test]
fn orders_name_each_customer_once_in_random_order() {
    let database = database();
    assert_eq!(database.orders.len(), 30_000);
    let mut fixed_points = 0;
    for district in 1..=10 {
        let orders = database.orders.range((district, 0)..=(district, u32::MAX));
        let customers: Vec<u32> = orders.map(|(_, order)| order.customer).collect();
        let distinct: BTreeSet<u32> = customers.iter().copied().collect();
        assert_eq!(distinct, (1..=3_000).collect());
        fixed_points +=
            (1..).zip(&customers).filter(|(order, customer)| order == *customer).count();
        // Spearman's correlation between order and customer: 1 for no shuffle, about +-0.02 by chance.
        let squares: f64 =
            (1u32..).zip(&customers).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2)).sum();
        let correlation = 1.0 - 6.0 * squares / (3_000.0 * (3_000.0f64.powi(2) - 1.0));
        assert!(correlation.abs() < 0.08, "{correlation}");
    }
    // One is expected per permutation, whatever its length.
    assert!((1..=25).contains(&fixed_points), "{fixed_points}");
    for order in database.orders.values() {
        assert_eq!((order.warehouse, order.all_local), (WAREHOUSE, 1));
        assert_eq!(order.entry_date, LOADED_AT);
        assert!((5..=15).contains(&order.line_count));
        assert!(order.carrier.is_none_or(|carrier| (1..=10).contains(&carrier)));
        assert_eq!(order.carrier.is_some(), order.order < 2_101);
    }
}

#[test]
fn row_counts_are_those_announced() {
    let database = database();
    assert_eq!(database.new_orders.len() as u64, Table::NewOrder.rows(1));
    assert_eq!(database.orders.len() as u64, Table::Order.rows(1));
    assert_eq!(database.line_rows, order_line_count(&parameters(), WAREHOUSE));
    let expected = Table::OrderLine.rows(1) as f64;
    assert!((database.line_rows as f64 / expected - 1.0).abs() < 0.01);
}

#[test]
fn conditions_1_8_and_9_money_received() {
    let database = database();
    let parameters = parameters();
    let mut rows = DistrictRows::new(&parameters, WAREHOUSE);
    let mut sum = 0;
    while let Some(row) = rows.next_row() {
        sum += row.ytd_cents;
        assert_eq!(row.ytd_cents, database.paid_to_district_cents[&row.district]); // 9
    }
    let warehouse = WarehouseRows::new(&parameters, WAREHOUSE).next_row().unwrap().ytd_cents;
    assert_eq!(warehouse, sum); // 1
    assert_eq!(warehouse, database.paid_to_district_cents.values().sum::<i64>()); // 8
}

#[test]
fn conditions_2_3_and_11_order_numbers() {
    let database = database();
    let mut districts = DistrictRows::new(&parameters(), WAREHOUSE);
    while let Some(row) = districts.next_row() {
        let orders = database.orders.range((row.district, 0)..=(row.district, u32::MAX));
        let highest = orders.clone().map(|((_, order), _)| *order).max();
        let of_district = database.new_orders.iter().filter(|new| new.district == row.district);
        let open: BTreeSet<u32> = of_district.map(|new| new.order).collect();
        assert_eq!(highest, Some(row.next_order - 1)); // 2
        assert_eq!(open.last(), highest.as_ref()); // 2
        let (low, high) = (open.first().unwrap(), open.last().unwrap());
        assert_eq!((high - low + 1) as usize, open.len()); // 3
        assert_eq!(orders.count() - open.len(), 2_100); // 11
    }
}

#[test]
fn conditions_4_to_7_lines_and_deliveries() {
    let database = database();
    assert_eq!(database.lines.len(), database.orders.len());
    let open: BTreeSet<(u32, u32)> =
        database.new_orders.iter().map(|new| (new.district, new.order)).collect();
    assert_eq!(open.len(), database.new_orders.len());
    assert!(open.iter().all(|key| database.orders.contains_key(key))); // 5
    for (key, order) in &database.orders {
        let lines = database.lines[key];
        assert_eq!(order.carrier.is_none(), open.contains(key)); // 5
        assert_eq!(order.line_count, lines.count); // 6, and with it 4
        let delivered = if order.carrier.is_some() { lines.count } else { 0 };
        assert_eq!(lines.delivered, delivered); // 7
    }
}

#[test]
fn conditions_10_and_12_balances() {
    let database = database();
    let mut delivered_cents: HashMap<(u32, u32), i64> = HashMap::new();
    for (key, order) in database.orders.iter().filter(|(_, order)| order.carrier.is_some()) {
        *delivered_cents.entry((key.0, order.customer)).or_default() +=
            database.lines[key].amount_cents;
    }
    let mut rows = CustomerRows::new(&parameters(), WAREHOUSE);
    while let Some(row) = rows.next_row() {
        let key = (row.district, row.customer);
        let delivered = delivered_cents.get(&key).copied().unwrap_or(0);
        assert_eq!(row.balance_cents, delivered - database.paid_cents[&key]); // 10
        assert_eq!(row.balance_cents + row.ytd_payment_cents, delivered); // 12
    }
}
