//! Generated rows: how many, within which bounds, how distributed, and that they never change.
//!
//! When a hash changes on purpose, raise `GENERATION`: results on other rows must not be compared with results on
//! these.

use sha2::{Digest, Sha256};
use underlay_core::RootSeed;

use super::{Catalogue, Date, Fields, Table, Units};
use crate::dvdstore::{Parameters, tax_cents};

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Integer(i64),
    Text(String),
    Cents(i64),
    Date(Date),
}

impl Value {
    fn number(&self) -> i64 {
        match self {
            Value::Integer(number) | Value::Cents(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }

    fn string(&self) -> &str {
        match self {
            Value::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }
}

#[derive(Default)]
struct Collected {
    rows: Vec<Vec<Value>>,
    row: Vec<Value>,
}

impl Fields for Collected {
    fn integer(&mut self, value: i64) {
        self.row.push(Value::Integer(value));
    }
    fn text(&mut self, value: &str) {
        self.row.push(Value::Text(value.to_string()));
    }
    fn cents(&mut self, value: i64) {
        self.row.push(Value::Cents(value));
    }
    fn date(&mut self, value: Date) {
        self.row.push(Value::Date(value));
    }
    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }
}

fn parameters(size: &str, seed: u64) -> Parameters {
    Parameters::new(size.parse().unwrap(), RootSeed(seed))
}

fn rows(parameters: &Parameters, table: Table) -> Vec<Vec<Value>> {
    let mut collected = Collected::default();
    let mut units = Units::new(parameters, table);
    (1..=table.units(parameters)).for_each(|unit| units.write(unit, &mut collected));
    assert!(collected.row.is_empty(), "{table:?}: a row was not ended");
    collected.rows
}

/// Pearson's statistic of `observed` against equally likely cells.
fn chi_square(observed: &[u64]) -> f64 {
    let expected = observed.iter().sum::<u64>() as f64 / observed.len() as f64;
    observed.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum()
}

/// Asserts that values of `low..=high` are equally likely: below the 99.9 % quantile of the statistic, by Wilson
/// and Hilferty's approximation.
fn assert_uniform(what: &str, values: impl Iterator<Item = i64>, low: i64, high: i64) {
    let mut observed = vec![0u64; (high - low + 1) as usize];
    for value in values {
        assert!((low..=high).contains(&value), "{what}: {value}");
        observed[(value - low) as usize] += 1;
    }
    let freedom = (observed.len() - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - spread + 3.09 * spread.sqrt()).powi(3);
    let statistic = chi_square(&observed);
    assert!(statistic < limit, "{what}: {statistic:.1} of at most {limit:.1}");
}

#[test]
fn tables_have_their_rows_and_columns() {
    for size in ["0.01MB", "0.1MB", "0.27MB"] {
        let parameters = parameters(size, 7);
        for table in Table::ALL {
            let rows = rows(&parameters, table);
            assert_eq!(rows.len() as u64, table.rows(&parameters), "{table:?} at {size}");
            let columns = table.columns().split(", ").count();
            assert!(rows.iter().all(|row| row.len() == columns), "{table:?} at {size}");
            if !matches!(table, Table::OrderLines | Table::CustHist | Table::Membership) {
                let ids = rows.iter().map(|row| row[0].number());
                assert!(ids.eq(1..=rows.len() as i64), "{table:?} at {size}: ids have gaps");
            }
        }
    }
    let small = parameters("S", 1);
    let count = |table: Table| table.rows(&small);
    assert_eq!((count(Table::Orders), count(Table::Reviews)), (12_000, 200_000));
    assert!((59_900..60_100).contains(&count(Table::OrderLines)));
    assert!((4_099_500..4_100_500).contains(&count(Table::ReviewsHelpfulness)));
}

#[test]
fn rows_are_the_same_alone_and_in_sequence() {
    let parameters = parameters("0.1MB", 3);
    for table in Table::ALL {
        let all = rows(&parameters, table);
        let mut backward = Units::new(&parameters, table);
        let mut alone = Vec::new();
        for unit in (1..=table.units(&parameters)).rev() {
            let mut collected = Collected::default();
            backward.write(unit, &mut collected);
            alone.push(collected.rows);
        }
        alone.reverse();
        assert_eq!(alone.concat(), all, "{table:?}");
    }
}

#[test]
fn orders_add_up_and_agree_with_lines_and_history() {
    let parameters = parameters("0.2MB", 5);
    let catalogue = Catalogue::new(&parameters);
    let orders = rows(&parameters, Table::Orders);
    let lines = rows(&parameters, Table::OrderLines);
    let history = rows(&parameters, Table::CustHist);
    assert_eq!(lines.len(), history.len());
    let mut at = 0;
    for order in &orders {
        let of_order = lines[at..].iter().take_while(|line| line[1] == order[0]).count();
        assert!((1..=9).contains(&of_order));
        let mut net = 0;
        for number in 0..of_order {
            let (line, bought) = (&lines[at + number], &history[at + number]);
            assert_eq!(line[0], Value::Integer(number as i64 + 1));
            assert_eq!(line[4], order[1], "the line's date is not the order's");
            assert_eq!(bought[..], [order[2].clone(), order[0].clone(), line[2].clone()]);
            net += line[3].number() * catalogue.price_cents(line[2].number() as u32);
        }
        assert_eq!(order[3], Value::Cents(net));
        assert_eq!(order[4], Value::Cents(tax_cents(net)));
        assert_eq!(order[5], Value::Cents(net + tax_cents(net)));
        at += of_order;
    }
    assert_eq!(at, lines.len());
    let month = |order: &Vec<Value>| match order[1] {
        Value::Date(date) => i64::from(date.month),
        _ => panic!("no date"),
    };
    // As many in each month.
    assert!(orders.iter().map(month).eq((1..=12).flat_map(|month| [month; 20])));
}

#[test]
fn columns_are_distributed_as_described() {
    let parameters = parameters("4MB", 11);
    let customers = rows(&parameters, Table::Customers);
    let column = |index: usize| customers.iter().map(move |row| row[index].number());
    assert_uniform("region", column(9), 1, 2);
    assert_uniform("credit card type", column(12), 1, 5);
    assert_uniform("age", column(17), 18, 90);
    for (number, row) in customers.iter().enumerate() {
        assert_eq!(row[15].string(), format!("user{}", number + 1));
        assert_eq!(row[16].string(), "password");
        assert!(row[1].string().len() >= 5 && row[2].string().len() >= 5, "{row:?}");
        assert_eq!(row[8].string() == "US", row[9].number() == 1);
        assert!(row[7].string().len() == 5 && row[14].string().len() == 7);
    }
    let products = rows(&parameters, Table::Products);
    let column = |index: usize| products.iter().map(move |row| row[index].number());
    assert_uniform("category", column(1), 1, 16);
    assert_uniform("price in twentieths", column(4).map(|cents| (cents - 999) * 20 / 2_001), 0, 19);
    assert_uniform("common product in tenths", column(6).map(|id| (id - 1) / 400), 0, 9);
    let special = column(5).sum::<i64>();
    // 1 % of 4,000, within four standard deviations.
    assert!((15..=65).contains(&special), "{special}");
    let stock = rows(&parameters, Table::Inventory);
    assert_uniform("stock in thirds", stock.iter().map(|row| row[1].number() / 167), 0, 2);
    let lines = rows(&parameters, Table::OrderLines);
    assert_uniform("quantity", lines.iter().map(|line| line[3].number()), 1, 3);
    let reviews = rows(&parameters, Table::Reviews);
    assert_uniform("stars", reviews.iter().map(|row| row[3].number()), 1, 5);
    let words = |row: &Vec<Value>| row[6].string().split(' ').count() as i64;
    assert_uniform("words of a text", reviews.iter().map(words), 6, 129);
    assert!(reviews.iter().all(|row| row[5].string().split(' ').count() == 3));
    let members = rows(&parameters, Table::Membership);
    assert_uniform("member among ten", members.iter().map(|row| (row[0].number() - 1) % 10), 0, 9);
    assert_uniform("level", members.iter().map(|row| row[1].number()), 1, 3);
}

#[test]
fn ratings_are_two_to_thirty_nine_per_review() {
    let parameters = parameters("0.38MB", 2);
    let mut per_review = vec![0i64; parameters.size.reviews() as usize];
    let ratings = rows(&parameters, Table::ReviewsHelpfulness);
    for rating in &ratings {
        per_review[rating[1].number() as usize - 1] += 1;
    }
    // 7,600 reviews are 200 whole blocks: each count comes 200 times.
    for count in 2..=39 {
        assert_eq!(per_review.iter().filter(|found| **found == count).count(), 200);
    }
    assert_uniform("helpfulness", ratings.iter().map(|row| row[3].number()), 1, 10);
}

#[test]
fn popular_products_are_bought_ten_times_as_often() {
    let catalogue = Catalogue::new(&parameters("25MB", 1));
    let mut places = vec![0; 25_000];
    (0..catalogue.weight_sum())
        .for_each(|place| places[catalogue.weighted_product(place) as usize - 1] += 1);
    for (index, count) in places.iter().enumerate() {
        let expected = if (index + 1) % 10_000 == 0 { 10 } else { 1 };
        assert_eq!(*count, expected, "product {}", index + 1);
    }
    assert!((1..=25_000).all(|product| catalogue.initial_stock(product) <= 5_000));
    assert!(catalogue.initial_stock(10_000).is_multiple_of(10));
    // One in 10,000 is special where there are many products.
    let many = parameters("200MB", 1);
    let mut units = Units::new(&many, Table::Products);
    let mut collected = Collected::default();
    (1..=50_000).for_each(|unit| units.write(unit, &mut collected));
    let special: i64 = collected.rows.iter().map(|row| row[5].number()).sum();
    assert!((0..=15).contains(&special), "{special}");
}

#[test]
fn rows_never_change() {
    let hash = |table: Table| {
        let mut hash = Sha256::new();
        for row in rows(&parameters("0.1MB", 42), table) {
            hash.update(format!("{row:?}\n"));
        }
        hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let hashes: Vec<String> =
        Table::ALL.iter().map(|table| format!("{} {}", table.as_str(), hash(*table))).collect();
    assert_eq!(hashes, GOLDEN);
}

const GOLDEN: [&str; 10] = [
    "categories d697ed5da420",
    "customers fffec7f8e257",
    "membership fb4d35d1fd43",
    "products a27ab64d1971",
    "inventory 73b4a2120f27",
    "orders 4dea6923e532",
    "orderlines eee1f83ceaed",
    "cust_hist e9d2a683b441",
    "reviews bc9fcf7d1b6b",
    "reviews_helpfulness 1975694ed8e2",
];
