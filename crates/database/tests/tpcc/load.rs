//! What a load leaves in the database.

use std::sync::Mutex;

use underlay_database::postgres::tpcc::{CheckMoment, LoadOptions, LoadStage, describe, load};
use underlay_workload::tpcc::population::{Table, order_line_count};

use crate::harness::{
    TWO_WAREHOUSES, database_or_skip, empty_database, loaded_database, parameters,
};

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

#[test]
fn a_load_passes_every_check() {
    let database = database_or_skip!(loaded_database(TWO_WAREHOUSES));
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
    let described = database.runtime.block_on(async {
        let client = database.target.connect().await.unwrap();
        describe(&client).await.unwrap()
    });
    assert_eq!(described.parameters, parameters(TWO_WAREHOUSES));
}

#[test]
fn many_loaders_load_the_same_rows() {
    let few = database_or_skip!(loaded_database(TWO_WAREHOUSES));
    let many = database_or_skip!(empty_database());
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
    let unfrozen = "SELECT count(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
         WHERE nspname = 'tpcc' AND relkind = 'r' AND relname <> 'underlay_population' \
           AND (relallvisible < relpages OR reltuples < 1)";
    assert_eq!((few.number(unfrozen), many.number(unfrozen)), (0, 0));
    // While they are used, autovacuum sees to them as the server has it.
    let altered = "SELECT count(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
         WHERE nspname = 'tpcc' AND relkind = 'r' AND reloptions::text LIKE '%autovacuum%'";
    assert_eq!((few.number(altered), many.number(altered)), (0, 0));
}
