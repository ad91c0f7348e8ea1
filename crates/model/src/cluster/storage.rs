//! What a cluster stores and where: hosts, devices, components and volumes, with the clock and the outgoing events.
//!
//! Requests ([`super::requests::Requests`]) and repair ([`super::repair::Repair`]) work on it and call each other; nothing
//! here calls them.

use super::clock::Clock;
use super::inventory::Inventory;
use super::objects::Objects;
use super::outbox::Outbox;
use super::placement::Map;
use super::spec::{ClusterSettings, NetworkSpec};
use rand_pcg::Pcg64;
use underlay_core::Nanos;
use underlay_core::RootSeed;

/// Everything of a cluster but its requests and repairs.
#[derive(Debug)]
pub(super) struct Storage {
    pub(super) settings: ClusterSettings,
    pub(super) inventory: Inventory,
    pub(super) objects: Objects,
    pub(super) clock: Clock,
    pub(super) outbox: Outbox,
    pub(super) random: Pcg64,
}

impl Storage {
    /// Without hosts and volumes, at time zero.
    pub(super) fn new(settings: ClusterSettings, network: NetworkSpec, seed: RootSeed) -> Storage {
        Storage {
            settings,
            inventory: Inventory::new(network, seed),
            objects: Objects::new(),
            clock: Clock::new(),
            outbox: Outbox::new(),
            random: seed.stream("cluster", 0),
        }
    }

    /// When [`Cluster::advance`] will next have something to do.
    pub(super) fn next_wakeup(&self) -> Option<Nanos> {
        if !self.outbox.is_empty() {
            return Some(self.clock.now());
        }
        let next = self.clock.next_timer().min(self.inventory.wakeups.first().0);
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// No request ends before this, unless something is submitted or injected; at most as late as that. For drivers by the wall
    /// clock that would otherwise wake for each step of what nobody waits for.
    pub(super) fn next_answer(&self) -> Option<Nanos> {
        if !self.outbox.is_empty() {
            return Some(self.clock.now());
        }
        let timer = self.clock.next_timer();
        let answers = self.inventory.groups.iter().filter_map(|group| group.engine.next_answer());
        let next = answers.fold(timer, |next, at| next.min(at.0));
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// From now on [`ClusterEvent::StateChanged`] says what is to be stored for a restart, beginning with the present state.
    pub(super) fn remember_changes(&mut self) {
        self.outbox.emit_states();
    }

    /// Emits the present state, if it has changed since it was emitted last; see [`Outbox::push_state`].
    pub(super) fn emit_changed_state(&mut self) {
        if self.outbox.has_unsaved_change() {
            let state = self.state();
            self.outbox.push_state(state);
        }
    }

    pub(super) fn map(&self) -> Map<'_> {
        Map {
            hosts: &self.inventory.hosts,
            groups: &self.inventory.groups,
            components_per_host: self.settings.components_per_host,
        }
    }
}
