//! Conditions on the shop, before and after a run.
//!
//! | group | what it verifies |
//! |---|---|
//! | references | every row that names another finds it: the foreign keys, and what the tables do not declare |
//! | orders | lines, totals and histories agree |
//! | stock | what was in stock at the load, plus what was reordered, minus what was sold, is in stock; sales are the lines' |
//! | population | the loaded rows are still there, values are within their bounds |
//! | accounting | each table grew by what the clients were told, no more and no less |
//!
//! Commits of unknown outcome widen the accounting to a range.

use underlay_workload::dvdstore::population::{Catalogue, Table};
use underlay_workload::dvdstore::{Changes, DvdStoreAccounting, Parameters};

use super::DvdStoreError;
use super::condition::CONDITIONS;
use super::schema::OURS;
use super::sql::dialect;
use crate::connection::{Cells, Connection};
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// A check and what it found: nothing when it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// Its short identity.
    pub id: &'static str,
    /// What it verifies.
    pub title: &'static str,
    /// What is wrong.
    pub violation: Option<String>,
}

/// What a run changes, at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows of the tables that grow, pieces sold and amounts of all orders.
    pub counts: Changes,
    /// The largest number of a customer.
    pub last_customer: u32,
}

/// A connection that checks, in a transaction in which everything is of one state.
struct Reader<C>(C);

impl<C: Connection + SchemaOwner> Reader<C> {
    /// Connects, and begins the transaction.
    async fn open(target: &Target) -> Result<Reader<C>, DvdStoreError> {
        Reader::begin(target, dialect(C::ENGINE).check_begin).await
    }

    async fn begin(target: &Target, begin: &[&str]) -> Result<Reader<C>, DvdStoreError> {
        let target = C::with_database(&target.with_application_name("underlay-check"), OURS);
        let mut connection = C::connect(&target, 0).await?;
        connection.run(begin).await?;
        Ok(Reader(connection))
    }

    /// Calls `each` with every row of a statement of whole numbers; NULL is 0.
    async fn read(&mut self, sql: &str, each: &mut dyn FnMut(&[i64])) -> Result<(), DvdStoreError> {
        let mut failed = Ok(());
        let mut look = |cells: Cells| {
            let number = |cell: &Option<String>| cell.as_deref().map_or(Ok(0), integer_of);
            match cells.iter().map(number).collect::<Result<Vec<_>, _>>() {
                Ok(numbers) => each(&numbers),
                Err(error) => failed = Err(error),
            }
        };
        self.0.read(sql, &mut look).await?;
        failed
    }
}

/// Counts what a run changes.
pub(super) async fn tally<C: Connection + SchemaOwner>(
    target: &Target,
) -> Result<Tally, DvdStoreError> {
    tally_of(&mut Reader::<C>::open(target).await?).await
}

/// Makes all checks.
pub(super) async fn check<C: Connection + SchemaOwner>(
    target: &Target,
    parameters: &Parameters,
    run: Option<(&Tally, &DvdStoreAccounting)>,
) -> Result<Vec<CheckResult>, DvdStoreError> {
    inspect(&mut Reader::<C>::open(target).await?, parameters, run).await
}

/// Makes all checks in a transaction that the caller begins by `begin`, and that is never committed.
pub(super) async fn check_after<C: Connection + SchemaOwner>(
    target: &Target,
    parameters: &Parameters,
    run: Option<(&Tally, &DvdStoreAccounting)>,
    begin: &[&str],
) -> Result<Vec<CheckResult>, DvdStoreError> {
    inspect(&mut Reader::<C>::begin(target, begin).await?, parameters, run).await
}

/// A number as the server writes it; a decimal must be whole.
fn integer_of(text: &str) -> Result<i64, DvdStoreError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let number = whole.parse().ok().filter(|_| fraction.bytes().all(|digit| digit == b'0'));
    number.ok_or_else(|| DvdStoreError::NotANumber(text.to_string()))
}

const TALLY: &str = "SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM membership), \
    (SELECT count(*) FROM reviews), (SELECT count(*) FROM reviews_helpfulness), (SELECT count(*) FROM orders), \
    (SELECT count(*) FROM orderlines), (SELECT sum(sales) FROM inventory), \
    (SELECT sum(netamount) * 100 FROM orders), (SELECT max(customerid) FROM customers)";

