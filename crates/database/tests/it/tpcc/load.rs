//! What a load leaves in the database.

use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use underlay_database::Engine;
use underlay_database::tpcc::{CheckMoment, LoadOptions, LoadProgress, LoadStage, describe, load};
use underlay_testbed::{Database, ONE_WAREHOUSE, TWO_WAREHOUSES, or_skip, parameters};
use underlay_workload::tpcc::population::{Table, order_line_count};

fn name(table: Table) -> String {
    format!("tpcc.{}", if table == Table::Order { "orders" } else { table.as_str() })
}

fn rows(table: Table) -> i64 {
    let parameters = parameters(TWO_WAREHOUSES);
    let rows = match table {
        Table::OrderLine => (1..=TWO_WAREHOUSES).map(|w| order_line_count(&parameters, w)).sum(),
        _ => table.rows(TWO_WAREHOUSES),
    };
    rows.cast_signed()
}

/// Tables of which not all rows are known to be visible to everybody, or nothing is known. A table may have more pages than those
/// with rows: connections that make it longer at once leave some unused.
fn unfrozen(database: &Database) -> Vec<String> {
    let of = |table| {
        database.texts(&format!(
            "SELECT relname || ': ' || relallvisible || ' of ' || used || ' pages, ' || reltuples \
               FROM pg_class, (SELECT count(DISTINCT (ctid::text::point)[0]) AS used FROM {0}) AS pages \
              WHERE pg_class.oid = '{0}'::regclass AND (relallvisible < used OR reltuples < 1)",
            name(table)
        ))
    };
    Table::ALL.into_iter().flat_map(of).collect()
}

/// How many tables autovacuum does not look at.
const LEFT_ALONE: &str = "SELECT count(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
     WHERE nspname = 'tpcc' AND relkind = 'r' AND reloptions::text LIKE '%autovacuum_enabled=off%'";

#[test]
fn a_load_passes_every_check() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    let report = database.check(CheckMoment::AfterLoad, None);
    assert!(report.is_clean(), "{:#?}", report.failures().collect::<Vec<_>>());
    let ids: Vec<&str> = report.results.iter().map(|result| result.id).collect();
    let all: Vec<String> =
        (1..=12).map(|n| format!("c{n}")).chain((1..=10).map(|n| format!("i{n}"))).collect();
    assert_eq!(ids, all);
    for table in Table::ALL {
        let sql = format!("SELECT count(*) FROM {}", name(table));
        assert_eq!(database.number(&sql), rows(table), "{}", name(table));
    }
    let described = database.bed.runtime.block_on(describe(&database.target)).unwrap();
    assert_eq!(described.parameters, parameters(TWO_WAREHOUSES));
}

#[test]
fn many_loaders_load_the_same_rows() {
    let few = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    let many = or_skip!(Database::empty(Engine::Postgresql));
    let seen = Mutex::new(Vec::new());
    let options = LoadOptions {
        // Enough to divide the tables among the loaders.
        parallel: 6,
        progress: &|progress| seen.lock().unwrap().push(progress),
    };
    let report = load(&many.target, &parameters(TWO_WAREHOUSES), &options).unwrap();
    assert_eq!(few.content(), many.content());

    assert_eq!(report.rows.cast_signed(), Table::ALL.into_iter().map(rows).sum::<i64>());
    let seen = seen.into_inner().unwrap();
    let stages = [LoadStage::Rows, LoadStage::Keys, LoadStage::Settle];
    assert!(seen.is_sorted_by_key(|progress| stages.iter().position(|s| *s == progress.stage)));
    let last = seen.last().unwrap();
    assert_eq!((last.stage, last.rows), (LoadStage::Settle, report.rows));
    let error = last.rows_expected.abs_diff(report.rows) as f64 / report.rows as f64;
    assert!(error < 0.01, "{last:?}");
    // Everything that is measured afterwards starts from frozen rows and known statistics.
    assert_eq!((unfrozen(&few), unfrozen(&many)), (vec![], vec![]));
    // While they are used, autovacuum sees to them as the server has it.
    assert_eq!((few.number(LEFT_ALONE), many.number(LEFT_ALONE)), (0, 0));
}

#[test]
fn rows_are_frozen_whatever_is_written_elsewhere() {
    let database = or_skip!(Database::empty(Engine::Postgresql));
    database.execute("CREATE DATABASE elsewhere");
    let (elsewhere, runtime) = (database.target.with_database("elsewhere"), &database.bed.runtime);
    // Every snapshot that is taken from now on reaches back to this, in all databases.
    let writer = runtime.block_on(elsewhere.connect()).unwrap();
    let begin = writer.batch_execute("BEGIN; SELECT pg_current_xact_id()");
    runtime.block_on(begin).unwrap();
    let left_alone = AtomicI64::new(0);
    let progress = |progress: LoadProgress| {
        if progress.stage == LoadStage::Rows && left_alone.load(Ordering::Relaxed) == 0 {
            left_alone.store(database.number(LEFT_ALONE), Ordering::Relaxed);
        }
    };
    let options = LoadOptions { parallel: 6, progress: &progress };
    load(&database.target, &parameters(ONE_WAREHOUSE), &options).unwrap();
    assert_eq!(unfrozen(&database), Vec::<String>::new());
    assert_eq!(left_alone.into_inner(), 9, "autovacuum is kept away during the load");
    assert_eq!(database.number(LEFT_ALONE), 0);
    runtime.block_on(writer.batch_execute("ROLLBACK")).unwrap();
}

#[test]
fn pages_without_rows_are_not_waited_for() {
    let database = or_skip!(Database::empty(Engine::Postgresql));
    let unused = AtomicI64::new(0);
    // What connections leave that make a table longer at once, with rows after it, or a vacuum would cut it off. So many
    // changed rows have no room before it, and whether a page there is found by the server differs.
    let leave_a_page = || {
        let path = "SELECT current_setting('data_directory') || '/' || pg_relation_filepath('tpcc.new_order')";
        let file = File::options().write(true).open(database.text(path)).unwrap();
        file.set_len(file.metadata().unwrap().len() + 2 * 8192).unwrap();
        database.execute("UPDATE tpcc.new_order SET no_o_id = no_o_id WHERE ctid < '(3,0)'");
    };
    let progress = |progress: LoadProgress| {
        if progress.stage == LoadStage::Settle && unused.swap(1, Ordering::Relaxed) == 0 {
            leave_a_page();
        }
    };
    let options = LoadOptions { parallel: 2, progress: &progress };
    load(&database.target, &parameters(ONE_WAREHOUSE), &options).unwrap();
    let unseen =
        "SELECT relpages - relallvisible FROM pg_class WHERE oid = 'tpcc.new_order'::regclass";
    assert!(database.number(unseen) > 0, "the page is still there");
    let vacuums = "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'new_order'";
    let vacuums = database.number(vacuums);
    assert!(vacuums < 20, "{vacuums}: as often as if it could ever be visible to all");
    assert_eq!(unfrozen(&database), Vec::<String>::new());
}
