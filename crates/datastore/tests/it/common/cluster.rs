//! Clusters for tests: hosts with one disk group of two small flash devices each.

use std::collections::BTreeMap;

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_datastore::{ClusterStorage, DatastoreSpec};
use underlay_model::cluster::{
    ClusterSettings, ClusterSpec, HostSpec, Method, NetworkSpec, Policy,
};
use underlay_model::{DiskGroupSpec, builtin};

/// What is behind a volume.
pub fn policy(failures_to_tolerate: u8, method: Method) -> Policy {
    Policy { failures_to_tolerate, method, ..Policy::DEFAULT }
}

/// Hosts `h0`, `h1`, ... with a disk group `g` of one cache and two capacity devices.
pub fn cluster(hosts: usize) -> ClusterSpec {
    let device = |name: &str, gibibytes| {
        let mut profile = builtin::find(name).unwrap();
        profile.capacity = Bytes::from_gib(gibibytes);
        profile
    };
    let host = |index: usize| {
        let capacity = vec![device("dc500m-1920", 16), device("dc500m-1920", 16)];
        let group = DiskGroupSpec::new(&format!("g{index}"), device("dc1500m-960", 4), capacity);
        HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
    };
    ClusterSpec {
        hosts: (0..hosts).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(20),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: ClusterSettings {
            // Failures are noticed, and repaired, within the patience of a test.
            failure_detection: Nanos::from_millis(200),
            device_timeout: Nanos::from_millis(500),
            repair_delay: Nanos::from_secs(2),
            ..ClusterSettings::default()
        },
    }
}

/// All volumes with one policy on a cluster.
pub fn spec(hosts: usize, policy: Policy) -> DatastoreSpec {
    DatastoreSpec::Cluster {
        storage: Box::new(ClusterStorage {
            spec: cluster(hosts),
            policy,
            policies: BTreeMap::new(),
            fill_percent: None,
        }),
        seed: RootSeed(7),
        backing_directory: None,
    }
}
