//! A cluster as a target: volumes of one policy, each used by a machine on one of the hosts.
//!
//! Machines are assigned to hosts round-robin, and their volumes are owned there. Instructions for the data plane are dropped: there
//! are no bytes here.

use super::target::{Target, TargetFinished, TargetOutcome};
use crate::cluster::{
    Cluster, ClusterEvent, ClusterProblem, ClusterSpec, GroupId, HostId, Outcome, PlacementRefusal,
    Policy, VolumeId, host_of_machine,
};
use crate::{Request, RequestId};
use underlay_core::{Bytes, Nanos, RootSeed};

/// Why a cluster cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClusterTargetError {
    /// The specification cannot be used.
    #[error("the cluster cannot be built: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Spec(Vec<ClusterProblem>),
    /// A volume cannot be placed.
    #[error("volume {number} of {capacity} cannot be placed")]
    Placement {
        /// Which volume, from 1.
        number: usize,
        /// Its size.
        capacity: Bytes,
        /// Why not.
        #[source]
        refusal: PlacementRefusal,
    },
    /// Other data has no place.
    #[error("the capacity devices cannot be filled to {percent} %")]
    Fill {
        /// The share asked for.
        percent: u8,
        /// Why not.
        #[source]
        refusal: PlacementRefusal,
    },
}

/// What the write buffers of all disk groups hold, and have passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WriteBuffers {
    /// Used share of the fullest one, in percent.
    pub fullest_percent: f64,
    /// Bytes written into all of them.
    pub written: Bytes,
    /// Bytes that have arrived on capacity devices.
    pub destaged: Bytes,
}

/// A cluster with volumes.
pub struct ClusterTarget {
    cluster: Cluster,
    volumes: Vec<VolumeId>,
    events: Vec<ClusterEvent>,
}

impl ClusterTarget {
    /// Builds the cluster and creates the volumes, each used by a machine of its own ([`host_of_machine`]).
    ///
    /// # Errors
    /// When the specification cannot be used or a volume cannot be placed.
    pub fn new(
        spec: &ClusterSpec,
        policy: Policy,
        volumes: &[Bytes],
        seed: RootSeed,
    ) -> Result<ClusterTarget, ClusterTargetError> {
        let mut cluster = Cluster::new(spec.clone(), seed).map_err(ClusterTargetError::Spec)?;
        let mut created = Vec::with_capacity(volumes.len());
        for (index, capacity) in volumes.iter().enumerate() {
            let name = format!("volume-{}", index + 1);
            let id = cluster.create_volume(Nanos::ZERO, &name, *capacity, policy);
            let refused = |refusal| ClusterTargetError::Placement {
                number: index + 1,
                capacity: *capacity,
                refusal,
            };
            let id = id.map_err(refused)?;
            created.push(id);
        }
        let hosts: Vec<HostId> =
            (0..volumes.len()).map(|index| host_of_machine(index, spec.hosts.len())).collect();
        let target = ClusterTarget { cluster, volumes: created, events: Vec::new() };
        Ok(target.used_from(&hosts))
    }

    /// The same, each volume used from that host.
    ///
    /// # Panics
    /// If a host does not exist, or cannot reach the volume.
    pub fn used_from(mut self, hosts: &[HostId]) -> ClusterTarget {
        for (volume, host) in self.volumes.iter().zip(hosts) {
            let moved = self.cluster.set_owner(Nanos::ZERO, *volume, *host);
            // On a new cluster every host reaches every volume.
            moved.expect("a host of the new cluster");
        }
        self
    }

    /// Lets other data take that share of every capacity device.
    ///
    /// # Errors
    /// When it has no place.
    pub fn fill(&mut self, percent: u8) -> Result<(), ClusterTargetError> {
        let filled = self.cluster.fill(Nanos::ZERO, percent);
        filled.map_err(|refusal| ClusterTargetError::Fill { percent, refusal })
    }

