//! The state of a cluster across restarts of its server: loaded when the cluster opens, stored whenever it changes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::data_plane::{BLOCK_BYTES, DataPlane, MarkLog, StoreError, StoreMaker};
use underlay_core::{Nanos, RootSeed};
use underlay_model::cluster::{
    Cluster, ClusterSpec, ClusterState, ComponentId, DurabilityPoint, Found, Restart, VolumeId,
};

use super::fault_refusal::FaultRefusal;
use super::file_store::{FileStores, Place};
use super::lost_range_log::LostRangeLog;
use super::memory::{Memory, Recalled};
use super::plane::ClusterPlane;
use super::reduction::Reduction;
use super::stores::Stores;
use super::write_intent_log;
use crate::error::DatastoreError;

impl<C> ClusterPlane<C> {
    /// The cluster as it is remembered, or a new one; its components are below `directory`.
    pub(crate) fn open(
        spec: ClusterSpec,
        seed: RootSeed,
        directory: &Path,
        memory: Option<&Path>,
    ) -> Result<ClusterPlane<C>, DatastoreError> {
        ClusterPlane::open_on(FileStores::new(directory), spec, seed, directory, memory)
    }
}

impl<C, S: Stores> ClusterPlane<C, S> {
    /// The same with its components in these stores, which are below `directory`.
    pub(super) fn open_on(
        mut stores: S,
        spec: ClusterSpec,
        seed: RootSeed,
        directory: &Path,
        memory: Option<&Path>,
    ) -> Result<ClusterPlane<C, S>, DatastoreError> {
        let mut memory = memory.map(Memory::at);
        let recalled = match &memory {
            Some(memory) => memory.recall()?,
            None => None,
        };
        let unit_bytes = spec.settings.stripe_unit.0;
        let is_instant = spec.is_instant();
        let durability = durability_of_groups(&spec);
        let Some(Recalled { mut state, restart }) = recalled else {
            let cluster = Cluster::new(spec, seed).map_err(DatastoreError::BadCluster)?;
            let mut data = DataPlane::new(stores);
            note_intents(&mut data, directory, unit_bytes, memory.as_ref())?;
            if memory.is_some() {
                keep_marks(&mut data, LostRangeLog::open(directory)?, &[]);
            }
            let reduction = Reduction::start(&cluster, &mut data, directory.to_path_buf(), &[])?;
            return Ok(ClusterPlane::of(cluster, data, memory, directory, reduction, is_instant));
        };
        let misfit =
            |reason: String| DatastoreError::BadMemory { path: directory.to_path_buf(), reason };
        let places: Vec<Place> = state.components.iter().map(Place::of).collect();
        complete_what_was_begun(directory, &places, stores.files())?;
        let lost = correct(&mut state, restart, &places, stores.files()).map_err(&misfit)?;
        let marks = LostRangeLog::open(directory)?;
        distrust(&mut state, &marks);
        if let Some(memory) = memory.as_mut().filter(|_| !lost.is_empty()) {
            // Before their files are there again, and look like components that hold nothing.
            memory.keep(state.clone(), &mut stores)?;
        }
        stores.files().keep_only(&places);
        let mut data = DataPlane::new(stores);
        for place in &places {
            let Place { component, device, length } = *place;
            let store = if lost.contains(&component) {
                data.maker().create(component, device, length)
            } else {
                data.maker().open(component, device, length)
            };
            let store = store.map_err(|error| misfit(error.to_string()))?;
            let durability = durability.get(device.group.0 as usize).copied();
            data.attach(component, store, durability.unwrap_or(DurabilityPoint::OnWrite));
        }
        let cluster = Cluster::restore(spec, seed, &state, restart)
            .map_err(|problem| misfit(problem.to_string()))?;
        note_intents(&mut data, directory, unit_bytes, memory.as_ref())?;
        // A component whose files are gone is marked as a whole by the cluster.
        let attached: Vec<ComponentId> = places.iter().map(|place| place.component).collect();
        let attached: Vec<_> = attached.into_iter().filter(|it| !lost.contains(it)).collect();
        keep_marks(&mut data, marks, &attached);
        let reduction = Reduction::start(&cluster, &mut data, directory.to_path_buf(), &places)?;
        let mut plane = ClusterPlane::of(cluster, data, memory, directory, reduction, is_instant);
        for component in lost {
            let text = format!("component {component} is lost: its files are gone");
            plane.journal.say(Nanos::ZERO, "component", text);
        }
        Ok(plane)
    }

