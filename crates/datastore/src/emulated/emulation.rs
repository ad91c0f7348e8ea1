//! What an emulated datastore is made of, and what its volumes live on.
//!
//! What is not here: how it is brought up.

use std::path::Path;

use underlay_core::{Bytes, Durability, RootSeed};
use underlay_model::{DeviceProfile, HostLink};

use crate::spec::{ClusterStorage, VolumeRequest};

/// What an emulated datastore is made of.
pub(crate) struct Emulation<'a> {
    pub(crate) storage: Storage<'a>,
    pub(crate) seed: RootSeed,
    pub(crate) backing_directory: Option<&'a Path>,
    pub(crate) durability: Durability,
}

/// What volumes live on.
#[derive(Clone, Copy)]
pub(crate) enum Storage<'a> {
    /// Each on one of these, all of them behind a link or none.
    Devices(&'a [(String, DeviceProfile)], Option<HostLink>),
    Cluster(&'a ClusterStorage),
}

impl Storage<'_> {
    /// Whether no device of it takes any time.
    pub(super) fn is_instant(&self) -> bool {
        match self {
            Storage::Devices(devices, link) => {
                link.is_none() && devices.iter().all(|(_, profile)| profile.is_instant())
            }
            Storage::Cluster(cluster) => cluster.spec.is_instant(),
        }
    }

    /// What volumes need at most once they are filled, copies and parity included.
    pub(super) fn needed(&self, requests: &[VolumeRequest]) -> Bytes {
        let needed = |request: &VolumeRequest| match self {
            Storage::Devices(..) => request.capacity,
            Storage::Cluster(cluster) => cluster.needed(&request.name, request.capacity),
        };
        requests.iter().map(needed).sum()
    }
}
