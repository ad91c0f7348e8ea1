//! Clusters for the benchmarks: all hosts alike, one disk group each.

use std::collections::BTreeMap;

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_datastore::{ClusterStorage, DatastoreSpec};
use underlay_model::cluster::{
    ClusterSettings, ClusterSpec, HostSpec, Method, NetworkSpec, Policy,
};
use underlay_model::{DeviceProfile, DiskGroupSpec, builtin};

/// What the random numbers of every cluster derive from.
pub const SEED: RootSeed = RootSeed(1);

/// A built-in profile.
pub fn profile(name: &str) -> DeviceProfile {
    builtin::find(name).expect("built in")
}

/// Copies by mirroring.
pub fn mirrored(failures_to_tolerate: u8) -> Policy {
    Policy { failures_to_tolerate, method: Method::Mirror, ..Policy::DEFAULT }
}

/// 3 data and 1 parity.
pub fn raid_5() -> Policy {
    Policy { failures_to_tolerate: 1, method: Method::ErasureCoding, ..Policy::DEFAULT }
}

/// Hosts with one cache and one capacity device of these profiles.
pub fn of_devices(
    hosts: usize,
    cache: &DeviceProfile,
    capacity: &DeviceProfile,
    network: NetworkSpec,
) -> ClusterSpec {
    let host = |index: usize| {
        let group = DiskGroupSpec::new(&format!("g{index}"), cache.clone(), vec![capacity.clone()]);
        HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
    };
    ClusterSpec {
        hosts: (0..hosts).map(host).collect(),
        network,
        settings: ClusterSettings::default(),
    }
}

/// Devices and a network that take no time: what is left is what the emulator itself costs.
pub fn null(hosts: usize) -> ClusterSpec {
    let network =
        NetworkSpec { latency: Nanos::ZERO, bytes_per_second: 1_000_000_000_000, divisor: 1 };
    let mut device = profile("null");
    device.capacity = Bytes::from_gib(64);
    of_devices(hosts, &device, &device, network)
}

/// A datastore of it, all volumes with one policy.
pub fn storage(spec: ClusterSpec, policy: Policy) -> DatastoreSpec {
    let storage = ClusterStorage { spec, policy, policies: BTreeMap::new(), fill_percent: None };
    DatastoreSpec::Cluster { storage: Box::new(storage), seed: SEED, backing_directory: None }
}
