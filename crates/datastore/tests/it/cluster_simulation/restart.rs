//! The program that drives the cluster is killed at any moment, and starts again with what it had stored.
//!
//! What it stored may be older than what the components hold; commands that were decided may not have been carried out.
//! Nobody was told of requests in flight: their writes may have happened.

use super::crash_points::{CrashingStore, CrashingStores};
use super::topology::Power;
use super::world::{World, sectors};
use rand::RngExt;
use std::collections::BTreeMap;
use underlay_core::RootSeed;
use underlay_datastore::data_plane::{BLOCK_BYTES, DataPlane};
use underlay_model::Operation;
use underlay_model::cluster::{Cluster, ComponentId, DurabilityPoint, Found, HostId, Restart};

impl World {
    /// From now on it may happen at any step, and in the midst of one.
    pub fn kill_soon(&mut self) {
        match self.random.random_range(0..2) {
            0 => self.killed_after = Some(self.random.random_range(0..20)),
            _ => self.crash_point.set_after(self.random.random_range(1..40)),
        }
    }

    /// Starts again after a kill.
    pub fn restart(&mut self) {
        self.killed_after = None;
        if self.trace {
            println!("{}: killed and started again", self.now);
        }
        for (_, flight) in std::mem::take(&mut self.flights) {
            if matches!(flight.request.operation, Operation::Write | Operation::Discard) {
                let reference = &mut self.subjects[flight.subject].reference;
                reference.failed(flight.write, self.now, sectors(&flight.request));
            }
        }
        let mut state = self.memory.clone().expect("stored before the first answer");
        let data = DataPlane::new(CrashingStores { crash_point: self.crash_point.clone() });
        let old = std::mem::replace(&mut self.data, data);
        let mut stores: BTreeMap<ComponentId, CrashingStore> = old.into_stores().collect();
        self.crash_point.clear();
        for intent in self.intents.take() {
            let store = stores.get_mut(&intent.component()).expect("it was about to change");
            intent.complete(store).expect("memory does not fail");
        }
        self.data.note_intents(Box::new(self.intents.clone()));
        let durability = match self.power {
            Power::Protected => DurabilityPoint::OnWrite,
            Power::Volatile => DurabilityPoint::OnFlush,
        };
        for record in state.components.clone() {
            let id = ComponentId(record.component);
            let store = stores.remove(&id).expect("made before it was stored, removed after");
            let block = BLOCK_BYTES as u64;
            let held =
                store.inner.allocated_blocks().map(|number| (number * block, block)).collect();
            state.correct(id, &Found::Holds(held));
            self.data.attach(id, store, durability);
        }
        let seed = RootSeed(self.random.random_range(0..u64::MAX));
        let restored = Cluster::restore(self.spec.clone(), seed, &state, Restart::Unclean);
        self.cluster = restored.expect("its own state");
        self.cluster.remember_changes();
        // The last fault or repair may not have been stored: then it has not happened.
        self.down = state.hosts.iter().map(|record| HostId(record.host)).collect();
        for host in &self.down {
            self.hit.insert(self.domains[host.0 as usize].clone());
        }
        // Faults of devices that nobody had noticed are over.
        self.stuck.clear();
        // Replicas that may differ are settled by choosing one of them as the truth and copying it: until that is done nothing else
        // may fail. Rows with parity never differ: the write that was under way has been completed.
        self.interrupted();
        self.collect();
    }
}