/// Counts what a run changes.
async fn tally_of<C: Connection + SchemaOwner>(
    reader: &mut Reader<C>,
) -> Result<Tally, DvdStoreError> {
    let mut tally = Tally::default();
    reader
        .read(TALLY, &mut |row| {
            let unsigned = |index: usize| row.get(index).map_or(0, |value| value.unsigned_abs());
            tally.counts = Changes::of(std::array::from_fn(unsigned));
            tally.last_customer = unsigned(Changes::COUNT) as u32;
        })
        .await?;
    Ok(tally)
}

/// Makes all checks.
async fn inspect<C: Connection + SchemaOwner>(
    reader: &mut Reader<C>,
    parameters: &Parameters,
    run: Option<(&Tally, &DvdStoreAccounting)>,
) -> Result<Vec<CheckResult>, DvdStoreError> {
    let mut results = Vec::new();
    let last_order = parameters.size.orders().to_string();
    for condition in CONDITIONS {
        let sql = condition.sql.replace("{orders}", &last_order);
        let mut violation = None;
        reader
            .read(&sql, &mut |row| {
                if let [wrong, example] = *row
                    && wrong > 0
                {
                    violation = Some(format!("{wrong} rows, one of them has the key {example}"));
                }
            })
            .await?;
        results.push(CheckResult { id: condition.id, title: condition.title, violation });
    }
    results.push(balance(reader, parameters).await?);
    results.push(population(reader, parameters).await?);
    if let Some((before, accounting)) = run {
        let after = tally_of(reader).await?;
        results.extend(compare(before, &after, accounting));
    }
    Ok(results)
}

/// Stock against the generator: only it knows what was there at the load.
async fn balance<C: Connection + SchemaOwner>(
    reader: &mut Reader<C>,
    parameters: &Parameters,
) -> Result<CheckResult, DvdStoreError> {
    let catalogue = Catalogue::new(parameters);
    let (mut products, mut wrong, mut example) = (0u64, 0u64, None);
    reader
        .read(
            "SELECT i.prod_id, i.quan_in_stock, i.sales, coalesce(r.added, 0) FROM inventory i \
             LEFT JOIN (SELECT prod_id, sum(quan_reordered) AS added FROM reorder GROUP BY prod_id) r \
               ON r.prod_id = i.prod_id",
            &mut |row| {
                let [product, stock, sales, added] = *row else { return };
                products += 1;
                let initial = u32::try_from(product)
                    .ok()
                    .filter(|product| (1..=catalogue.products()).contains(product))
                    .map_or(0, |product| i64::from(catalogue.initial_stock(product)));
                if stock != initial + added - sales {
                    wrong += 1;
                    example.get_or_insert(format!(
                        "product {product}: {initial} at the load, {added} reordered, {sales} sold, {stock} in stock"
                    ));
                }
            },
        )
        .await?;
    let expected = u64::from(catalogue.products());
    let violation = match example {
        Some(example) => Some(format!("{wrong} products, one of them: {example}")),
        None if products != expected => {
            Some(format!("{products} products, {expected} were loaded"))
        }
        None => None,
    };
    Ok(CheckResult {
        id: "stock",
        title: "stock is that of the load, plus what was reordered, minus what was sold",
        violation,
    })
}

