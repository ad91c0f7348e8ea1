//! Conditions on the tables, before and after a run.
//!
//! | check | what it verifies |
//! |---|---|
//! | rows | rows before plus those acknowledged to clients, no more and no fewer |
//! | k | the sum of all `k` grew by the acknowledged index updates, where nothing else changed `k` |
//! | texts | every `c` and `pad` has the form that the generator gives it |
//! | index | the index on `k` and the table itself find the same number of rows |
//!
//! Commits of unknown outcome widen the first two to a range.

use underlay_workload::sysbench::{Parameters, SysbenchAccounting};

use super::SysbenchError;
use super::names::numbered;
use super::schema::number;
use super::sql::{Count, dialect};
use crate::connection::{Connection, RequestError};
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// Which check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The number of rows.
    Rows,
    /// The sum of `k`.
    K,
    /// The form of the texts.
    Texts,
    /// The index on `k`.
    Index,
}

/// A check and what it found: nothing when it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// Which.
    pub check: Check,
    /// What is wrong.
    pub violation: Option<String>,
}

/// The counts of all tables at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows.
    pub rows: u64,
    /// Sum of `k`.
    pub k: i64,
}

impl Check {
    /// Its short identity.
    pub const fn id(self) -> &'static str {
        match self {
            Check::Rows => "rows",
            Check::K => "k",
            Check::Texts => "texts",
            Check::Index => "index",
        }
    }

    /// What it verifies.
    pub const fn title(self) -> &'static str {
        match self {
            Check::Rows => "rows of all tables: before, plus inserted, minus deleted",
            Check::K => "sum of k of all tables: before, plus index updates",
            Check::Texts => "c and pad are groups of eleven digits",
            Check::Index => "the index on k has every row once",
        }
    }
}

/// The checks of what a run of `accounting` made of the tables of `before`. The sum of `k` is among them only where rows
/// neither came nor went: otherwise its expected value is unknown, and it is not checked.
fn judge(before: &Tally, after: &Tally, accounting: &SysbenchAccounting) -> Vec<CheckResult> {
    let mut results =
        vec![CheckResult { check: Check::Rows, violation: rows(before, after, accounting) }];
    if let Some(range) = accounting.k_added() {
        results.push(CheckResult { check: Check::K, violation: k(before, after, range) });
    }
    results
}

fn rows(before: &Tally, after: &Tally, accounting: &SysbenchAccounting) -> Option<String> {
    let added = after.rows.cast_signed() - before.rows.cast_signed();
    let (least, most) = accounting.rows_added();
    (!(least..=most).contains(&added)).then(|| {
        format!("{added} rows were added, acknowledged to clients: {least} (at most {most})")
    })
}

fn k(before: &Tally, after: &Tally, (least, most): (u64, u64)) -> Option<String> {
    let added = after.k - before.k;
    (!(least.cast_signed()..=most.cast_signed()).contains(&added)).then(|| {
        format!("k grew by {added}, updates acknowledged to clients: {least} (at most {most})")
    })
}

/// `wrong` rows of a table have other texts; the first is `id`.
fn texts_violation(table: u32, wrong: u64, id: i64) -> Option<String> {
    (wrong > 0).then(|| format!("{wrong} rows of sbtest{table}, the first is {id}"))
}

/// What the index on `k` and the table itself say of the number of rows.
fn index_violation(table: u32, by_index: u64, by_table: u64) -> Option<String> {
    (by_index != by_table)
        .then(|| format!("sbtest{table}: {by_index} rows by the index, {by_table} in the table"))
}

/// Counts all tables.
pub(super) async fn tally<C: SchemaOwner + Connection>(
    target: &Target,
    parameters: &Parameters,
) -> Result<Tally, SysbenchError> {
    tally_on(&mut open::<C>(target).await?, parameters).await
}

async fn open<C: SchemaOwner + Connection>(target: &Target) -> Result<C, SysbenchError> {
    Ok(C::connect(&C::with_database(target, WorkloadTables::Sysbench), 0).await?)
}

async fn tally_on<C: Connection>(
    connection: &mut C,
    parameters: &Parameters,
) -> Result<Tally, SysbenchError> {
    let mut tally = Tally::default();
    for table in 1..=parameters.tables {
        let [rows, k] = numbers(connection, dialect(C::ENGINE).tally, table).await?;
        tally.rows += rows.cast_unsigned();
        tally.k += k;
    }
    Ok(tally)
}

