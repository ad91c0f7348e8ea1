//! The volumes of a design as a target: its devices, or its cluster.
//!
//! What a study lets join a cluster before there is load has joined: data moves to it during the simulation.

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{Cluster, ClusterProblem, HostId, HostUse};
use underlay_model::target::{
    ClusterTarget, ClusterTargetError, StoreTarget, Target, TargetFinished,
};
use underlay_model::{
    EXTENT_ALIGNMENT_BYTES, Operation, Request, ServiceFactor, Store, StoreDevice, StoreVolume,
};
use underlay_study::{
    ClusterPlan, DatastoreKind, DesignPlan, FaultAction, FaultPhase, FaultPlan, Plan,
};

/// Why a design has no volumes in virtual time.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StorageError {
    /// Real storage.
    #[error("design `{0}` is real storage, which has no model")]
    Real(String),
    /// A device that is smaller than what lies on it.
    #[error(
        "design `{design}`: its volumes need {needed} on device `{device}`, which has {capacity}"
    )]
    Room {
        /// Its name.
        design: String,
        /// The device.
        device: String,
        /// What the volumes take.
        needed: Bytes,
        /// What there is.
        capacity: Bytes,
    },
    /// A cluster that cannot be built, or hold the volumes.
    #[error("design `{design}`")]
    Cluster {
        /// Its name.
        design: String,
        /// Why.
        #[source]
        error: ClusterTargetError,
    },
    /// What joins its cluster does not fit there.
    #[error("design `{design}`: {reason}")]
    Growth {
        /// Its name.
        design: String,
        /// Why.
        reason: String,
    },
}

/// Whether a fault is that something joins a cluster before there is load: the only ones that are simulated.
pub fn joins_before_load(fault: &FaultPlan) -> bool {
    let joins = matches!(
        fault.action,
        FaultAction::DeviceAdded { .. } | FaultAction::DiskGroupAdded { .. }
    );
    joins && fault.phase == FaultPhase::Settle
}

/// The volumes of a design, in the order of the plan.
pub enum DesignTarget {
    /// On devices.
    Devices(Box<StoreTarget>),
    /// On a cluster.
    Cluster(Box<ClusterTarget>),
}

impl DesignTarget {
    /// Those of a design of a study, by its position there, with what joins its cluster before there is load.
    ///
    /// # Errors
    /// Real storage, clusters that cannot hold the volumes, and what cannot join.
    pub fn in_study(
        plan: &Plan,
        position: usize,
        seed: RootSeed,
    ) -> Result<DesignTarget, StorageError> {
        let design = &plan.designs[position];
        let mut target = DesignTarget::new(design, seed)?;
        let (DesignTarget::Cluster(grows), DatastoreKind::Cluster(cluster)) =
            (&mut target, &design.kind)
        else {
            return Ok(target);
        };
        let is_concerned =
            |fault: &&FaultPlan| joins_before_load(fault) && fault.designs.contains(&position);
        let mut joining: Vec<&FaultPlan> = plan.faults.iter().filter(is_concerned).collect();
        joining.sort_by_key(|fault| fault.at);
        for fault in joining {
            join(grows.cluster_mut(), cluster, fault)
                .map_err(|reason| StorageError::Growth { design: design.name.clone(), reason })?;
        }
        Ok(target)
    }

