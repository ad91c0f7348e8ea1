//! The web shop on a real PostgreSQL and a real MariaDB: load, every step, a load with all checks, a server that is killed
//! under it, and every invariant broken on purpose.

mod broken;
mod steps;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use underlay_core::RootSeed;
use underlay_database::dvdstore::{
    DvdStoreConnector, DvdStoreError, Session, Tally, check, describe, drop_tables, identity, load,
    tally,
};
use underlay_database::{Engine, ErrorClass, Target};
use underlay_driver::{DriveSpec, DriveSummary, Driver, Mix};
use underlay_testbed::{TestServer, execute, or_skip};
use underlay_workload::dvdstore::population::Table;
use underlay_workload::dvdstore::{Behaviour, DvdStore, DvdStoreAccounting, Parameters, Step};

use crate::support::{commits, small, work_until};

const USERS: u32 = 4;

/// 200 customers, 120 orders, 100 products, 2,000 reviews.
fn parameters() -> Parameters {
    Parameters::new("0.1MB".parse().unwrap(), RootSeed(5))
}

fn wait<T>(host: &TestServer, work: impl Future<Output = T>) -> T {
    host.bed.runtime.block_on(work)
}

/// The first column of all rows of a statement as text.
fn texts(host: &TestServer, sql: &str) -> Vec<String> {
    underlay_testbed::texts(&shop(host), sql)
}

fn number(host: &TestServer, sql: &str) -> i64 {
    underlay_testbed::number(&shop(host), sql)
}

/// The database, where the shop's tables have no schema.
fn shop(host: &TestServer) -> Target {
    let options =
        (host.target().engine == Engine::Postgresql).then(|| "-c search_path=dvdstore".to_string());
    Target { session_options: options, ..host.target() }
}

fn tally_now(host: &TestServer) -> Tally {
    wait(host, tally(&host.target())).unwrap()
}

fn assert_clean(host: &TestServer, run: Option<(&Tally, &DvdStoreAccounting)>, when: &str) {
    let results = wait(host, check(&host.target(), &parameters(), run)).unwrap();
    assert_eq!(results.len(), if run.is_some() { 34 } else { 26 });
    let ids: BTreeSet<&str> = results.iter().map(|result| result.title).collect();
    assert_eq!(ids.len(), results.len());
    for result in results {
        assert_eq!(result.violation, None, "{}, {when}", result.id);
    }
}

#[test]
fn a_shop_is_driven_on_postgresql() {
    let host = or_skip!(TestServer::start(Engine::Postgresql, small(Engine::Postgresql)));
    scenes(host);
}

#[test]
fn a_shop_is_driven_on_mariadb() {
    let mut host = or_skip!(TestServer::start(Engine::Mariadb, small(Engine::Mariadb)));
    host.database = Some("shop");
    scenes(host);
}

/// One server for all scenes: starting it costs more than most of them.
fn scenes(mut host: TestServer) {
    a_load_makes_the_shop(&host);
    steps::every_step_does_what_it_says(&host);
    purchases_at_once_lose_no_sale(&host);
    a_load_is_driven_and_accounted_for(&host);
    a_killed_server_keeps_what_it_acknowledged(&mut host);
    broken::every_broken_invariant_is_caught(&host);
    only_what_underlay_made_is_removed(&host);
}

fn a_load_makes_the_shop(host: &TestServer) {
    let target = host.target();
    let absent = wait(host, describe(&target));
    assert!(matches!(absent, Err(DvdStoreError::NotLoaded)), "{absent:?}");
    let report = load(&target, &parameters(), 5).unwrap();
    let rows: u64 = Table::ALL.iter().map(|table| table.rows(&parameters())).sum();
    assert_eq!(report.report.rows, rows);
    assert!(report.stored_bytes > report.report.bytes, "{report:?}");
    let again = load(&target, &parameters(), 1);
    assert!(matches!(again, Err(DvdStoreError::AlreadyLoaded)), "{again:?}");
    assert_eq!(wait(host, describe(&target)).unwrap().parameters, parameters());
    assert_clean(host, None, "after the load");
    let before = tally_now(host);
    assert_eq!(
        (before.counts.customers, before.last_customer, before.counts.orders),
        (200, 200, 120)
    );
    let patient = Behaviour { search_depth: 7, ..Behaviour::default() };
    assert_ne!(
        identity(target.engine, &parameters()),
        identity(target.engine, &Parameters { behaviour: patient, ..parameters() })
    );
    // Another seed or size is another shop.
    let other = Parameters { seed: RootSeed(6), ..parameters() };
    let refused = wait(host, Session::connect(&target, &other)).err().unwrap();
    assert!(refused.message.contains("different size, seed or version"), "{refused}");
}