    /// The cluster, for its counters.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The same, to read what counts as it is read.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// The write buffers, at the moment that the cluster has reached.
    pub fn write_buffers(&mut self) -> WriteBuffers {
        let groups: Vec<GroupId> = self.cluster.groups().map(|(group, _, _)| group).collect();
        let mut all = WriteBuffers::default();
        for group in groups {
            let Some(counters) = self.cluster.group_counters(group) else { continue };
            let buffer = counters.write_buffer;
            all.fullest_percent = all.fullest_percent.max(100.0 - buffer.free_percent);
            all.written.0 += buffer.account.admitted_bytes;
            all.destaged.0 += buffer.account.destaged_bytes;
        }
        all
    }

    /// Volumes of which something lies on the host of the machine that uses them: what goes there takes no network.
    pub fn volumes_at_home(&self) -> usize {
        let is_at_home = |volume: &&VolumeId| {
            let status = self.cluster.volume_status(**volume);
            status.is_some_and(|it| it.components.iter().any(|part| part.host == it.owner))
        };
        self.volumes.iter().filter(is_at_home).count()
    }

    fn collect(&mut self, finished: &mut Vec<TargetFinished>) {
        for event in self.events.drain(..) {
            let ClusterEvent::Finished(done) = event else { continue };
            finished.push(TargetFinished {
                // Slots are 32 bits wide, and were widened by `submit`.
                slot: done.request.0 as u32,
                at: done.at,
                queue: done.queue,
                outcome: match done.outcome {
                    Outcome::Ok => TargetOutcome::Ok,
                    Outcome::Error(_) => TargetOutcome::Failed,
                },
            });
        }
    }
}

impl Target for ClusterTarget {
    fn submit(&mut self, now: Nanos, volume: usize, request: &Request, slot: u32) {
        self.cluster.submit(now, self.volumes[volume], request, RequestId(u64::from(slot)));
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        self.cluster.next_wakeup()
    }

    fn advance(&mut self, now: Nanos, finished: &mut Vec<TargetFinished>) {
        self.cluster.advance(now, &mut self.events);
        self.collect(finished);
    }

    fn advance_to_finish(&mut self, limit: Nanos, finished: &mut Vec<TargetFinished>) -> Nanos {
        loop {
            let now = self.cluster.advance_to_event(limit, &mut self.events);
            self.collect(finished);
            if now >= limit || !finished.is_empty() {
                // What else happens at that moment comes before whatever is done about it.
                self.advance(now, finished);
                return now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClusterTarget, ClusterTargetError};
    use crate::cluster::{ClusterSettings, ClusterSpec, HostSpec, NetworkSpec, Policy};
    use crate::{DiskGroupSpec, builtin};
    use underlay_core::{Bytes, Nanos, RootSeed};

    #[test]
    fn a_filled_cluster_begins_with_other_data_on_every_device() {
        let mut profile = builtin::find("null").expect("built in");
        profile.capacity = Bytes::from_gib(1);
        let host = |index: usize| HostSpec {
            name: format!("h{index}"),
            fault_domain: None,
            groups: vec![DiskGroupSpec::new("g", profile.clone(), vec![profile.clone(); 2])],
        };
        let spec = ClusterSpec {
            hosts: (0..3).map(host).collect(),
            network: NetworkSpec { latency: Nanos(1), bytes_per_second: 1 << 30, divisor: 1 },
            settings: ClusterSettings { components_per_host: 400, ..ClusterSettings::default() },
        };
        let volumes = [Bytes::from_mib(64)];
        let target = || {
            ClusterTarget::new(&spec, Policy::DEFAULT, &volumes, RootSeed(1)).expect("a cluster")
        };
        let mut filled = target();
        filled.fill(81).expect("there is room");
        for device in filled.cluster().devices() {
            let percent = device.used.0 * 100 / device.capacity.0;
            assert!((81..=83).contains(&percent), "{percent} %");
        }
        assert_eq!(filled.cluster().volumes().count(), 1);
        let mut refused = spec.clone();
        refused.settings.components_per_host = 100;
        let built = ClusterTarget::new(&refused, Policy::DEFAULT, &volumes, RootSeed(1));
        let refusal = built.expect("a cluster").fill(81).expect_err("too many components");
        assert!(matches!(refusal, ClusterTargetError::Fill { percent: 81, .. }), "{refusal}");
    }
}
