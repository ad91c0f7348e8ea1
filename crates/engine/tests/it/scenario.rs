//! Small scenarios that the tests share.

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::{
    ClientSpec, DatabaseSpec, DemandProfile, EngineRun, EngineSpec, HostSpec, Load,
    PostgresqlSettings, Scenario, Simulation, VolumeUse, Window, WorkloadSpec,
};
use underlay_model::target::StoreTarget;
use underlay_model::{DeviceProfile, Store, StoreDevice, StoreVolume, builtin};
use underlay_workload::tpcc::{Entropy, Parameters, Tpcc};
use underlay_workload::transactional::Mix;

pub const LOG: Bytes = Bytes::from_mib(512);

/// A built-in device, large enough.
pub fn device(name: &str) -> DeviceProfile {
    let mut profile = builtin::find(name).expect("built in");
    profile.capacity = profile.capacity.max(Bytes::from_gib(64));
    profile
}

/// TPC-C on PostgreSQL, on one host, whose data and log lie on volumes 0 and 1.
pub fn tpcc(warehouses: u32, users: u32, cores: u32, buffers: Bytes) -> Scenario {
    let seed = RootSeed(7);
    let parameters = Parameters::new(warehouses, seed, Entropy::FULL).expect("a valid size");
    let settings = PostgresqlSettings {
        shared_buffers: buffers,
        page_cache: Bytes::from_mib(16),
        ..PostgresqlSettings::default()
    };
    let part = |volume, length| VolumeUse { volume, offset: Bytes::ZERO, length };
    let database = DatabaseSpec {
        name: "db".to_string(),
        host: 0,
        engine: EngineSpec::Postgresql(settings),
        workload: WorkloadSpec::Tpcc(Tpcc::new(parameters)),
        mix: Mix::Prescribed,
        demands: DemandProfile::tpcc_postgresql(),
        data: part(0, Bytes::from_gib(8)),
        log: part(1, LOG),
        load: Load::Closed { users, pacing: 0.0 },
        client: ClientSpec::default(),
    };
    let hosts = vec![HostSpec::new("host", cores)];
    Scenario { hosts, databases: vec![database], background: Vec::new() }
}

/// The settings of a scenario's only database.
pub fn postgresql(scenario: &mut Scenario) -> &mut PostgresqlSettings {
    let EngineSpec::Postgresql(settings) = &mut scenario.databases[0].engine else {
        unreachable!("the scenario is PostgreSQL's")
    };
    settings
}

/// Data and log on one device.
pub fn store(profile: &DeviceProfile, seed: u64) -> StoreTarget {
    let device = StoreDevice { name: "d".to_string(), profile: profile.clone() };
    let volume = |gib| StoreVolume { device: 0, capacity: Bytes::from_gib(gib) };
    StoreTarget::new(Store::new(&[device], &[volume(8), volume(1)], RootSeed(seed)))
}

/// Runs with warmed caches.
pub fn run(scenario: &Scenario, profile: &DeviceProfile, seconds: u64) -> EngineRun {
    let mut simulation =
        Simulation::new(scenario, store(profile, 1), RootSeed(3)).expect("a valid scenario");
    simulation.warm_caches(20_000);
    simulation.run(&Window { warm_up: Nanos::from_secs(2), measure: Nanos::from_secs(seconds) })
}