/// Whether the rows of the population are there.
async fn population<C: Connection + SchemaOwner>(
    reader: &mut Reader<C>,
    parameters: &Parameters,
) -> Result<CheckResult, DvdStoreError> {
    let size = parameters.size;
    let ratings = Table::ReviewsHelpfulness.rows(parameters);
    // The table, and which of its rows are of the population; memberships of all kinds only grow.
    let wanted = [
        (Table::Categories, String::new()),
        (Table::Customers, format!(" WHERE customerid <= {}", size.customers())),
        (Table::Products, String::new()),
        (Table::Orders, format!(" WHERE orderid <= {}", size.orders())),
        (Table::OrderLines, format!(" WHERE orderid <= {}", size.orders())),
        (Table::CustHist, format!(" WHERE orderid <= {}", size.orders())),
        (Table::Reviews, format!(" WHERE review_id <= {}", size.reviews())),
        (Table::ReviewsHelpfulness, format!(" WHERE review_helpfulness_id <= {ratings}")),
    ];
    let mut violation = None;
    for (table, which) in wanted {
        let (name, expected) = (table.as_str(), table.rows(parameters));
        let sql = format!("SELECT count(*) FROM {name}{which}");
        reader
            .read(&sql, &mut |row| {
                if row != [expected.cast_signed()] {
                    let found = row.first().copied().unwrap_or(0);
                    violation.get_or_insert(format!(
                        "{found} of the {expected} loaded rows of {name} exist"
                    ));
                }
            })
            .await?;
    }
    let title = "all rows of the population exist";
    Ok(CheckResult { id: "population", title, violation })
}

/// Ids and titles of the comparisons with the accounting, in the order of [`Changes::values`].
const BOOKS: [(&str, &str); Changes::COUNT] = [
    ("new-customers", "new customers: as many as were acknowledged to clients"),
    ("new-members", "new members: as many as were acknowledged to clients"),
    ("new-reviews", "new reviews: as many as were acknowledged to clients"),
    ("new-ratings", "new ratings: as many as were acknowledged to clients"),
    ("new-orders", "new orders: as many as were acknowledged to clients"),
    ("new-lines", "new order lines: as many as were acknowledged to clients"),
    ("pieces-sold", "pieces sold: as many as were acknowledged to clients"),
    ("amounts", "amounts of orders grew by the cents acknowledged to clients"),
];

/// The growth of the tables against the accounting.
fn compare(before: &Tally, after: &Tally, accounting: &DvdStoreAccounting) -> Vec<CheckResult> {
    let (before, after) = (before.counts.values(), after.counts.values());
    let (least, perhaps) = (accounting.acknowledged.values(), accounting.perhaps.values());
    BOOKS
        .iter()
        .enumerate()
        .map(|(index, (id, title))| {
            let grown = after[index].cast_signed() - before[index].cast_signed();
            let least = least[index].cast_signed();
            let most = least + perhaps[index].cast_signed();
            let violation = (!(least..=most).contains(&grown)).then(|| {
                format!("grew by {grown}, acknowledged to clients: {least} (at most {most})")
            });
            CheckResult { id, title, violation }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Tally, compare, integer_of};
    use underlay_workload::dvdstore::{Changes, DvdStoreAccounting};

    #[test]
    fn numbers_are_whole() {
        assert_eq!(integer_of("-12").unwrap(), -12);
        assert_eq!(integer_of("4300.00").unwrap(), 4_300);
        assert!(integer_of("4.5").is_err());
        assert!(integer_of("").is_err());
    }

    #[test]
    fn every_number_of_the_books_is_compared_and_unknown_commits_widen_it() {
        let tally = |counts| Tally { counts, last_customer: 0 };
        let before = [100; Changes::COUNT];
        for index in 0..Changes::COUNT {
            let mut told = [0; Changes::COUNT];
            told[index] = 5;
            let accounting = DvdStoreAccounting {
                acknowledged: Changes::of(told),
                ..DvdStoreAccounting::default()
            };
            let violations = |grown: u64, accounting: &DvdStoreAccounting| {
                let mut after = before;
                after[index] += grown;
                let results =
                    compare(&tally(Changes::of(before)), &tally(Changes::of(after)), accounting);
                results.iter().filter(|result| result.violation.is_some()).count()
            };
            assert_eq!(
                (
                    violations(5, &accounting),
                    violations(4, &accounting),
                    violations(6, &accounting)
                ),
                (0, 1, 1)
            );
            let mut unknown = [0; Changes::COUNT];
            unknown[index] = 2;
            let accounting = DvdStoreAccounting { perhaps: Changes::of(unknown), ..accounting };
            assert_eq!(
                (
                    violations(7, &accounting),
                    violations(8, &accounting),
                    violations(4, &accounting)
                ),
                (0, 1, 1)
            );
        }
    }
}
