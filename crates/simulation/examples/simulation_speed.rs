//! How many simulated I/Os one CPU-second gives. Run with `--release`.
//!
//! Prints, per target, simulated requests per second of processor time of this process.

use std::time::Instant;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::{Store, StoreDevice, StoreVolume, builtin};
use underlay_simulation::{ClientSpec, RunSpec, StoreTarget, simulate};
use underlay_workload::block::{Concurrency, Pace};

fn main() {
    for (profile, name, queue_depth) in [
        ("dc1500m-960", "4k-random-read", 32),
        ("dc1500m-960", "4k-random-70-30", 32),
        ("p4800x-375", "4k-random-read", 1024),
        ("5200eco-1920", "oracle", 32),
    ] {
        let working_set = Bytes::from_gib(8);
        let device = StoreDevice {
            name: "device".to_string(),
            profile: builtin::find(profile).expect("built in"),
        };
        let volume = StoreVolume { device: 0, capacity: working_set };
        let mut target = StoreTarget::new(Store::new(&[device], &[volume], RootSeed(1)));
        let workload = underlay_study::find_io_profile(name).expect("built in").merged();
        let client = ClientSpec {
            name: "client".to_string(),
            volume: 0,
            workload: &workload,
            working_set,
            concurrency: Concurrency { threads: 1, queue_depth },
            pace: Pace::CLOSED,
        };
        let spec = RunSpec {
            begin: Nanos::ZERO,
            warm_up: Nanos::ZERO,
            measure: Nanos::from_secs(3600),
            requests_max: 5_000_000,
        };
        let started = Instant::now();
        let result = simulate(&mut target, &[client], &spec, RootSeed(2));
        let seconds = started.elapsed().as_secs_f64();
        let rate = result.completed as f64 / seconds / 1e6;
        println!(
            "{profile:14} {name:18} QD {queue_depth:5}: {rate:6.2} M simulated I/Os per second"
        );
    }
}
