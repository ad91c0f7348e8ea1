//! Whether the capacity devices of a cluster hold what a design asks of them: its volumes with the
//! copies or the parity of their policy, in addition to other data.
//!
//! Volumes count with their full size, though clusters store only what was written: a database that
//! grows into its volume must still fit. Not here: which device holds what.

use underlay_core::Bytes;
use underlay_model::cluster::{Policy, SetKind};
use underlay_study::{ClusterPlan, VolumePlan};

/// Room on the capacity devices of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The volumes, as the database sees them.
    pub volumes: Bytes,
    /// The same with copies or parity.
    pub stored: Bytes,
    /// Other data, which is there from the beginning.
    pub others: Bytes,
    /// What the capacity devices have.
    pub devices: Bytes,
}

impl Space {
    /// Used share of the capacity devices once the volumes are full, in percent.
    pub fn full_percent(&self) -> f64 {
        (self.stored.0 as f64 + self.others.0 as f64) / self.devices.0.max(1) as f64 * 100.0
    }
}

/// The room that volumes take on a cluster.
pub fn space(cluster: &ClusterPlan, volumes: &[VolumePlan]) -> Space {
    let groups = cluster.spec.hosts.iter().flat_map(|host| &host.groups);
    let devices: u64 = groups.flat_map(|group| &group.capacity).map(|it| it.capacity.0).sum();
    let asked: u64 = volumes.iter().map(|volume| volume.capacity.0).sum();
    let others = f64::from(cluster.fill_percent.unwrap_or(0)) / 100.0 * devices as f64;
    Space {
        volumes: Bytes(asked),
        stored: Bytes((asked as f64 * stored_per_byte(&cluster.policy)) as u64),
        others: Bytes(others as u64),
        devices: Bytes(devices),
    }
}

/// Bytes on devices per byte of a volume: 2 with one copy more, 4/3 and 3/2 with parity.
fn stored_per_byte(policy: &Policy) -> f64 {
    match policy.set_kind() {
        SetKind::Mirror { copies } => f64::from(copies),
        SetKind::Parity { data, parity } => f64::from(data + parity) / f64::from(data),
    }
}

#[cfg(test)]
mod tests {
    use super::stored_per_byte;
    use underlay_model::cluster::{Method, Policy};

    #[test]
    fn copies_and_parity_take_room() {
        let of = |method, failures_to_tolerate| {
            stored_per_byte(&Policy { method, failures_to_tolerate, ..Policy::DEFAULT })
        };
        assert_eq!([0, 1, 2].map(|failures| of(Method::Mirror, failures)), [1.0, 2.0, 3.0]);
        assert!((of(Method::ErasureCoding, 1) - 4.0 / 3.0).abs() < 1e-9);
        assert!((of(Method::ErasureCoding, 2) - 1.5).abs() < 1e-9);
    }
}