    /// Stores what must not be forgotten. What the last state stood in the way of is done then.
    pub(super) fn remember(&mut self, state: ClusterState) {
        let Some(memory) = self.memory.as_mut() else { return };
        let was_failing = memory.is_failing;
        let outcome = memory.keep(state, self.data.maker());
        if outcome.is_ok() {
            for command in std::mem::take(&mut self.withheld) {
                self.carry_out(&command);
            }
        }
        let text = match outcome {
            Err(error) if !was_failing => format!(
                "{error}: the cluster's state cannot be stored, so writes and flushes fail until it can"
            ),
            Ok(()) if was_failing => {
                "the cluster's state can be stored again, and writes are accepted".to_string()
            }
            _ => return,
        };
        let now = self.skew.on_wall(self.now);
        self.journal.say(now, "memory", text);
    }

    /// Stores what must not be forgotten once more, to see that it can be.
    pub(crate) fn make_sure_of_memory(&mut self) -> Result<(), FaultRefusal> {
        if self.memory.is_some() {
            self.remember(self.cluster.state());
        }
        if self.forgets() { Err(FaultRefusal::NotStored) } else { Ok(()) }
    }

    /// Whether something that is answered well now would be forgotten if the server were killed.
    pub(super) fn forgets(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.is_failing)
    }

    /// The server ends. In order, if nothing is in flight; otherwise the next start settles what was.
    pub(crate) fn conclude(&mut self) {
        let at_rest = self.pending.is_empty() && self.finished.is_empty();
        if let Some(memory) = self.memory.as_mut().filter(|_| at_rest)
            && let Err(error) = memory.conclude(self.cluster.state(), self.data.maker())
        {
            tracing::error!("{error}; the next start will copy more than necessary");
        }
    }

    /// Removes volumes that the state has but the description does not: their removal was interrupted.
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

/// From now on what a command is about to store is noted, if anybody will ever open what a kill leaves.
fn note_intents(
    data: &mut DataPlane<impl Stores>,
    directory: &Path,
    unit_bytes: u64,
    memory: Option<&Memory>,
) -> Result<(), DatastoreError> {
    if memory.is_some() {
        let log = data.maker().intent_log(directory, unit_bytes)?;
        data.note_intents(log);
    }
    Ok(())
}

/// Of which blocks an earlier server knew that they are lost, and could not store it with them.
fn distrust(state: &mut ClusterState, marks: &LostRangeLog) {
    let block = BLOCK_BYTES as u64;
    let mut of_components: BTreeMap<ComponentId, Vec<(u64, u64)>> = BTreeMap::new();
    for (component, blocks) in marks.marked() {
        let range = (blocks.start.saturating_mul(block), (blocks.end - blocks.start) * block);
        of_components.entry(component).or_default().push(range);
    }
    for (component, ranges) in of_components {
        state.distrust(component, &ranges);
    }
}

/// Hands the marks to the data plane; those of components that are not attached are dropped.
fn keep_marks(
    data: &mut DataPlane<impl StoreMaker>,
    mut marks: LostRangeLog,
    attached: &[ComponentId],
) {
    for (component, blocks) in marks.marked() {
        if attached.contains(&component) {
            data.recall_marks(component, blocks);
        } else {
            marks.clear(component, blocks);
        }
    }
    data.keep_marks(Box::new(marks));
}

/// Completes the command in whose midst the last server was killed. Components that are not in the state, or that are gone,
/// have nothing to complete.
fn complete_what_was_begun(
    directory: &Path,
    places: &[Place],
    stores: &FileStores,
) -> Result<(), DatastoreError> {
    let misfit = |error: StoreError| DatastoreError::BadMemory {
        path: directory.to_path_buf(),
        reason: error.to_string(),
    };
    for intent in write_intent_log::begun(directory)? {
        let place = places.iter().find(|place| place.component == intent.component());
        let Some(Place { component, device, length }) = place else { continue };
        if stores.exists(*component, *device) {
            let mut store = stores.open(*component, *device, *length).map_err(misfit)?;
            intent.complete(&mut store).map_err(misfit)?;
        }
    }
    Ok(())
}

/// Corrects a remembered state by what is found of its components, and says which are lost.
fn correct(
    state: &mut ClusterState,
    restart: Restart,
    places: &[Place],
    stores: &FileStores,
) -> Result<Vec<ComponentId>, String> {
    let mut lost = Vec::new();
    for Place { component, device, length } in places {
        if !stores.exists(*component, *device) {
            // They are made before the state that names them is stored.
            lost.push(*component);
            state.correct(*component, &Found::Lost);
        } else if restart != Restart::Clean {
            let held = stores.open(*component, *device, *length).and_then(|mut it| it.holds());
            state.correct(*component, &Found::Holds(held.map_err(|error| error.to_string())?));
        }
    }
    Ok(lost)
}

/// What a power cut takes from components of each disk group: as the model decides it for new ones.
fn durability_of_groups(spec: &ClusterSpec) -> Vec<DurabilityPoint> {
    let groups = spec.hosts.iter().flat_map(|host| &host.groups);
    groups
        .map(|group| {
            if group.cache.is_durable() {
                DurabilityPoint::OnWrite
            } else {
                DurabilityPoint::OnFlush
            }
        })
        .collect()
}
