//! How many simulated I/Os one CPU-second gives, devices and clusters. Run with `--release`.
//!
//! `cargo run --release -p underlay-simulation --example simulation_speed [-- RAID-5]`. Prints, per target, simulated requests
//! per second of this process; a word selects the lines that hold it. The last column is a digest of all answers: a change that
//! makes simulations cheaper must leave it alone.

use std::time::Instant;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{
    ClusterSettings, ClusterSpec, HostSpec, Method, NetworkSpec, Policy, Stack, VolumeId,
};
use underlay_model::{DiskGroupSpec, Store, StoreDevice, StoreVolume, builtin};
use underlay_simulation::{
    ClientSpec, ClusterTarget, RunSpec, SimulationResult, StoreTarget, Target, simulate,
};
use underlay_workload::block::{Concurrency, Pace};

const WORKING_SET: Bytes = Bytes::from_gib(8);

fn device(profile: &str) -> StoreTarget {
    let device = StoreDevice {
        name: "device".to_string(),
        profile: builtin::find(profile).expect("built in"),
    };
    let volume = StoreVolume { device: 0, capacity: WORKING_SET };
    StoreTarget::new(Store::new(&[device], &[volume], RootSeed(1)))
}

/// Four hosts with one NVMe cache and two SATA devices each.
fn cluster(policy: Policy, stack: Stack) -> ClusterTarget {
    let profile = |name| builtin::find(name).expect("built in");
    let host = |index: usize| {
        let capacity = vec![profile("dc500m-1920"), profile("dc500m-1920")];
        HostSpec {
            name: format!("h{index}"),
            fault_domain: None,
            groups: vec![DiskGroupSpec::new("g", profile("dc1500m-960"), capacity)],
        }
    };
    let spec = ClusterSpec {
        hosts: (0..4).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(30),
            bytes_per_second: 3_125_000_000,
            divisor: 1,
        },
        settings: ClusterSettings { stack, ..ClusterSettings::default() },
    };
    let target = ClusterTarget::new(&spec, policy, &[WORKING_SET], RootSeed(1));
    let mut target = target.expect("it fits");
    let volumes: Vec<VolumeId> = target.cluster().volumes().collect();
    for volume in volumes {
        target.cluster_mut().assume_written(volume).expect("it fits");
    }
    target
}

fn measure<T: Target>(
    target: &str,
    build: impl FnOnce() -> T,
    profile: &str,
    queue_depth: u32,
    requests_max: u64,
) {
    let name = format!("{target:14} {profile:18} QD {queue_depth:5}");
    if !std::env::args().skip(1).all(|word| name.contains(&word)) {
        return;
    }
    let workload = underlay_study::find_io_profile(profile).expect("built in").merged();
    let client = ClientSpec {
        name: "client".to_string(),
        volume: 0,
        workload: &workload,
        working_set: WORKING_SET,
        concurrency: Concurrency { threads: 1, queue_depth },
        pace: Pace::CLOSED,
    };
    let measure = Nanos::from_secs(3_600);
    let spec = RunSpec { begin: Nanos::ZERO, warm_up: Nanos::ZERO, measure, requests_max };
    let mut target = build();
    let started = Instant::now();
    let result = simulate(&mut target, &[client], &spec, RootSeed(2));
    let rate = result.completed as f64 / started.elapsed().as_secs_f64() / 1e6;
    let digest = digest(&result);
    println!("{name}: {rate:6.2} M simulated I/Os per second, digest {digest:016x}");
}

/// Of all that was measured.
fn digest(result: &SimulationResult) -> u64 {
    let mut digest = result.end.0;
    let mut add = |byte: u8| digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
    for latencies in result.totals() {
        for histogram in [latencies.response, latencies.service, latencies.queue] {
            histogram.encode().into_iter().for_each(&mut add);
        }
    }
    digest
}

fn main() {
    for (profile, workload, queue_depth) in [
        ("dc1500m-960", "4k-random-read", 32),
        ("dc1500m-960", "4k-random-70-30", 32),
        ("p4800x-375", "4k-random-read", 1024),
        ("5200eco-1920", "oracle", 32),
    ] {
        measure(profile, || device(profile), workload, queue_depth, 5_000_000);
    }
    let parity = Policy { method: Method::ErasureCoding, ..Policy::DEFAULT };
    let stack = Stack::copying(Nanos::from_micros(5), false);
    for (name, policy, stack) in [
        ("RAID-1", Policy::DEFAULT, Stack::NONE),
        ("RAID-1, stack", Policy::DEFAULT, stack),
        ("RAID-5", parity, Stack::NONE),
    ] {
        for workload in ["4k-random-read", "4k-random-70-30"] {
            measure(name, || cluster(policy, stack), workload, 32, 2_000_000);
        }
    }
}