/// Many users buy the same few products at once: nobody waits in a circle, and no sale is lost.
fn purchases_at_once_lose_no_sale(host: &TestServer) {
    let weights =
        underlay_driver::Weights::parse("purchase=1", &underlay_workload::dvdstore::SHAPE).unwrap();
    let before = tally_now(host);
    let summary = drive(host, 16, Mix::Weighted(weights), 50);
    let counts = summary.totals.of(Step::Purchase.index());
    assert!(counts.committed > 50, "{:?}", summary.totals.samples);
    assert_eq!((counts.failed, counts.unknown), (0, 0), "{:?}", summary.totals.samples);
    let deadlocks = counts.errors.of(ErrorClass::Deadlock);
    assert_eq!(deadlocks, 0, "{:?}", summary.totals.samples);
    assert_clean(host, Some((&before, &summary.accounting)), "after purchases at once");
}

fn drive(host: &TestServer, users: u32, mix: Mix, least: u64) -> DriveSummary<DvdStoreAccounting> {
    let last = tally_now(host).last_customer;
    let workload = DvdStore { parameters: parameters(), first_new_customer: last + 1 };
    let connector = DvdStoreConnector::new(host.target(), workload);
    let driver =
        Driver::start(DriveSpec::new(RootSeed(9), users), connector, Instant::now()).unwrap();
    if mix != Mix::Prescribed {
        driver.set_mix(mix).unwrap();
    }
    driver.set_users(users);
    work_until(&driver, least);
    driver.stop()
}

fn a_load_is_driven_and_accounted_for(host: &TestServer) {
    // Twice with one seed: names of new customers must not meet.
    for _ in 0..2 {
        let before = tally_now(host);
        let counted = commits::counted(host);
        let summary = drive(host, USERS, Mix::Prescribed, 50);
        commits::assert_said_truly(host, counted, &summary);
        let accounting = &summary.accounting;
        assert!(accounting.acknowledged.orders > 50, "{:?}", summary.totals.samples);
        assert_eq!(accounting.names_taken, 0);
        for step in Step::ALL {
            let counts = summary.totals.of(step.index());
            assert_eq!(
                (counts.failed, counts.unknown),
                (0, 0),
                "{step:?} {:?}",
                summary.totals.samples
            );
            let is_rare = matches!(step, Step::NewMember | Step::NewReview | Step::RateReview);
            assert!(counts.committed > 0 || is_rare, "{step:?} never came");
        }
        let purchases = summary.totals.of(Step::Purchase.index());
        assert_eq!(purchases.committed, accounting.acknowledged.orders);
        assert_clean(host, Some((&before, accounting)), "after a load");
    }
}

fn a_killed_server_keeps_what_it_acknowledged(host: &mut TestServer) {
    let before = tally_now(host);
    let workload =
        DvdStore { parameters: parameters(), first_new_customer: before.last_customer + 1 };
    let connector = DvdStoreConnector::new(host.target(), workload);
    let driver =
        Driver::start(DriveSpec::new(RootSeed(3), USERS), connector, Instant::now()).unwrap();
    driver.set_users(USERS);
    work_until(&driver, 5);
    host.server.kill().unwrap();
    host.server.start().unwrap();
    std::thread::sleep(Duration::from_millis(400));
    let summary = driver.stop();
    assert!(!summary.outages.is_empty());
    assert!(summary.accounting.acknowledged.orders > 5, "{:?}", summary.totals.samples);
    assert_clean(host, Some((&before, &summary.accounting)), "after the server was killed");
}

fn only_what_underlay_made_is_removed(host: &TestServer) {
    let target = host.target();
    wait(host, drop_tables(&target)).unwrap();
    let again = wait(host, drop_tables(&target));
    assert!(matches!(again, Err(DvdStoreError::NotLoaded)), "{again:?}");
    // Somebody else's tables are neither loaded over, nor driven, nor removed.
    let (server, schema) = match target.engine {
        Engine::Postgresql => (target.clone(), "dvdstore"),
        Engine::Mariadb => (target.with_database(""), "shop"),
    };
    execute(&server, &format!("CREATE SCHEMA {schema}"));
    execute(&server, &format!("CREATE TABLE {schema}.orders (orderid int)"));
    assert!(matches!(load(&target, &parameters(), 1), Err(DvdStoreError::Foreign)));
    assert!(matches!(wait(host, drop_tables(&target)), Err(DvdStoreError::Foreign)));
    let refused = wait(host, Session::connect(&target, &parameters())).err().unwrap();
    assert_eq!((refused.class, refused.commit_unknown), (ErrorClass::Other, false));
    assert!(refused.message.contains("no shop that underlay made"), "{refused}");
    assert_eq!(number(host, "SELECT count(*) FROM orders"), 0);
}
