//! A database on a cluster: the same engine, another target.

use crate::scenario::tpcc;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::{EngineRun, Simulation, Window};
use underlay_model::cluster::{ClusterSettings, ClusterSpec, HostSpec, NetworkSpec, Policy, Stack};
use underlay_model::target::ClusterTarget;
use underlay_model::{DiskGroupSpec, builtin};

/// Five hosts, with volumes for data and log.
pub fn target(failures_to_tolerate: u8, stack: Stack) -> ClusterTarget {
    let profile = |name| builtin::find(name).expect("built in");
    let host = |index: usize| HostSpec {
        name: format!("h{index}"),
        fault_domain: None,
        groups: vec![DiskGroupSpec::new(
            "g",
            profile("p4500-2000"),
            vec![profile("5200eco-1920"); 2],
        )],
    };
    let spec = ClusterSpec {
        hosts: (0..5).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(20),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: ClusterSettings { stack, ..ClusterSettings::default() },
    };
    let policy = Policy { failures_to_tolerate, ..Policy::DEFAULT };
    let volumes = [Bytes::from_gib(8), Bytes::from_gib(1)];
    ClusterTarget::new(&spec, policy, &volumes, RootSeed(1)).expect("a cluster")
}

fn simulate(failures_to_tolerate: u8, cpu_per_io: Nanos) -> EngineRun {
    let target = target(failures_to_tolerate, Stack::NONE);
    let mut scenario = tpcc(16, 16, 4, Bytes::from_mib(256));
    scenario.databases[0].demands.cpu_per_io = cpu_per_io;
    let mut simulation = Simulation::new(&scenario, target, RootSeed(3)).expect("a valid scenario");
    simulation.warm_caches(20_000);
    simulation.run(&Window { warm_up: Nanos::from_secs(1), measure: Nanos::from_secs(4) })
}

#[test]
fn a_copy_more_costs_and_requests_use_the_processors() {
    let (one, two) = (simulate(0, Nanos::ZERO), simulate(2, Nanos::ZERO));
    assert!(one.databases[0].io.read.departures > 1_000);
    let log = |run: &EngineRun| run.databases[0].io.log_write.mean_stay();
    assert!(log(&two) > log(&one), "{} {}", log(&two), log(&one));
    assert!(two.headline(0) < one.headline(0), "{} {}", two.headline(0), one.headline(0));
    let heavy = simulate(0, Nanos::from_micros(100));
    assert!(heavy.headline(0) < 0.9 * one.headline(0));
    let work = |run: &EngineRun| run.hosts[0].used.done_ns / run.databases[0].committed() as f64;
    assert!(work(&heavy) > work(&one));
    // Requests that ended and those that began differ by what is on its way at the ends.
    let requests = heavy.databases[0].requests() as f64;
    let own = heavy.hosts[0].used.done_ns - requests * 100e3;
    let per_transaction = own / heavy.databases[0].committed() as f64;
    assert!((per_transaction / work(&one) - 1.0).abs() < 0.1, "{per_transaction} {}", work(&one));
}
