//! Whether a volume can ever be full: on the devices of a cluster, and on this host.
//!
//! Volumes are thin, so together they may be overcommitted, which causes a warning. A volume that would not fit even
//! alone is refused. Where components can be placed is decided by the model.

use underlay_core::Bytes;
use underlay_model::cluster::{ClusterSpec, Policy};

use crate::spec::full_size;

/// A volume of a cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promised {
    pub(super) capacity: Bytes,
    pub(super) policy: Policy,
}

impl Promised {
    /// What all its copies take when it is full.
    fn full(&self) -> u128 {
        u128::from(full_size(&self.policy, self.capacity).0)
    }

    /// What is set aside for it.
    fn reserved(&self) -> u128 {
        self.full() * u128::from(self.policy.space_reservation_percent) / 100
    }
}

/// What all capacity devices hold together.
fn raw(cluster: &ClusterSpec) -> u128 {
    let devices = cluster.hosts.iter().flat_map(|host| &host.groups).flat_map(|it| &it.capacity);
    devices.map(|device| u128::from(device.capacity.0)).sum()
}

/// Why the cluster can never hold the new volume, beside what is reserved for the others.
pub(super) fn never_held(
    cluster: &ClusterSpec,
    new: &Promised,
    others: &[Promised],
) -> Option<String> {
    let (raw, needed) = (raw(cluster), new.full());
    let reserved: u128 = others.iter().map(Promised::reserved).sum();
    if needed + reserved <= raw {
        return None;
    }
    let reserved = match reserved {
        0 => String::new(),
        reserved => format!(", of which {} are reserved for other volumes", bytes(reserved)),
    };
    Some(format!(
        "a volume of {} with {} takes {} when it is full, and the cluster's capacity devices have {}{reserved}; make it \
         smaller, tolerate fewer failures, or use a design with more or larger devices",
        new.capacity,
        new.policy,
        bytes(needed),
        bytes(raw),
    ))
}

/// What to know when a cluster's volumes are promised more than there is.
pub(super) fn overcommitted(cluster: &ClusterSpec, all: &[Promised]) -> Option<String> {
    let (raw, needed) = (raw(cluster), all.iter().map(Promised::full).sum::<u128>());
    (needed > raw).then(|| {
        format!(
            "the volumes of this datastore take {} when all are full, and the cluster's capacity devices have {}: \
             writes that find no space will fail with I/O errors",
            bytes(needed),
            bytes(raw),
        )
    })
}

fn bytes(count: u128) -> Bytes {
    Bytes(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{Promised, never_held, overcommitted};
    use underlay_core::Bytes;
    use underlay_model::cluster::{
        ClusterSettings, ClusterSpec, HostSpec, Method, NetworkSpec, Policy,
    };
    use underlay_model::{DiskGroupSpec, builtin};

    /// Four hosts with one capacity device each.
    fn cluster() -> (ClusterSpec, u64) {
        let device = builtin::find("dc500m-1920").unwrap();
        let cache = builtin::find("dc1500m-960").unwrap();
        let each = device.capacity.0;
        let host = |number: u32| HostSpec {
            name: format!("host-{number}"),
            fault_domain: None,
            groups: vec![DiskGroupSpec::new("group-1", cache.clone(), vec![device.clone()])],
        };
        let spec = ClusterSpec {
            hosts: (1..=4).map(host).collect(),
            network: NetworkSpec {
                latency: underlay_core::Nanos::from_micros(20),
                bytes_per_second: 1_000_000_000,
                divisor: 1,
            },
            settings: ClusterSettings::default(),
        };
        (spec, each)
    }

    fn volume(capacity: u64, policy: Policy) -> Promised {
        Promised { capacity: Bytes(capacity / 4096 * 4096), policy }
    }

    #[test]
    fn copies_parity_and_reservations_count() {
        let (cluster, each) = cluster();
        let mirror = Policy::DEFAULT;
        let parity = Policy { method: Method::ErasureCoding, ..Policy::DEFAULT };
        // Of 4 devices, two copies leave 2, and a parity in four leaves 3.
        assert_eq!(never_held(&cluster, &volume(2 * each, mirror), &[]), None);
        let said = never_held(&cluster, &volume(2 * each + 8192, mirror), &[]).expect("too large");
        assert!(said.contains("RAID-1") && !said.contains("reserved"), "{said}");
        assert!(never_held(&cluster, &volume(3 * each - (1 << 20), parity), &[]).is_none());
        assert!(never_held(&cluster, &volume(3 * each + (1 << 20), parity), &[]).is_some());

        let thin = volume(2 * each, mirror);
        let half = Policy { space_reservation_percent: 50, ..mirror };
        let thick = volume(2 * each, half);
        assert_eq!(never_held(&cluster, &thin, &[thin, thin]), None);
        assert_eq!(never_held(&cluster, &volume(each, mirror), &[thick]), None);
        let said = never_held(&cluster, &volume(each + 8192, mirror), &[thick]).expect("too large");
        assert!(said.contains("are reserved for other volumes"), "{said}");
        assert_eq!(never_held(&cluster, &volume(u64::MAX, mirror), &[]).map(|_| ()), Some(()));
    }

    #[test]
    fn promising_more_than_there_is_is_said() {
        let (cluster, each) = cluster();
        let volume = volume(each, Policy::DEFAULT);
        assert_eq!(overcommitted(&cluster, &[volume, volume]), None);
        assert!(overcommitted(&cluster, &[volume, volume, volume]).is_some());
    }
}
