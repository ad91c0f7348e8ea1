//! The web shop on a real PostgreSQL and a real MariaDB: load, every step, a load with all checks, a server that is killed
//! under it, and every invariant broken on purpose.

mod broken;
mod steps;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::support::{TestServer, commits, work_until};
use mysql_async::prelude::Queryable;
use underlay_core::RootSeed;
use underlay_database::dvdstore::{
    DvdStoreConnector, DvdStoreError, Session, Tally, check, describe, drop_tables, identity, load,
    tally,
};
use underlay_database::managed::Listen;
use underlay_database::mariadb::connect;
use underlay_database::{Engine, ErrorClass};
use underlay_driver::{DriveSpec, DriveSummary, Driver, Mix};
use underlay_host::skip;
use underlay_workload::dvdstore::population::Table;
use underlay_workload::dvdstore::{Behaviour, DvdStore, DvdStoreAccounting, Parameters, Step};

const USERS: u32 = 4;

/// 200 customers, 120 orders, 100 products, 2,000 reviews.
fn parameters() -> Parameters {
    Parameters::new("0.1MB".parse().unwrap(), RootSeed(5))
}

fn wait<T>(host: &TestServer, work: impl Future<Output = T>) -> T {
    host.runtime.block_on(work)
}

/// The first column of all rows of a statement as text.
fn texts(host: &TestServer, sql: &str) -> Vec<String> {
    let target = host.target();
    wait(host, async {
        match target.engine {
            Engine::Postgresql => {
                let client = target.connect().await.unwrap();
                client.batch_execute("SET search_path = dvdstore").await.unwrap();
                let messages = client.simple_query(sql).await.unwrap();
                let text = |message: &tokio_postgres::SimpleQueryMessage| match message {
                    tokio_postgres::SimpleQueryMessage::Row(row) => {
                        Some(row.get(0).unwrap_or_default().to_string())
                    }
                    _ => None,
                };
                messages.iter().filter_map(text).collect()
            }
            Engine::Mariadb => {
                let mut conn = connect(&target).await.unwrap();
                let rows: Vec<mysql_async::Row> = conn.query(sql).await.unwrap();
                conn.disconnect().await.unwrap();
                rows.into_iter()
                    .map(|row| row.get::<Option<String>, _>(0).flatten().unwrap_or_default())
                    .collect()
            }
        }
    })
}

fn number(host: &TestServer, sql: &str) -> i64 {
    let texts = texts(host, sql);
    assert_eq!(texts.len(), 1, "{sql}: {texts:?}");
    texts[0].parse().unwrap_or_else(|_| panic!("{sql}: {}", texts[0]))
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
    let Some(host) = TestServer::start(Engine::Postgresql, Listen::UnixSocket) else {
        skip!("no PostgreSQL server programs found")
    };
    scenes(host);
}

#[test]
fn a_shop_is_driven_on_mariadb() {
    let Some(mut host) = TestServer::start(Engine::Mariadb, Listen::UnixSocket) else {
        skip!("no MariaDB server programs found")
    };
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
    wait(host, async {
        match target.engine {
            Engine::Postgresql => {
                let client = target.connect().await.unwrap();
                let sql = "CREATE SCHEMA dvdstore; CREATE TABLE dvdstore.orders (orderid integer)";
                client.batch_execute(sql).await.unwrap();
            }
            Engine::Mariadb => {
                let mut conn = connect(&target.with_database("")).await.unwrap();
                conn.query_drop("CREATE DATABASE shop").await.unwrap();
                conn.query_drop("CREATE TABLE shop.orders (orderid int)").await.unwrap();
                conn.disconnect().await.unwrap();
            }
        }
    });
    assert!(matches!(load(&target, &parameters(), 1), Err(DvdStoreError::Foreign)));
    assert!(matches!(wait(host, drop_tables(&target)), Err(DvdStoreError::Foreign)));
    let refused = wait(host, Session::connect(&target, &parameters())).err().unwrap();
    assert_eq!((refused.class, refused.commit_unknown), (ErrorClass::Other, false));
    assert!(refused.message.contains("no shop that underlay made"), "{refused}");
    assert_eq!(number(host, "SELECT count(*) FROM orders"), 0);
}
