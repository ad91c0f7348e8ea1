//! Better hardware is never worse, over random scenarios.
//!
//! Tolerances: two runs draw the same transactions, but meet in another order; over some thousand
//! transactions the rates of equal systems differ by about 1 % (one standard deviation of a count
//! of 10,000), so that 4 % is no difference.

use crate::mariadb::mariadb;
use crate::scenario::{device, run, store, tpcc};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::{EngineRun, InnodbSettings, Scenario, Simulation, Window};

const TOLERANCE: f64 = 0.04;

fn scenario(is_innodb: bool, warehouses: u32, users: u32, cores: u32, buffers: Bytes) -> Scenario {
    let mut scenario = if is_innodb {
        let settings = InnodbSettings {
            buffer_pool_size: buffers,
            log_file_size: Bytes::from_mib(256),
            ..InnodbSettings::default()
        };
        mariadb(warehouses, users, settings)
    } else {
        tpcc(warehouses, users, cores, buffers)
    };
    scenario.hosts[0].cores = cores;
    scenario
}

/// Work since the first moment, when nothing is dirty. Without that, a system that reaches the limits on dirty pages
/// before the window begins would have less in it than a slower one, which reaches them later.
fn rate_from_start(scenario: &Scenario) -> f64 {
    let target = store(&device("p4500-2000"), 1);
    let mut simulation = Simulation::new(scenario, target, RootSeed(3)).expect("a valid scenario");
    simulation.warm_caches(20_000);
    let window = Window { warm_up: Nanos::ZERO, measure: Nanos::from_secs(5) };
    simulation.run(&window).headline(0)
}

fn misses(run: &EngineRun) -> f64 {
    let pool = &run.databases[0].pool;
    pool.misses as f64 / (pool.hits + pool.misses) as f64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, ..ProptestConfig::default() })]

    #[test]
    fn a_faster_device_never_lowers_throughput(
        is_innodb in proptest::bool::ANY,
        warehouses in 1u32..20,
        users in 1u32..40,
        cores in 1u32..8,
        mib in 24u64..1_000,
    ) {
        let scenario = scenario(is_innodb, warehouses, users, cores, Bytes::from_mib(mib));
        let rates = ["hdd-7200", "extreme-pro-480", "p4500-2000", "null"]
            .map(|name| run(&scenario, &device(name), 3).headline(0));
        for pair in rates.windows(2) {
            prop_assert!(pair[1] >= pair[0] * (1.0 - TOLERANCE), "{:?}", rates);
        }
    }

    #[test]
    fn more_memory_never_raises_the_share_of_misses(
        is_innodb in proptest::bool::ANY,
        warehouses in 1u32..20,
        users in 1u32..40,
        mib in 16u64..500,
    ) {
        let shares = [1, 2, 4].map(|factor| {
            let buffers = Bytes::from_mib(mib * factor);
            let scenario = scenario(is_innodb, warehouses, users, 4, buffers);
            misses(&run(&scenario, &device("p4500-2000"), 3))
        });
        for pair in shares.windows(2) {
            prop_assert!(pair[1] <= pair[0] * (1.0 + TOLERANCE) + 1e-4, "{:?}", shares);
        }
    }

    #[test]
    fn more_and_faster_cores_never_lower_throughput(
        warehouses in 1u32..20,
        users in 1u32..40,
        cores in 1u32..8,
        mib in 24u64..1_000,
    ) {
        let slow = tpcc(warehouses, users, cores, Bytes::from_mib(mib));
        let mut faster = slow.clone();
        faster.hosts[0].speed = 1.5;
        let mut more = slow.clone();
        more.hosts[0].cores *= 2;
        let [slow, faster, more] = [&slow, &faster, &more].map(rate_from_start);
        prop_assert!(faster >= slow * (1.0 - TOLERANCE), "{faster} after {slow}");
        prop_assert!(more >= slow * (1.0 - TOLERANCE), "{more} after {slow}");
    }
}
