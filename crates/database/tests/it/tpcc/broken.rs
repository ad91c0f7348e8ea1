//! Every condition is broken on purpose, and must be the one that notices: as must those that follow from it, and no
//! others.
//!
//! The last check proves that all rows were put back.

use std::collections::BTreeSet;

use underlay_database::Engine;
use underlay_database::tpcc::{CheckMoment, CheckOutcome, Mode, OrderNumbers, TableNames};
use underlay_testbed::{Database, ONE_WAREHOUSE, TWO_WAREHOUSES, or_skip};
use underlay_workload::tpcc::{
    CustomerSelector, Delivery, Ledger, NewOrder, OrderLineInput, Payment, Transaction,
};

use super::breakages::{
    Breakage, WRONG_ROWS, WRONG_VALUES, break_and_mend, noticed_apart, one_by_one, violated,
};

#[test]
fn wrong_values_are_caught() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    let caught = broken(&database, &noticed_apart(WRONG_VALUES));
    assert_eq!(caught.len(), 20, "a condition was never broken: {caught:?}");
}

#[test]
fn missing_and_stray_rows_are_caught() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    let caught = broken(&database, &one_by_one(WRONG_ROWS));
    assert!(caught.contains("i9"), "{caught:?}");
}

/// Breaks the database in each of these ways; returns the conditions that noticed.
fn broken(database: &Database, breakages: &[Vec<&'static Breakage>]) -> BTreeSet<&'static str> {
    use_every_district(database);
    // Columns that no row of ours can leave empty, but a row of another tool's database can.
    database.execute(
        "ALTER TABLE tpcc.order_line ALTER ol_amount DROP NOT NULL, ALTER ol_dist_info DROP NOT NULL",
    );
    let execute = |sql: &str| database.execute(sql);
    let check = || database.check(CheckMoment::AfterRun, None);
    let noticed = break_and_mend(breakages, "tpcc.", &execute, &check);
    database.assert_consistent(None);
    noticed
}

/// One new order, one payment and one delivery in each district of warehouse 1.
fn use_every_district(database: &Database) {
    let mut session = database.session(Mode::Procedures);
    for district in 1..=10 {
        let order = new_order(1, district, &[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]);
        let outcome = database.run(&mut session, &order).unwrap();
        assert_eq!(outcome.order_id, Some(3001));
        let payment = Transaction::Payment(Payment {
            warehouse: 1,
            district,
            customer_warehouse: 1,
            customer_district: district,
            customer: CustomerSelector::ById(7),
            amount_cents: 1_234,
        });
        database.run(&mut session, &payment).unwrap();
    }
    let delivery = Transaction::Delivery(Delivery { warehouse: 1, carrier: 3 });
    assert_eq!(database.run(&mut session, &delivery).unwrap().skipped_deliveries, 0);
}

/// An order of three pieces of each of (item, supplying warehouse) by customer 11.
fn new_order(warehouse: u32, district: u32, lines: &[(u32, u32)]) -> Transaction {
    let line = |&(item, supply_warehouse): &(u32, u32)| OrderLineInput {
        item,
        supply_warehouse,
        quantity: 3,
    };
    Transaction::NewOrder(NewOrder {
        warehouse,
        district,
        customer: 11,
        lines: lines.iter().map(line).collect(),
    })
}

#[test]
fn a_remote_row_that_was_not_touched_is_noticed() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    let mut session = database.session(Mode::Procedures);
    let order = new_order(1, 1, &[(1, 1), (2, 2), (3, 1), (4, 1), (5, 1)]);
    database.run(&mut session, &order).unwrap();
    database.assert_consistent(None);
    let caught = |change: &str| {
        database.execute(change);
        violated(&database.check(CheckMoment::AfterRun, None)).join(" ")
    };
    // The work was done on the home warehouse's row: all sums are right.
    let moved = "UPDATE tpcc.stock SET (s_ytd, s_order_cnt, s_remote_cnt) = \
         (SELECT s_ytd, s_order_cnt, s_remote_cnt FROM tpcc.stock AS other \
           WHERE other.s_i_id = 2 AND other.s_w_id <> stock.s_w_id) WHERE s_i_id = 2";
    assert_eq!(caught(moved), "i1 i2");
    // The counter of remote lines never moves.
    let forgotten = format!("{moved}; UPDATE tpcc.stock SET s_remote_cnt = 0 WHERE s_i_id = 2");
    assert_eq!(caught(&forgotten), "i2");
    // The text is that of the home warehouse's row.
    let wrong_text = "UPDATE tpcc.stock SET s_remote_cnt = 1 WHERE s_i_id = 2 AND s_w_id = 2; \
         UPDATE tpcc.order_line SET ol_dist_info = (SELECT s_dist_01 FROM tpcc.stock WHERE s_i_id = 2 AND s_w_id = 1) \
          WHERE ol_o_id = 3001 AND ol_i_id = 2";
    assert_eq!(caught(wrong_text), "i6");
    assert_eq!(caught("UPDATE tpcc.orders SET o_all_local = 1 WHERE o_id = 3001"), "i5 i6");
}

#[test]
fn a_population_that_was_used_is_not_fresh() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    use_every_district(&database);
    let report = database.check(CheckMoment::AfterLoad, None);
    assert_eq!(violated(&report), ["i10"]);
}