/// Makes all checks. With `run`, also those against the tally before and the accounting of a run.
pub(super) async fn check<C: SchemaOwner + Connection>(
    target: &Target,
    parameters: &Parameters,
    run: Option<(&Tally, &SysbenchAccounting)>,
) -> Result<Vec<CheckResult>, SysbenchError> {
    let mut connection = open::<C>(target).await?;
    let (mut texts, mut index) = (None, None);
    for table in 1..=parameters.tables {
        let [wrong, id] = numbers(&mut connection, dialect(C::ENGINE).texts, table).await?;
        texts = texts.or_else(|| texts_violation(table, wrong.cast_unsigned(), id));
    }
    for table in 1..=parameters.tables {
        let by_index = match count(&mut connection, &dialect(C::ENGINE).by_index, table).await {
            // Sysbench can leave it out; there is nothing to compare then.
            Err(error) if error.is_no_such_index() => continue,
            count => count?,
        };
        let by_table = count(&mut connection, &dialect(C::ENGINE).by_table, table).await?;
        index = index.or_else(|| index_violation(table, by_index, by_table));
    }
    let mut results = vec![
        CheckResult { check: Check::Texts, violation: texts },
        CheckResult { check: Check::Index, violation: index },
    ];
    if let Some((before, accounting)) = run {
        let after = tally_on(&mut connection, parameters).await?;
        results.extend(judge(before, &after, accounting));
    }
    Ok(results)
}

/// The first row of a statement about a table.
async fn numbers<C: Connection, const N: usize>(
    connection: &mut C,
    sql: &str,
    table: u32,
) -> Result<[i64; N], SysbenchError> {
    let rows = connection.read_all(&numbered(sql, table)).await?;
    let row = rows.into_iter().next().unwrap_or_default();
    let mut numbers = [0; N];
    for (column, value) in numbers.iter_mut().enumerate() {
        *value = number(&row, column)?;
    }
    Ok(numbers)
}

/// How many rows a table has, counted in a certain way.
async fn count<C: Connection>(
    connection: &mut C,
    how: &Count,
    table: u32,
) -> Result<u64, RequestError> {
    if !how.settings.is_empty() {
        connection.run(&["BEGIN", how.settings]).await?;
    }
    let rows = connection.read_all(&numbered(how.sql, table)).await;
    if !how.settings.is_empty() {
        connection.query(b"ROLLBACK").await?;
    }
    let cell = rows?.into_iter().flatten().flatten().next();
    let count = cell.and_then(|count| count.parse().ok());
    count.ok_or_else(|| RequestError::unexpected("a count is not a number"))
}

#[cfg(test)]
mod tests {
    use super::{Check, Tally, index_violation, judge, rows};
    use underlay_workload::sysbench::SysbenchAccounting;

    #[test]
    fn lost_and_invented_rows_are_violations_and_unknown_ones_are_not() {
        let tally = |rows, k| Tally { rows, k };
        let accounting =
            SysbenchAccounting { inserted: 10, deleted: 4, ..SysbenchAccounting::default() };
        assert_eq!(rows(&tally(100, 0), &tally(106, 0), &accounting), None);
        assert!(rows(&tally(100, 0), &tally(105, 0), &accounting).is_some());
        assert!(rows(&tally(100, 0), &tally(107, 0), &accounting).is_some());
        let unknown = SysbenchAccounting { perhaps_inserted: 1, perhaps_deleted: 2, ..accounting };
        assert_eq!(rows(&tally(100, 0), &tally(107, 0), &unknown), None);
        assert_eq!(rows(&tally(100, 0), &tally(104, 0), &unknown), None);
        assert!(rows(&tally(100, 0), &tally(103, 0), &unknown).is_some());
    }

    #[test]
    fn k_is_judged_only_where_nothing_else_changed_it() {
        let tally = |k| Tally { rows: 1, k };
        let accounting = SysbenchAccounting { index_updates: 5, ..SysbenchAccounting::default() };
        let holds = |after, accounting: &SysbenchAccounting| {
            let results = judge(&tally(10), &tally(after), accounting);
            let k = results.into_iter().find(|result| result.check == Check::K);
            k.map(|result| result.violation.is_none())
        };
        assert_eq!(holds(15, &accounting), Some(true));
        assert_eq!(holds(14, &accounting), Some(false));
        assert_eq!(holds(16, &SysbenchAccounting { perhaps_updated: 1, ..accounting }), Some(true));
        // What was not judged is not said to hold.
        assert_eq!(holds(99, &SysbenchAccounting { inserted: 1, deleted: 1, ..accounting }), None);
    }

    #[test]
    fn an_index_that_lacks_a_row_is_a_violation() {
        assert_eq!(index_violation(1, 10, 10), None);
        let said = index_violation(3, 9, 10).unwrap();
        assert_eq!(said, "sbtest3: 9 rows by the index, 10 in the table");
    }
}
