//! The web shop on the engine model.

use crate::conservation::check;
use crate::mariadb::mariadb;
use crate::scenario::{device, run, tpcc};
use underlay_core::{Bytes, RootSeed};
use underlay_engine::{DemandProfile, EngineRun, InnodbSettings, Scenario, WorkloadSpec};
use underlay_workload::dvdstore::{DvdStore, Parameters, Size, Step};

const USERS: u32 = 16;

fn shop() -> WorkloadSpec {
    let size: Size = "40MB".parse().expect("a size");
    WorkloadSpec::DvdStore(DvdStore::new(Parameters::new(size, RootSeed(5))))
}

fn postgresql(buffers: Bytes) -> Scenario {
    let mut scenario = tpcc(1, USERS, 4, buffers);
    scenario.databases[0].workload = shop();
    scenario.databases[0].demands = DemandProfile::dvdstore_postgresql();
    scenario
}

fn share(run: &EngineRun, step: Step) -> f64 {
    let types = &run.databases[0].types;
    types[step.index()].committed as f64 / types[Step::Purchase.index()].committed as f64
}

#[test]
fn laws_hold_on_both_engines() {
    let settings =
        InnodbSettings { buffer_pool_size: Bytes::from_mib(256), ..InnodbSettings::default() };
    let mut innodb = mariadb(1, USERS, settings);
    innodb.databases[0].workload = shop();
    innodb.databases[0].demands = DemandProfile::dvdstore_mariadb();
    for scenario in [postgresql(Bytes::from_mib(256)), innodb] {
        let run = run(&scenario, &device("p4500-2000"), 6);
        check(&run, u64::from(USERS));
        let database = &run.databases[0];
        assert!(database.pool.misses > 1_000, "1.8 GB do not fit: {:?}", database.pool);
        assert!(database.log.inserted > 0);
    }
}

#[test]
fn visits_have_the_steps_that_the_shop_prescribes() {
    let run = run(&postgresql(Bytes::from_gib(4)), &device("null"), 20);
    // One purchase ends a visit; four of five visits begin with a login, the others register.
    let logins = share(&run, Step::Login);
    assert!((0.72..=0.88).contains(&logins), "{logins}");
    let browses = share(&run, Step::BrowseCategory)
        + share(&run, Step::BrowseActor)
        + share(&run, Step::BrowseTitle);
    assert!((2.7..=3.3).contains(&browses), "three searches on average, {browses}");
    assert!((share(&run, Step::Prices) - 1.0).abs() < 0.05);
    // A product has 0 to 500 pieces, a line takes 1 to 3 and an order has five: 2 % are refused.
    let purchases = &run.databases[0].types[Step::Purchase.index()];
    let refused = purchases.rolled_back as f64 / purchases.committed as f64;
    assert!((0.01..0.03).contains(&refused), "{refused}");
}

#[test]
fn equal_seeds_give_equal_results() {
    let scenario = postgresql(Bytes::from_mib(64));
    let runs = [(); 2].map(|()| run(&scenario, &device("dc500m-1920"), 3));
    assert_eq!(runs[0], runs[1]);
}
