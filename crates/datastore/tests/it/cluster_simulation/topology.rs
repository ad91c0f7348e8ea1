//! Random clusters: small devices and small stripe units, so that every corner is met within a few requests.

use rand::RngExt;
use rand_pcg::Pcg64;
use underlay_core::{Bytes, Nanos};
use underlay_model::cluster::{
    Checksum, ClusterSettings, ClusterSpec, HostSpec, Method, NetworkSpec, Policy,
};
use underlay_model::{DeviceProfile, DiskGroupSpec, builtin};

/// Whether acknowledged writes are durable in this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    Protected,
    Volatile,
}

/// A random cluster of 1 to 8 hosts.
pub fn cluster(random: &mut Pcg64, power: Power) -> ClusterSpec {
    let hosts = [1, 3, 3, 4, 4, 5, 6, 7, 8][random.random_range(0..9)];
    let racks = random.random_range(0..4) == 0;
    let hosts = (0..hosts)
        .map(|index| HostSpec {
            name: format!("h{index}"),
            fault_domain: (racks && index % 2 == 0).then(|| format!("r{}", index / 4)),
            groups: (0..random.random_range(1..=2))
                .map(|group| disk_group(random, &format!("g{group}"), power))
                .collect(),
        })
        .collect();
    ClusterSpec {
        hosts,
        network: NetworkSpec {
            latency: Nanos::from_micros(random.random_range(0..200)),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: settings(random),
    }
}

/// A random disk group.
pub fn disk_group(random: &mut Pcg64, name: &str, power: Power) -> DiskGroupSpec {
    let capacity = (0..random.random_range(1..=3))
        .map(|_| {
            let mib = random.random_range(4..=24);
            device(random, Bytes::from_mib(mib), Power::Protected)
        })
        .collect();
    DiskGroupSpec::new(name, device(random, Bytes::from_mib(4), power), capacity)
}

/// A random device.
pub fn device(random: &mut Pcg64, capacity: Bytes, power: Power) -> DeviceProfile {
    let names = ["dc1500m-960", "dc500m-1920", "5200eco-1920", "null"];
    let name = match power {
        Power::Protected => names[random.random_range(0..names.len())],
        Power::Volatile => names[random.random_range(0..3)],
    };
    let mut profile = builtin::find(name).expect("built in");
    profile.capacity = capacity;
    profile.power_loss_protected = power == Power::Protected;
    profile
}

fn settings(random: &mut Pcg64) -> ClusterSettings {
    ClusterSettings {
        stripe_unit: Bytes::from_kib(64),
        component_limit: Bytes::from_kib(random.random_range(2..40) * 64),
        repair_delay: Nanos::from_millis([5, 100, 2_000][random.random_range(0..3)]),
        failure_detection: Nanos::from_millis([1, 20, 200][random.random_range(0..3)]),
        device_timeout: Nanos::from_millis([5, 50][random.random_range(0..2)]),
        resync_slice: Bytes::from_kib([4, 16, 64][random.random_range(0..3)]),
        resync_window: random.random_range(1..=8),
        rebalance_interval: Nanos::from_millis(random.random_range(5..200)),
        rebalance_variance_percent: [None, Some(10), Some(30)][random.random_range(0..3)],
        owner_overhead: Nanos::from_micros(random.random_range(0..20)),
        ..ClusterSettings::default()
    }
}

/// A random policy.
pub fn policy(random: &mut Pcg64) -> Policy {
    let (failures_to_tolerate, method) = [
        (0, Method::Mirror),
        (1, Method::Mirror),
        (1, Method::Mirror),
        (2, Method::Mirror),
        (1, Method::ErasureCoding),
        (1, Method::ErasureCoding),
        (2, Method::ErasureCoding),
    ][random.random_range(0..7)];
    Policy {
        failures_to_tolerate,
        method,
        stripe_width: [1, 1, 2, 3][random.random_range(0..4)],
        iops_limit: (random.random_range(0..8) == 0).then_some(5_000),
        checksum: if random.random_range(0..5) == 0 { Checksum::Off } else { Checksum::On },
        space_reservation_percent: [0, 0, 50, 100][random.random_range(0..4)],
    }
}
