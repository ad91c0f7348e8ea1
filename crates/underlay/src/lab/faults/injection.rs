//! Faults of the plan as the datastore knows them.

use std::sync::PoisonError;

use underlay_core::RootSeed;
use underlay_datastore::{ClusterChange, ClusterFault, DatastoreError};
use underlay_study::{DatastoreKind, DesignPlan, FaultAction};

use crate::lab::samplers::SharedDatastore;

/// Lets a fault happen to the datastore. What it means for the database is the caller's business.
pub fn happen(
    action: &FaultAction,
    design: &DesignPlan,
    datastore: &SharedDatastore,
    seed: RootSeed,
) -> Result<(), DatastoreError> {
    let mut datastore = datastore.lock().unwrap_or_else(PoisonError::into_inner);
    let fault = match action {
        FaultAction::DeviceSlow { device, factor } => {
            ClusterFault::DeviceSlow { device: device.clone(), factor: *factor }
        }
        FaultAction::DeviceStuck { device } => ClusterFault::DeviceStuck { device: device.clone() },
        FaultAction::DeviceErroring { device, probability } => {
            ClusterFault::DeviceErroring { device: device.clone(), probability: *probability }
        }
        FaultAction::DeviceLost { device } => ClusterFault::DeviceLost { device: device.clone() },
        FaultAction::HostLost { host } => ClusterFault::HostLost { host: host.clone() },
        FaultAction::HostFrozen { host } => ClusterFault::HostFrozen { host: host.clone() },
        FaultAction::HostsPartitioned { hosts } => {
            ClusterFault::HostsPartitioned { hosts: hosts.clone() }
        }
        FaultAction::BitRot { volume, bits } => {
            ClusterFault::VolumeBitRot { volume: volume.clone(), bits: *bits, seed: seed.0 }
        }
        FaultAction::TornWrite { volume, keep } => ClusterFault::VolumeTornWrite {
            volume: volume.clone(),
            // The planner allows less than 64 KiB.
            keep_bytes: keep.0 as u32,
        },
        FaultAction::PowerCut => return datastore.power_cut(),
        FaultAction::PolicyChange { volume, change } => {
            let DatastoreKind::Cluster(plan) = &design.kind else {
                return Err(DatastoreError::NotEmulated("be changed"));
            };
            let policy = change.of(&plan.policy);
            return datastore.change(&ClusterChange::Policy { volume: volume.clone(), policy });
        }
        FaultAction::DeviceAdded { group, profile } => {
            let (group, profile) = (group.clone(), profile.clone());
            return datastore.change(&ClusterChange::Device { group, profile });
        }
        FaultAction::DiskGroupAdded { host, group } => {
            let DatastoreKind::Cluster(plan) = &design.kind else {
                return Err(DatastoreError::NotEmulated("be changed"));
            };
            let group = Box::new(plan.joining(group));
            return datastore.change(&ClusterChange::DiskGroup { host: host.clone(), group });
        }
    };
    datastore.inject(&fault)
}

/// Mends a fault that lasted; nothing for the others. After a power cut the volumes are mounted again, so that nothing
/// may hold files on them open.
pub fn mend(
    action: &FaultAction,
    design: &DesignPlan,
    datastore: &SharedDatastore,
) -> Result<(), DatastoreError> {
    let mut datastore = datastore.lock().unwrap_or_else(PoisonError::into_inner);
    let returned = |host: &String| ClusterFault::HostReturned { host: host.clone() };
    match action {
        FaultAction::DeviceSlow { device, .. }
        | FaultAction::DeviceStuck { device }
        | FaultAction::DeviceErroring { device, .. } => {
            datastore.inject(&ClusterFault::DeviceReturned { device: device.clone() })
        }
        FaultAction::DeviceLost { device } => {
            let device = device.clone();
            datastore.inject(&match design.kind {
                DatastoreKind::Cluster(_) => ClusterFault::DeviceReplaced { device },
                // A single one comes back with what it held, a copy of a mirror is given what it missed.
                _ => ClusterFault::DeviceReturned { device },
            })
        }
        FaultAction::HostLost { host } | FaultAction::HostFrozen { host } => {
            datastore.inject(&returned(host))
        }
        FaultAction::HostsPartitioned { hosts } => {
            hosts.iter().try_for_each(|host| datastore.inject(&returned(host)))
        }
        FaultAction::PowerCut => datastore.power_on(),
        FaultAction::BitRot { .. }
        | FaultAction::TornWrite { .. }
        | FaultAction::PolicyChange { .. }
        | FaultAction::DiskGroupAdded { .. }
        | FaultAction::DeviceAdded { .. } => Ok(()),
    }
}
