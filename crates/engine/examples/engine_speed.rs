//! How fast the simulation is: simulated transactions per CPU-second, everything cached and with
//! misses.
//!
//! `cargo run --release -p underlay-engine --example engine_speed`

use std::error::Error;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::{
    ClientSpec, DatabaseSpec, DemandProfile, EngineSpec, HostSpec, Load, PostgresqlSettings,
    Scenario, Simulation, VolumeUse, Window, WorkloadSpec,
};
use underlay_model::target::StoreTarget;
use underlay_model::{Store, StoreDevice, StoreVolume, builtin};
use underlay_workload::tpcc::{Entropy, Parameters, Tpcc};
use underlay_workload::transactional::Mix;

const DATA: Bytes = Bytes::from_gib(100);
const LOG: Bytes = Bytes::from_gib(4);

fn scenario(warehouses: u32, buffers: Bytes) -> Result<Scenario, Box<dyn Error>> {
    let parameters = Parameters::new(warehouses, RootSeed(1), Entropy::FULL)?;
    let settings = PostgresqlSettings {
        shared_buffers: buffers,
        max_wal_size: Bytes::from_gib(16),
        page_cache: Bytes::from_mib(256),
        ..PostgresqlSettings::default()
    };
    let database = DatabaseSpec {
        name: "db".to_string(),
        host: 0,
        engine: EngineSpec::Postgresql(settings),
        workload: WorkloadSpec::Tpcc(Tpcc::new(parameters)),
        mix: Mix::Prescribed,
        demands: DemandProfile::tpcc_postgresql(),
        data: VolumeUse { volume: 0, offset: Bytes::ZERO, length: DATA },
        log: VolumeUse { volume: 1, offset: Bytes::ZERO, length: LOG },
        load: Load::Closed { users: 64, pacing: 0.0 },
        client: ClientSpec::default(),
    };
    Ok(Scenario { hosts: vec![HostSpec::new("host", 16)], databases: vec![database] })
}

/// Processor time of this process in seconds.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = builtin::find("p4500-2000").ok_or("no such device")?;
    println!("buffers        NOPM   reads/tx   simulated transactions per CPU-second");
    for (warehouses, buffers) in [(100, Bytes::from_gib(16)), (400, Bytes::from_gib(4))] {
        let device = StoreDevice { name: "d".to_string(), profile: device.clone() };
        let volume = |capacity| StoreVolume { device: 0, capacity };
        let store = Store::new(&[device], &[volume(DATA), volume(LOG)], RootSeed(1));
        let scenario = scenario(warehouses, buffers)?;
        let simulation = Simulation::new(&scenario, StoreTarget::new(store), RootSeed(1));
        let mut simulation = simulation.map_err(|problems| problems[0].to_string())?;
        simulation.warm_caches(500_000);
        let begun = cpu_seconds();
        let window = Window { warm_up: Nanos::from_secs(5), measure: Nanos::from_secs(20) };
        let run = simulation.run(&window);
        let used = cpu_seconds() - begun;
        let database = &run.databases[0];
        let transactions = database.committed();
        println!(
            "{buffers:>7} {:>11.0} {:>10.2} {:>12.0}",
            run.headline(0),
            database.io.read.arrivals as f64 / transactions as f64,
            // The warm-up costs as much per second.
            transactions as f64 * 25.0 / 20.0 / used
        );
    }
    Ok(())
}
