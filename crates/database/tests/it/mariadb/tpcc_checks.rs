//! Every condition is broken on purpose, and must be the one that notices: as must those that follow from it,
//! and no others. The ways to break and what must be caught are those of every engine.

use std::collections::BTreeSet;

use underlay_database::Engine;
use underlay_database::tpcc::{CheckMoment, CheckOutcome, Mode, TableNames};
use underlay_testbed::{Database, ONE_WAREHOUSE, or_skip};
use underlay_workload::tpcc::{CustomerSelector, Delivery, Ledger, Transaction};

use super::tpcc::{order, payment};
use crate::tpcc::breakages::{
    Breakage, WRONG_ROWS, WRONG_VALUES, break_and_mend, noticed_apart, one_by_one, violated,
};

#[test]
fn wrong_values_are_caught() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    let caught = broken(&database, &noticed_apart(WRONG_VALUES));
    assert_eq!(caught.len(), 20, "a condition was never broken: {caught:?}");
}

#[test]
fn missing_and_stray_rows_are_caught() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    let caught = broken(&database, &one_by_one(WRONG_ROWS));
    assert!(caught.contains("i9"), "{caught:?}");
}

/// Breaks the database in each of these ways; returns the conditions that noticed.
fn broken(database: &Database, breakages: &[Vec<&'static Breakage>]) -> BTreeSet<&'static str> {
    use_every_district(database);
    // Columns that no row of ours can leave empty, but a row of another tool's database can.
    database.execute(
        "ALTER TABLE order_line MODIFY ol_amount decimal(6,2), MODIFY ol_dist_info char(24)",
    );
    let execute = |sql: &str| database.execute(sql);
    let check = || database.check(CheckMoment::AfterRun, None);
    let noticed = break_and_mend(breakages, "", &execute, &check);
    database.assert_consistent(None);
    noticed
}

/// One new order, one payment and one delivery in each district of warehouse 1.
fn use_every_district(database: &Database) {
    let mut session = database.session(Mode::Procedures);
    for district in 1..=10 {
        let lines = [(1, 1, 3), (2, 1, 3), (3, 1, 3), (4, 1, 3), (5, 1, 3)];
        let outcome = database.run(&mut session, &order(1, district, &lines)).unwrap();
        assert_eq!(outcome.order_id, Some(3001));
        let paid = payment(1, district, CustomerSelector::ById(7));
        database.run(&mut session, &Transaction::Payment(paid)).unwrap();
    }
    let delivery = Transaction::Delivery(Delivery { warehouse: 1, carrier: 3 });
    assert_eq!(database.run(&mut session, &delivery).unwrap().skipped_deliveries, 0);
}

#[test]
fn a_check_that_cannot_be_made_is_not_a_violation() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    use_every_district(&database);
    assert_eq!(violated(&database.check(CheckMoment::AfterLoad, None)), ["i10"]);
    let failed = |missing: &str| {
        let tables = TableNames::mapped(|table| {
            if table == missing { "gone".to_string() } else { table.to_string() }
        });
        let report = database.check_tables(CheckMoment::AfterRun, None, &tables);
        assert_eq!(report.results.len(), 21);
        let is_explained = |outcome: &CheckOutcome| match outcome {
            CheckOutcome::Failed { error } => error.contains("gone' doesn't exist"),
            _ => false,
        };
        assert!(report.failures().all(|result| is_explained(&result.outcome)), "{report:?}");
        report.failures().map(|result| result.id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(failed("item"), "i6 i7 i9");
    assert_eq!(failed("warehouse"), "c1 c8 i9");
    assert_eq!(failed("stock"), "i1 i2 i3 i6 i7 i9");
    assert_eq!(failed("history"), "c1 c2 c3 c4 c8 c9 c10 c11 c12 i4 i8 i9");
    assert_eq!(TableNames::of(Engine::Mariadb), TableNames::mapped(str::to_string));
}

#[test]
fn the_ledger_tells_lost_from_unacknowledged_orders() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    let before = database.order_numbers();
    let mut session = database.session(Mode::Statements);
    let mut ledger = Ledger::new();
    let lines = [(1, 1, 3), (2, 1, 3), (3, 1, 3), (4, 1, 3), (5, 1, 3)];
    let mut place = |district| {
        database.run(&mut session, &order(1, district, &lines)).unwrap().order_id.unwrap()
    };
    for _ in 0..3 {
        ledger.acknowledge(1, 4, place(4));
    }
    database.assert_consistent(Some((&ledger, &before)));
    // A commit that nobody was told of, unless somebody did not hear the answer.
    place(4);
    let says = |ledger: &Ledger| {
        let report = database.check(CheckMoment::AfterRun, Some((ledger, &before)));
        assert_eq!(violated(&report), ["ledger"]);
        match &report.results.last().unwrap().outcome {
            CheckOutcome::Violated { rows: 1, example } => example.clone(),
            other => panic!("{other:?}"),
        }
    };
    let example = says(&ledger);
    assert!(example.contains("district 4: numbers advanced by 4, 3 acknowledged"), "{example}");
    ledger.unknown(1, 4);
    database.assert_consistent(Some((&ledger, &before)));
    // An acknowledged order that is not there.
    ledger.acknowledge(1, 5, 3001);
    assert_eq!(says(&ledger), "lost: warehouse 1 district 5 order 3001");
    place(5);
    database.assert_consistent(Some((&ledger, &before)));
    // The same number was given twice: the database forgot the first.
    ledger.acknowledge(1, 5, 3001);
    let example = says(&ledger);
    assert!(example.contains("1 acknowledged, 1 of them more than once"), "{example}");
}
