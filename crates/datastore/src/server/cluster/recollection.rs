//! What a cluster must not forget, from one server to the next: recalled when it opens, stored whenever it changes.

use std::path::Path;

use underlay_core::{Nanos, RootSeed};
use underlay_model::cluster::{
    Cluster, ClusterSpec, ComponentId, DeviceId, Durability, GroupId, VolumeId,
};
use underlay_model::data_plane::DataPlane;

use super::file_store::FileStores;
use super::memory::Memory;
use super::plane::ClusterPlane;
use crate::error::DatastoreError;

impl<R> ClusterPlane<R> {
    /// The cluster as it is remembered, or a new one; its components are below `directory`.
    pub(crate) fn open(
        spec: ClusterSpec,
        seed: RootSeed,
        directory: &Path,
        memory: Option<&Path>,
    ) -> Result<ClusterPlane<R>, DatastoreError> {
        let memory = memory.map(Memory::at);
        let recalled = match &memory {
            Some(memory) => memory.recall()?,
            None => None,
        };
        let stores = FileStores::new(directory);
        let is_instant = spec.is_instant();
        let durability = durability_of_groups(&spec);
        let Some((state, restart)) = recalled else {
            let cluster = Cluster::new(spec, seed).map_err(DatastoreError::BadCluster)?;
            return Ok(ClusterPlane::of(
                cluster,
                DataPlane::new(stores),
                memory,
                directory,
                is_instant,
            ));
        };
        let misfit =
            |reason: String| DatastoreError::BadMemory { path: directory.to_path_buf(), reason };
        let cluster = Cluster::restore(spec, seed, &state, restart)
            .map_err(|problem| misfit(problem.to_string()))?;
        let mut data = DataPlane::new(FileStores::new(directory));
        for record in &state.components {
            let component = ComponentId(record.component);
            let device = DeviceId { group: GroupId(record.group), member: record.disk + 1 };
            let store = stores.open(component, device, record.length, restart);
            let store = store.map_err(|error| misfit(error.to_string()))?;
            data.attach(component, store, durability[record.group as usize]);
        }
        Ok(ClusterPlane::of(cluster, data, memory, directory, is_instant))
    }

    /// Stores what must not be forgotten, if it has changed.
    pub(super) fn remember(&mut self) {
        let generation = self.cluster.state_generation();
        if let Some(memory) = &mut self.memory
            && !memory.holds(generation)
        {
            memory.keep(generation, self.cluster.state());
        }
    }

    /// The server ends. In order, if nothing is in flight; otherwise the next start settles what was.
    pub(crate) fn conclude(&mut self) {
        let at_rest = self.pending.is_empty() && self.finished.is_empty();
        if let Some(memory) = self.memory.as_mut().filter(|_| at_rest)
            && let Err(error) = memory.conclude(self.cluster.state())
        {
            tracing::error!("{error}; the next start will settle and copy more than is needed");
        }
    }

    /// Removes volumes that are remembered and that nobody wants any more: their removal was cut short.
    pub(crate) fn keep_only(&mut self, now: Nanos, names: &[&str]) {
        let wanted: Vec<VolumeId> =
            names.iter().filter_map(|name| self.cluster.find_volume(name)).collect();
        let unwanted: Vec<VolumeId> =
            self.cluster.volumes().filter(|volume| !wanted.contains(volume)).collect();
        let at = self.at(now);
        for volume in unwanted {
            if let Err(refusal) = self.cluster.remove_volume(at, volume) {
                tracing::error!("a forgotten volume could not be removed: {refusal}");
            }
        }
        self.pass(at);
    }
}

/// What a power cut takes from components of each disk group: as the model decides it for new ones.
fn durability_of_groups(spec: &ClusterSpec) -> Vec<Durability> {
    let groups = spec.hosts.iter().flat_map(|host| &host.groups);
    groups
        .map(|group| {
            let cache = &group.cache;
            let protected = cache.power_loss_protected || cache.write_buffer.is_none();
            if protected { Durability::OnWrite } else { Durability::OnFlush }
        })
        .collect()
}
