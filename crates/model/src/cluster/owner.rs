//! The owner of a volume: the host that sends the volume's requests to its components.
//!
//! A new volume is owned by the host of its first component, which keeps half of a mirrored volume's traffic off the
//! network. If a virtual machine uses the volume from another host, the driver sets that host as the owner. An owner that
//! loses its connection to the volume is replaced by another host.

use super::cluster::Cluster;
use super::ids::{HostId, VolumeId};
use underlay_core::Nanos;

/// Why a volume cannot be used from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerProblem {
    /// No such volume.
    #[error("no volume of that number exists: list the volumes")]
    NoVolume,
    /// No such host.
    #[error("host {0} does not exist")]
    NoHost(u32),
    /// The host cannot reach the volume.
    #[error("host {0} cannot reach the volume: return the host or end the partition first")]
    Unreachable(u32),
}

/// The host of a machine that has one volume: each host gets as many machines, and every round is shifted by one, because
/// placement goes round the hosts too and a machine's place has nothing to do with its data's.
///
/// # Panics
/// If there are no hosts.
pub fn host_of_machine(machine: usize, hosts: usize) -> HostId {
    HostId(((machine + machine / hosts) % hosts) as u32)
}

impl Cluster {
    /// From now on, requests of the volume start at that host.
    ///
    /// # Errors
    /// When there is no such volume or host, or the host cannot reach the volume.
    pub fn set_owner(
        &mut self,
        now: Nanos,
        volume: VolumeId,
        host: HostId,
    ) -> Result<(), OwnerProblem> {
        self.run_until(now);
        let Some(state) = self.storage.objects.volume(volume) else {
            return Err(OwnerProblem::NoVolume);
        };
        let side = state.object.side;
        if host.0 as usize >= self.storage.inventory.hosts().len() {
            return Err(OwnerProblem::NoHost(host.0));
        }
        if side.is_some() && self.storage.membership.seen(host) != side {
            return Err(OwnerProblem::Unreachable(host.0));
        }
        if let Some(state) = self.storage.objects.volume_mut(volume) {
            state.owner = host;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::OwnerProblem;
    use crate::builtin;
    use crate::cluster::{
        Cluster, ClusterEvent, ClusterSettings, ClusterSpec, HostId, HostSpec, NetworkSpec, Policy,
        VolumeId,
    };
    use crate::disk_group::DiskGroupSpec;
    use crate::request::Request;
    use crate::store::RequestId;
    use underlay_core::{Bytes, Nanos, RootSeed};

    const ONE_WAY: Nanos = Nanos::from_millis(1);

    fn cluster() -> (Cluster, VolumeId) {
        let profile = builtin::find("null").expect("built in");
        let host = |name: &str| HostSpec {
            name: name.to_string(),
            fault_domain: None,
            groups: vec![DiskGroupSpec::new("group", profile.clone(), vec![profile.clone()])],
        };
        let spec = ClusterSpec {
            hosts: vec![host("a"), host("b")],
            network: NetworkSpec {
                latency: ONE_WAY,
                bytes_per_second: 1_000_000_000_000,
                divisor: 1,
            },
            settings: ClusterSettings::default(),
        };
        let mut cluster = Cluster::new(spec, RootSeed(1)).expect("a valid cluster");
        let policy = Policy { failures_to_tolerate: 0, ..Policy::DEFAULT };
        let volume = cluster.create_volume(Nanos::ZERO, "v", Bytes::from_mib(64), policy);
        (cluster, volume.expect("one copy fits"))
    }

    fn read_time(cluster: &mut Cluster, volume: VolumeId) -> Nanos {
        cluster.submit(Nanos::ZERO, volume, &Request::read(0, 4096), RequestId(1));
        let mut events = Vec::new();
        cluster.advance(Nanos::from_secs(1), &mut events);
        let done = events.iter().find_map(|event| match event {
            ClusterEvent::Finished(done) => Some(done.at),
            _ => None,
        });
        done.expect("a read ends")
    }

    #[test]
    fn a_volume_used_from_another_host_crosses_the_network() {
        let (mut near, volume) = cluster();
        let owner = near.volume_status(volume).expect("it exists").owner;
        let other = HostId(1 - owner.0);
        assert!(read_time(&mut near, volume) < ONE_WAY);
        let (mut far, volume) = cluster();
        far.set_owner(Nanos::ZERO, volume, other).expect("reachable");
        assert_eq!(far.volume_status(volume).expect("it exists").owner, other);
        assert!(read_time(&mut far, volume) >= ONE_WAY + ONE_WAY);
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let (mut cluster, volume) = cluster();
        let refused = cluster.set_owner(Nanos::ZERO, volume, HostId(2));
        assert_eq!(refused, Err(OwnerProblem::NoHost(2)));
        let refused = cluster.set_owner(Nanos::ZERO, VolumeId(7), HostId(0));
        assert_eq!(refused, Err(OwnerProblem::NoVolume));
    }
}
