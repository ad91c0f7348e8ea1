//! What a cluster stores and where: hosts, their membership, devices, components and volumes, with the clock and the outgoing events.
//!
//! Requests ([`super::requests::Requests`]) and repair ([`super::repair::Repair`]) work on it and call each other; nothing
//! here calls them.

use super::clock::Clock;
use super::component_place::Target;
use super::ids::{ComponentId, HostId};
use super::inventory::Inventory;
use super::membership::Membership;
use super::object::Component;
use super::objects::Objects;
use super::outbox::Outbox;
use super::placement::Map;
use super::spec::{ClusterSettings, HostSpec, NetworkSpec};
use rand_pcg::Pcg64;
use underlay_core::Nanos;
use underlay_core::RootSeed;

/// Everything of a cluster but its requests and repairs.
#[derive(Debug)]
pub(super) struct Storage {
    pub(super) settings: ClusterSettings,
    pub(super) inventory: Inventory,
    pub(super) membership: Membership,
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
            membership: Membership::new(),
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
        let next = self.clock.next_timer().min(self.inventory.first_wakeup().0);
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// No request ends before this, unless something is submitted or injected; at most as late as that. For drivers by the
    /// wall clock that would otherwise wake for each step of work that no client waits for.
    pub(super) fn next_answer(&self) -> Option<Nanos> {
        if !self.outbox.is_empty() {
            return Some(self.clock.now());
        }
        let next = self.clock.next_timer().min(self.inventory.next_answer());
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

    /// Adds a host that was checked, which runs and is a member.
    pub(super) fn push_host(&mut self, spec: &HostSpec) -> HostId {
        self.membership.push();
        self.inventory.push_host(spec)
    }

    /// What placement looks at.
    pub(super) fn map(&self) -> Map<'_> {
        Map {
            inventory: &self.inventory,
            membership: &self.membership,
            components_per_host: self.settings.components_per_host,
        }
    }

    /// Where a component is, if it is still there.
    #[inline]
    pub(super) fn target(&self, id: ComponentId) -> Option<Target> {
        let component = self.objects.component(id)?;
        let Component { group, disk, base, .. } = *component;
        Some(Target { component: id, group, host: self.inventory.host_of(group), disk, base })
    }
}
