//! sysbench's scripts on the engine model.

use crate::conservation::{check_on, sum};
use crate::mariadb::mariadb;
use crate::scenario::{self, device, run, tpcc};
use underlay_core::{Arrivals, Bytes, Nanos, RootSeed};
use underlay_engine::{
    DemandProfile, EngineRun, InnodbSettings, Load, Scenario, Simulation, Window, WorkloadSpec,
};

use underlay_workload::sysbench::{Distribution, Parameters, Script, Sysbench};

const USERS: u32 = 16;

pub fn workload(script: Script) -> WorkloadSpec {
    let parameters = Parameters::new(4, 1_000_000, RootSeed(1), Distribution::Uniform, script);
    WorkloadSpec::Sysbench(Sysbench::new(parameters.expect("a valid size")))
}

fn postgresql(script: Script, buffers: Bytes) -> Scenario {
    let mut scenario = tpcc(1, USERS, 4, buffers);
    scenario.databases[0].workload = workload(script);
    scenario.databases[0].demands = DemandProfile::sysbench_postgresql();
    scenario
}

fn show(scenario: &Scenario) -> EngineRun {
    run(scenario, &device("p4500-2000"), 4)
}

#[test]
fn laws_hold_for_every_script_on_both_engines() {
    for script in Script::ALL {
        let mut scenario = postgresql(script, Bytes::from_mib(256));
        let runs = check_on("p4500-2000", &scenario, 2);
        let inserted = sum(&runs, |database| database.log.inserted);
        assert_eq!(inserted > 0, script.writes(), "{script}: {inserted}");
        let innodb =
            InnodbSettings { buffer_pool_size: Bytes::from_mib(256), ..InnodbSettings::default() };
        scenario.databases[0].engine = mariadb(1, USERS, innodb).databases[0].engine.clone();
        scenario.databases[0].demands = DemandProfile::sysbench_mariadb();
        check_on("p4500-2000", &scenario, 2);
    }
}

#[test]
fn uniform_points_miss_what_does_not_fit() {
    // Per select a leaf of the key and a row: 10,900 leaves, of which the clock keeps the hot ones,
    // and 108,109 pages of rows.
    let run = show(&postgresql(Script::PointSelect, Bytes::from_mib(256)));
    let database = &run.databases[0];
    let misses = database.pool.misses as f64 / database.committed() as f64;
    let rows = 4_000_000.0 / 37.0;
    let leaves = 4_000_000.0 / 367.0;
    let frames = f64::from(256u32 << 20) / 8_192.0;
    // All leaves are in memory at best; at worst leaves and rows share the frames alike.
    let (best, worst) = (1.0 - (frames - leaves) / rows, 2.0 * (1.0 - frames / (rows + leaves)));
    assert!(misses > best - 0.01 && misses < worst, "{best} {misses} {worst}");
}

#[test]
fn ranges_are_read_ahead_and_points_are_not() {
    let bytes_per_read = |script| {
        let run = show(&postgresql(script, Bytes::from_mib(64)));
        let database = &run.databases[0];
        let requests = database.io.read.departures + database.io.read_ahead.departures;
        assert!(requests > 1_000, "{:?}", database.io);
        8_192.0 * (database.io.read.departures + database.ahead_pages) as f64 / requests as f64
    };
    // Ranges of 100 rows are four pages.
    let ranges = bytes_per_read(Script::ReadOnly);
    assert!((12_000.0..32_000.0).contains(&ranges), "{ranges}");
    let points = bytes_per_read(Script::PointSelect);
    assert!((8_192.0..9_000.0).contains(&points), "{points}");
}

#[test]
fn a_reader_logs_the_image_of_a_page_that_it_prunes() {
    let images_per_transaction = |script| {
        let mut scenario = postgresql(script, Bytes::from_gib(2));
        scenario.databases[0].load =
            Load::Open { users: USERS, rate_per_second: 400.0, arrivals: Arrivals::Poisson };
        scenario::postgresql(&mut scenario).checkpoint_timeout = Nanos::from_secs(2);
        let profile = device("p4800x-375");
        let mut simulation = Simulation::new(&scenario, scenario::store(&profile, 1), RootSeed(3))
            .expect("a valid scenario");
        simulation.warm_caches(20_000);
        let window = Window { warm_up: Nanos::from_secs(40), measure: Nanos::from_secs(10) };
        let run = simulation.run(&window);
        let database = &run.databases[0];
        // An image is a page without its free space.
        database.log.images as f64 / 8_000.0 / database.committed() as f64
    };
    // Both scripts change the same rows. `read_write` also reads 24 pages of rows, so one in 108,109 every 11 s: by then
    // checkpoints have begun. Three of its pages have old versions.
    let (alone, with_readers) =
        (images_per_transaction(Script::WriteOnly), images_per_transaction(Script::ReadWrite));
    let more = with_readers - alone;
    assert!((1.0..3.0).contains(&more), "{alone} {with_readers}");
}

#[test]
fn full_leaves_of_innodb_are_split_once() {
    let log_per_change = |rows: u32| {
        let mut scenario = mariadb(1, USERS, InnodbSettings::default());
        let script = Script::UpdateIndex;
        let parameters = Parameters::new(1, rows, RootSeed(1), Distribution::Uniform, script);
        let sysbench = Sysbench::new(parameters.expect("a valid size"));
        scenario.databases[0].workload = WorkloadSpec::Sysbench(sysbench);
        scenario.databases[0].demands = DemandProfile::sysbench_mariadb();
        let run = run(&scenario, &device("extreme-pro-480"), 1);
        let database = &run.databases[0];
        database.log.inserted as f64 / database.committed() as f64
    };
    // 50 leaves, which were all split before the window, and 10,000, of which most changes find a full one.
    let (few, many) = (log_per_change(50_000), log_per_change(10_000_000));
    assert!((1_000.0..2_000.0).contains(&few), "{few}");
    assert!((5_000.0..8_300.0).contains(&(many - few)), "{few} {many}");
}
