//! What a cluster must not forget, from one server to the next: recalled when it opens, stored whenever it changes.

use std::path::Path;

use underlay_core::{Nanos, RootSeed};
use underlay_model::cluster::{
    Cluster, ClusterSpec, ComponentId, DeviceId, Durability, Found, GroupId, Restart, VolumeId,
};
use underlay_model::data_plane::{DataPlane, StoreMaker};

use super::file_store::FileStores;
use super::memory::{Memory, Recalled};
use super::plane::ClusterPlane;
use super::reduction::{Place, Reduction};
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
        let Some(Recalled { mut state, restart, made }) = recalled else {
            let cluster = Cluster::new(spec, seed).map_err(DatastoreError::BadCluster)?;
            let mut data = DataPlane::new(stores);
            let reduction = Reduction::start(&cluster, &mut data, directory.to_path_buf(), &[])?;
            return Ok(ClusterPlane::of(cluster, data, memory, directory, reduction, is_instant));
        };
        let misfit =
            |reason: String| DatastoreError::BadMemory { path: directory.to_path_buf(), reason };
        let mut data = DataPlane::new(FileStores::new(directory));
        let (mut lost, mut places) = (Vec::new(), Vec::new());
        for record in state.components.clone() {
            let component = ComponentId(record.component);
            let device = DeviceId { group: GroupId(record.group), member: record.disk + 1 };
            let durability = durability.get(record.group as usize).copied();
            let exists = stores.exists(component, device);
            let unclean = restart == Restart::Unclean;
            if !exists && (!unclean || record.component < made) {
                lost.push(component);
            }
            let store = if exists {
                stores.open(component, device, record.length)
            } else {
                data.maker().create(component, device, record.length)
            };
            let mut store = store.map_err(|error| misfit(error.to_string()))?;
            if lost.last() == Some(&component) {
                state.correct(component, &Found::Lost);
            } else if unclean {
                let held = store.holds().map_err(|error| misfit(error.to_string()))?;
                state.correct(component, &Found::Holds(held));
            }
            data.attach(component, store, durability.unwrap_or(Durability::OnWrite));
            places.push(Place { component, device, length: record.length });
        }
        let cluster = Cluster::restore(spec, seed, &state, restart)
            .map_err(|problem| misfit(problem.to_string()))?;
        let reduction = Reduction::start(&cluster, &mut data, directory.to_path_buf(), &places)?;
        let mut plane = ClusterPlane::of(cluster, data, memory, directory, reduction, is_instant);
        for component in lost {
            let text = format!("component {component} is lost: its files are gone");
            plane.journal.say(Nanos::ZERO, "component", text);
        }
        plane.components_made();
        Ok(plane)
    }

    /// Stores what must not be forgotten, if it has changed.
    pub(super) fn remember(&mut self) {
        let generation = self.cluster.state_generation();
        let Some(memory) = self.memory.as_mut().filter(|memory| !memory.holds(generation)) else {
            return;
        };
        let was_failing = memory.is_failing;
        let outcome = memory.keep(generation, self.cluster.state());
        let text = match outcome {
            Err(error) if !was_failing => format!(
                "{error}: what the cluster knows cannot be stored, so that writes and flushes are answered with errors until \
                 it can"
            ),
            Ok(()) if was_failing => {
                "what the cluster knows can be stored again, and writes are accepted".to_string()
            }
            _ => return,
        };
        let now = self.now.saturating_sub(self.ahead);
        self.journal.say(now, "memory", text);
    }

    /// Whether something that is answered well now would be forgotten if the server were killed.
    pub(super) fn forgets(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.is_failing)
    }

    /// The components that exist by now have been made: who misses one later knows that it was lost.
    pub(super) fn components_made(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.components_made(self.cluster.components_below());
            self.remember();
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
