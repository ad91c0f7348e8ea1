//! How fast the simulation is: simulated transactions per CPU-second, everything cached, with misses,
//! and on a cluster.
//!
//! `cargo run --release -p underlay-engine --example engine_speed`

use std::error::Error;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::{
    ClientSpec, DatabaseSpec, DemandProfile, EngineSpec, HostSpec, Load, PostgresqlSettings,
    Scenario, Simulation, VolumeUse, Window, WorkloadSpec,
};
use underlay_model::cluster::{self, ClusterSettings, ClusterSpec, NetworkSpec, Policy};
use underlay_model::target::{ClusterTarget, StoreTarget, Target};
use underlay_model::{DeviceProfile, DiskGroupSpec, Store, StoreDevice, StoreVolume, builtin};
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
    let hosts = vec![HostSpec::new("host", 16)];
    Ok(Scenario { hosts, databases: vec![database], background: Vec::new() })
}

/// Processor time of this process in seconds.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn device(name: &str) -> Result<DeviceProfile, Box<dyn Error>> {
    Ok(builtin::find(name).ok_or_else(|| format!("there is no device {name}"))?)
}

fn single_device() -> Result<StoreTarget, Box<dyn Error>> {
    let device = StoreDevice { name: "d".to_string(), profile: device("p4500-2000")? };
    let volume = |capacity| StoreVolume { device: 0, capacity };
    let store = Store::new(&[device], &[volume(DATA), volume(LOG)], RootSeed(1));
    Ok(StoreTarget::new(store))
}

/// Four hosts with two copies of everything.
fn cluster() -> Result<ClusterTarget, Box<dyn Error>> {
    let host = |index: u32| -> Result<cluster::HostSpec, Box<dyn Error>> {
        let capacity = vec![device("5200eco-1920")?; 2];
        let groups = vec![DiskGroupSpec::new("g", device("p4500-2000")?, capacity)];
        Ok(cluster::HostSpec { name: format!("h{index}"), fault_domain: None, groups })
    };
    let spec = ClusterSpec {
        hosts: (0..4).map(host).collect::<Result<_, _>>()?,
        network: NetworkSpec {
            latency: Nanos::from_micros(20),
            bytes_per_second: 5_000_000_000,
            divisor: 1,
        },
        settings: ClusterSettings::default(),
    };
    Ok(ClusterTarget::new(&spec, Policy::DEFAULT, &[DATA, LOG], RootSeed(1))?)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "storage        buffers        NOPM   I/Os per tx   simulated transactions per CPU-second"
    );
    measure("one device", (100, Bytes::from_gib(16)), single_device()?)?;
    measure("one device", (400, Bytes::from_gib(4)), single_device()?)?;
    measure("cluster", (400, Bytes::from_gib(4)), cluster()?)
}

/// Simulates a database with so many warehouses in so large a cache, and prints a row.
fn measure(
    storage: &str,
    (warehouses, buffers): (u32, Bytes),
    target: impl Target,
) -> Result<(), Box<dyn Error>> {
    let scenario = scenario(warehouses, buffers)?;
    let simulation = Simulation::new(&scenario, target, RootSeed(1));
    let mut simulation = simulation.map_err(|problems| problems[0].to_string())?;
    simulation.warm_caches(500_000);
    let begun = cpu_seconds();
    let window = Window { warm_up: Nanos::from_secs(5), measure: Nanos::from_secs(20) };
    let run = simulation.run(&window);
    let used = cpu_seconds() - begun;
    let database = &run.databases[0];
    let transactions = database.committed();
    println!(
        "{storage:<12} {buffers:>9} {:>11.0} {:>13.1} {:>12.0}",
        run.headline(0),
        database.requests() as f64 / transactions as f64,
        // The warm-up costs as much per second.
        transactions as f64 * 25.0 / 20.0 / used
    );
    Ok(())
}
