//! What must hold of the tables, before and after a run.
//!
//! | check | what it verifies |
//! |---|---|
//! | rows | as many rows as before, and those that the clients were told of, no more and no fewer |
//! | k | the sum of all `k` grew by the acknowledged index updates, where nothing else changed `k` |
//! | texts | every `c` and `pad` has the form that the generator gives it |
//! | index | the index on `k` and the table itself find the same number of rows |
//!
//! Commits of unknown outcome widen the first two to a range.

use underlay_workload::sysbench::SysbenchAccounting;

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
/// neither came nor went: else nobody knows what it should be, and no check of it is made.
pub(crate) fn judge(
    before: &Tally,
    after: &Tally,
    accounting: &SysbenchAccounting,
) -> Vec<CheckResult> {
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
        format!("{added} rows were added, the clients were told of {least} (at most {most})")
    })
}

fn k(before: &Tally, after: &Tally, (least, most): (u64, u64)) -> Option<String> {
    let added = after.k - before.k;
    (!(least.cast_signed()..=most.cast_signed()).contains(&added)).then(|| {
        format!("k grew by {added}, the clients were told of {least} updates (at most {most})")
    })
}

/// `wrong` rows of a table have other texts; the first is `id`.
pub(crate) fn texts_violation(table: u32, wrong: u64, id: i64) -> Option<String> {
    (wrong > 0).then(|| format!("{wrong} rows of sbtest{table}, the first is {id}"))
}

/// What the index on `k` and the table itself say of the number of rows.
pub(crate) fn index_violation(table: u32, by_index: u64, by_table: u64) -> Option<String> {
    (by_index != by_table)
        .then(|| format!("sbtest{table}: {by_index} rows by the index, {by_table} in the table"))
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