#[test]
fn a_check_that_cannot_be_made_is_not_a_violation() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    let failed = |missing: &str| {
        let tables = TableNames::mapped(|table| {
            let name = if table == missing { "gone" } else { table };
            format!("tpcc.{name}")
        });
        let report = database.check_tables(CheckMoment::AfterRun, None, &tables);
        assert_eq!(report.results.len(), 21);
        let is_explained = |outcome: &CheckOutcome| match outcome {
            CheckOutcome::Failed { error } => error.contains("\"tpcc.gone\" does not exist"),
            _ => false,
        };
        assert!(report.failures().all(|result| is_explained(&result.outcome)), "{report:?}");
        report.failures().map(|result| result.id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(failed("item"), "i6 i7 i9");
    assert_eq!(failed("warehouse"), "c1 c8 i9");
    assert_eq!(failed("stock"), "i1 i2 i3 i6 i7 i9");
    assert_eq!(failed("history"), "c1 c2 c3 c4 c8 c9 c10 c11 c12 i4 i8 i9");
    // A violation elsewhere is still seen.
    database.execute("UPDATE tpcc.stock SET s_quantity = 0 WHERE s_i_id = 9");
    let tables = TableNames::mapped(|table| format!("tpcc.{}", table.replace("item", "gone")));
    let report = database.check_tables(CheckMoment::AfterRun, None, &tables);
    let outcome = |id| &report.results.iter().find(|result| result.id == id).unwrap().outcome;
    assert!(matches!(outcome("i3"), CheckOutcome::Violated { rows: 1, .. }), "{report:?}");
    assert!(matches!(outcome("i9"), CheckOutcome::Failed { .. }));
}

/// Tables that another tool made have smaller integers.
#[test]
fn order_numbers_of_narrower_columns_are_read() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    let before = database.order_numbers();
    database.execute("ALTER TABLE tpcc.district ALTER COLUMN d_id TYPE smallint");
    assert_eq!(database.order_numbers(), before);
}

#[test]
fn the_ledger_tells_lost_from_unacknowledged_orders() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    let before = database.order_numbers();
    let mut session = database.session(Mode::Statements);
    let mut ledger = Ledger::new();
    for _ in 0..3 {
        let order = new_order(1, 4, &[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]);
        let order_id = database.run(&mut session, &order).unwrap().order_id.unwrap();
        ledger.acknowledge(1, 4, order_id);
    }
    database.assert_consistent(Some((&ledger, &before)));

    // A commit that nobody was told of, unless somebody did not hear the answer.
    database
        .run(&mut session, &new_order(1, 4, &[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]))
        .unwrap();
    let example = ledger_violation(&database, &ledger, &before);
    assert!(example.contains("district 4: numbers advanced by 4, 3 acknowledged"), "{example}");
    ledger.unknown(1, 4);
    database.assert_consistent(Some((&ledger, &before)));
    ledger.unknown(1, 4);
    database.assert_consistent(Some((&ledger, &before)));

    // An acknowledged order that is not there.
    ledger.acknowledge(1, 5, 3001);
    let example = ledger_violation(&database, &ledger, &before);
    assert_eq!(example, "lost: warehouse 1 district 5 order 3001");
    database
        .run(&mut session, &new_order(1, 5, &[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]))
        .unwrap();
    database.assert_consistent(Some((&ledger, &before)));

    // The same number was given twice: the database forgot the first.
    ledger.acknowledge(1, 5, 3001);
    let example = ledger_violation(&database, &ledger, &before);
    assert!(example.contains("1 acknowledged, 1 of them more than once"), "{example}");

    // An acknowledged order of a district that does not exist.
    let mut ledger = Ledger::new();
    ledger.acknowledge(7, 1, 3001);
    assert_eq!(
        ledger_violation(&database, &ledger, &database.order_numbers()),
        "lost: warehouse 7 district 1 order 3001"
    );
}

/// What the ledger's check says, which alone must fail.
fn ledger_violation(database: &Database, ledger: &Ledger, before: &OrderNumbers) -> String {
    let report = database.check(CheckMoment::AfterRun, Some((ledger, before)));
    assert_eq!(violated(&report), ["ledger"]);
    match &report.results.last().unwrap().outcome {
        CheckOutcome::Violated { rows: 1, example } => example.clone(),
        other => panic!("{other:?}"),
    }
}