    /// Makes them.
    ///
    /// # Errors
    /// Real storage, and clusters that cannot hold the volumes.
    pub fn new(design: &DesignPlan, seed: RootSeed) -> Result<DesignTarget, StorageError> {
        match &design.kind {
            DatastoreKind::Path { .. } => Err(StorageError::Real(design.name.clone())),
            DatastoreKind::Emulated { devices, link, .. } => {
                let number = |name: &Option<String>| {
                    let is_it = |(known, _): &(String, _)| Some(known) == name.as_ref();
                    devices.iter().position(is_it).unwrap_or(0)
                };
                let volumes: Vec<StoreVolume> = design
                    .volumes
                    .iter()
                    .map(|volume| StoreVolume {
                        device: number(&volume.device),
                        capacity: volume.capacity,
                    })
                    .collect();
                for (number, (name, profile)) in devices.iter().enumerate() {
                    let on_it = volumes.iter().filter(|volume| volume.device == number);
                    // One after the other, each from the next boundary on.
                    let needed = on_it.fold(Bytes::ZERO, |used, volume| {
                        let base = used.0.next_multiple_of(EXTENT_ALIGNMENT_BYTES);
                        Bytes(base.saturating_add(volume.capacity.0))
                    });
                    if needed > profile.capacity {
                        return Err(StorageError::Room {
                            design: design.title.clone(),
                            device: name.clone(),
                            needed,
                            capacity: profile.capacity,
                        });
                    }
                }
                let devices: Vec<StoreDevice> = devices
                    .iter()
                    .map(|(name, profile)| StoreDevice {
                        name: name.clone(),
                        profile: profile.clone(),
                    })
                    .collect();
                let mut store = Store::new(&devices, &volumes, seed);
                store.set_link(*link);
                Ok(DesignTarget::Devices(Box::new(StoreTarget::new(store))))
            }
            DatastoreKind::Cluster(cluster) => {
                let of = |error| StorageError::Cluster { design: design.name.clone(), error };
                let volumes: Vec<_> = design.volumes.iter().map(|volume| volume.capacity).collect();
                let (spec, policy) = (&cluster.spec, cluster.policy);
                let target = ClusterTarget::new(spec, policy, &volumes, seed).map_err(of)?;
                let hosts: Vec<_> = design.volume_hosts.iter().copied().map(HostId).collect();
                let mut target = target.used_from(&hosts);
                if let Some(percent) = cluster.fill_percent {
                    target.fill(percent).map_err(of)?;
                }
                Ok(DesignTarget::Cluster(Box::new(target)))
            }
        }
    }
}

fn join(cluster: &mut Cluster, plan: &ClusterPlan, fault: &FaultPlan) -> Result<(), String> {
    let listed = |problems: Vec<ClusterProblem>| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    match &fault.action {
        FaultAction::DeviceAdded { group, profile } => {
            let id = cluster.find_group(group).ok_or(format!("no disk group `{group}`"))?;
            cluster.add_device(fault.at, id, profile).map(drop).map_err(listed)
        }
        FaultAction::DiskGroupAdded { host, group } => {
            let id = cluster.find_host(host).ok_or(format!("no host `{host}`"))?;
            cluster.add_group(fault.at, id, &plan.joining(group)).map(drop).map_err(listed)
        }
        _ => Ok(()),
    }
}

impl DesignTarget {
    /// For how long requests have occupied what the hosts of a cluster have, by their names; empty of single devices.
    pub fn host_uses(&self) -> Vec<(String, HostUse)> {
        let DesignTarget::Cluster(target) = self else { return Vec::new() };
        let cluster = target.cluster();
        let of = |host| Some((cluster.host_name(host)?.to_string(), cluster.host_use(host)?));
        cluster.hosts().filter_map(of).collect()
    }

    /// Lets writes and flushes of a volume take half as long. Says whether that can be: on single
    /// devices.
    pub fn halve_writes(&mut self, volume: usize) -> bool {
        let DesignTarget::Devices(target) = self else { return false };
        let half = ServiceFactor::new(0.5).unwrap_or_default();
        let of = |operation: &Operation| match operation {
            Operation::Write | Operation::Flush => half,
            Operation::Read | Operation::Discard => ServiceFactor::ONE,
        };
        let mut factors = vec![[ServiceFactor::ONE; 4]; volume + 1];
        factors[volume] = Operation::ALL.each_ref().map(of);
        target.store_mut().set_factors(Nanos::ZERO, factors);
        true
    }
}

impl Target for DesignTarget {
    fn submit(&mut self, now: Nanos, volume: usize, request: &Request, slot: u32) {
        match self {
            DesignTarget::Devices(target) => target.submit(now, volume, request, slot),
            DesignTarget::Cluster(target) => target.submit(now, volume, request, slot),
        }
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        match self {
            DesignTarget::Devices(target) => target.next_wakeup(),
            DesignTarget::Cluster(target) => target.next_wakeup(),
        }
    }

    fn advance(&mut self, now: Nanos, finished: &mut Vec<TargetFinished>) {
        match self {
            DesignTarget::Devices(target) => target.advance(now, finished),
            DesignTarget::Cluster(target) => target.advance(now, finished),
        }
    }

    fn advance_to_finish(&mut self, limit: Nanos, finished: &mut Vec<TargetFinished>) -> Nanos {
        match self {
            DesignTarget::Devices(target) => target.advance_to_finish(limit, finished),
            DesignTarget::Cluster(target) => target.advance_to_finish(limit, finished),
        }
    }
}
