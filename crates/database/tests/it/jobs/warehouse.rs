//! The data warehouse on both engines: every answer against the evaluator, refreshes, and what breakages show.

use underlay_core::RootSeed;
use underlay_database::warehouse::{
    Described, Step, WarehouseError, check, describe, drop_schema, load, power_run, throughput_run,
};
use underlay_database::{Engine, Target};
use underlay_testbed::{TestServer, execute, or_skip};
use underlay_workload::warehouse::{Population, Refreshed, Scale};

use super::harness::durable;

#[test]
fn warehouses_on_postgresql() {
    let running = or_skip!(TestServer::start(Engine::Postgresql, durable(Engine::Postgresql)));
    let target = running.server.target();
    exercise(&target, "CREATE SCHEMA warehouse", "DROP SCHEMA warehouse", "warehouse.");
}

#[test]
fn warehouses_on_mariadb() {
    let running = or_skip!(TestServer::start(Engine::Mariadb, durable(Engine::Mariadb)));
    let target = running.server.target();
    execute(&target, "CREATE DATABASE shop");
    exercise(&target.with_database("shop"), "CREATE TABLE theirs (a int)", "DROP TABLE theirs", "");
}

fn exercise(target: &Target, theirs: &str, remove: &str, schema: &str) {
    let population = Population { scale: Scale::from_hundredths(1).unwrap(), seed: RootSeed(42) };
    assert!(matches!(describe(target), Err(WarehouseError::NotLoaded)));
    execute(target, theirs);
    assert!(matches!(load(target, &population, 2), Err(WarehouseError::Foreign)));
    assert!(matches!(drop_schema(target), Err(WarehouseError::Foreign)));
    execute(target, remove);

    let report = load(target, &population, 2).unwrap();
    assert!(matches!(load(target, &population, 2), Err(WarehouseError::AlreadyLoaded)));
    let described = describe(target).unwrap();
    assert_eq!(described, Described { population, refreshed: Refreshed::default() });
    assert!(report.rows > 80_000, "{report:?}");
    assert_eq!(violations(target), Vec::<String>::new());

    runs_ask_everything(target, &population);
    assert_eq!(violations(target), Vec::<String>::new());
    breakages_are_found(target, schema);
    drop_schema(target).unwrap();
    assert!(matches!(describe(target), Err(WarehouseError::NotLoaded)));
}

fn violations(target: &Target) -> Vec<String> {
    let checked = check(target, &describe(target).unwrap()).unwrap();
    assert_eq!(checked.len(), 8 + 10 + 22);
    let violated = |checked: &underlay_database::warehouse::Checked| {
        checked.violation.as_ref().map(|violation| format!("{}: {violation}", checked.title))
    };
    checked.iter().filter_map(violated).collect()
}

fn runs_ask_everything(target: &Target, population: &Population) {
    let power = power_run(target, population, &|| false).unwrap();
    let steps: Vec<Step> = power.steps.iter().map(|(_, step, ..)| *step).collect();
    assert_eq!((steps[0], steps[1], steps[23]), (Step::Insert, Step::Query(14), Step::Delete));
    assert!(Step::all().all(|step| power.latency_ns(step).count() == 1));
    assert!(power.geometric_mean().is_some_and(|mean| mean <= power.duration));

    let throughput = throughput_run(target, population, 2, &|| false).unwrap();
    assert_eq!((throughput.queries(), throughput.steps.len()), (44, 48));
    assert!(Step::all().all(|step| throughput.latency_ns(step).count() == 2));
    let refreshed = describe(target).unwrap().refreshed;
    assert_eq!(refreshed, Refreshed { inserted: 3, deleted: 3 });

    let stopped = power_run(target, population, &|| true).unwrap();
    assert!(stopped.is_stopped && stopped.steps.is_empty());
}

/// Each breakage shows where it should. All at once: a check of everything takes its time.
fn breakages_are_found(target: &Target, schema: &str) {
    for sql in [
        format!("UPDATE {schema}lineitem SET l_quantity = l_quantity + 1 WHERE l_linenumber = 1"),
        format!("DELETE FROM {schema}lineitem WHERE l_linenumber = 7"),
        format!("UPDATE {schema}orders SET o_totalprice = o_totalprice + 0.01"),
        format!("UPDATE {schema}supplier SET s_nationkey = s_nationkey + 25 WHERE s_suppkey = 9"),
    ] {
        execute(target, &sql);
    }
    let found = violations(target);
    for title in [
        "rows of lineitem: ",
        "answer of Q1: row 1, column 3: ",
        "orders are the sum of their lines: not for ",
        "suppliers have their nation: not for 1 rows",
    ] {
        assert!(found.iter().any(|found| found.starts_with(title)), "{title}: {found:#?}");
    }
}
