//! What follows from membership: which side has the majority, which components can be reached, which I/Os fail.
//!
//! Runs after each change of what the cluster has detected. For each volume it finds the side with more than half of the
//! votes and the reachable components on it. Then I/Os to other components fail, returned components are resynchronised,
//! absent ones are scheduled for repair, and rows in doubt after a power cut are settled.

use super::Repair;
use crate::cluster::event::{ComponentState, IoFailure, Notice, Reachability, ResyncReason};
use crate::cluster::ids::{ComponentId, DeviceId, VolumeId};
use crate::cluster::inventory::Inventory;
use crate::cluster::object::{Component, Layout, Slot};
use crate::cluster::objects::Objects;
use crate::cluster::operation::{FailedHow, SubState};
use crate::cluster::requests::Requests;
use crate::cluster::storage::Storage;
use crate::cluster::timers::Timer;
use std::collections::BTreeSet;
use underlay_core::Nanos;

impl Inventory {
    /// What a component is.
    pub(in crate::cluster) fn state_of(&self, component: &Component) -> ComponentState {
        let works = self.group(component.group).works(component.disk);
        match (component.reachable, &component.copy) {
            (false, _) if works => ComponentState::Absent,
            (false, _) => ComponentState::Degraded,
            (true, Some(copy)) if !copy.blocked => ComponentState::Resyncing,
            (true, _) if component.stale.is_empty() => ComponentState::Active,
            (true, _) => ComponentState::Stale,
        }
    }
}

impl Objects {
    /// Whether each component can be reached and is current.
    pub(in crate::cluster) fn is_whole(&self, volume: VolumeId, layout: Layout) -> bool {
        self.object(volume, layout).is_some_and(|object| {
            object.side.is_some()
                && object.components().all(|id| {
                    self.component(id)
                        .is_some_and(|component| component.reachable && component.stale.is_empty())
                })
        })
    }

    /// Whether each set has enough reachable slots to hold data.
    pub(in crate::cluster) fn all_sets_reachable(&self, volume: VolumeId) -> bool {
        self.all_sets(volume, |component| component.reachable)
    }

    fn all_sets(&self, volume: VolumeId, fits: impl Fn(&Component) -> bool) -> bool {
        let Some(object) = self.object(volume, Layout::Present) else { return false };
        let needed = usize::from(object.geometry.kind.data_units());
        (0..object.geometry.sets).all(|set| {
            let slots = object
                .set(set)
                .iter()
                .filter(|slot| slot.components().any(|id| self.component(id).is_some_and(&fits)));
            slots.count() >= needed
        })
    }
}

impl Storage {
    /// Finds the side with the majority, and who can be reached on it.
    fn update_object(&mut self, volume: VolumeId, layout: Layout) {
        let Some(object) = self.objects.object(volume, layout) else { return };
        let sides = self.membership.seen_sides();
        let all = object.votes();
        let side = sides.into_iter().find(|side| self.votes_on(volume, layout, *side) * 2 > all);
        let ids: Vec<ComponentId> = object.components().collect();
        if let Some(object) = self.objects.object_mut(volume, layout) {
            object.side = side;
        }
        for id in ids {
            self.update_component(id, side);
        }
    }

    /// Where a slot votes: with its current component, and with the one that is to replace it only if nobody sees that one. Else
    /// a slot with one on each side would vote on both.
    fn side_of(&self, slot: &Slot) -> Option<u32> {
        slot.components().find_map(|id| {
            let component = self.objects.component(id)?;
            let group = self.inventory.group(component.group);
            let seen = self.membership.seen(group.host);
            seen.filter(|_| group.works(component.disk))
        })
    }

    fn votes_on(&self, volume: VolumeId, layout: Layout, side: u32) -> u64 {
        let Some(object) = self.objects.object(volume, layout) else { return 0 };
        let slots = object.slots.iter().filter(|slot| self.side_of(slot) == Some(side)).count();
        let witnesses = object
            .witnesses
            .iter()
            .filter(|host| self.membership.seen(**host) == Some(side))
            .count();
        let votes = slots as u64 + witnesses as u64 * u64::from(object.geometry.sets);
        debug_assert!(votes <= object.votes(), "{votes} votes on side {side} are more than all");
        votes
    }

    fn update_component(&mut self, id: ComponentId, side: Option<u32>) {
        let Some(component) = self.objects.component(id) else { return };
        let group = self.inventory.group(component.group);
        let works = group.works(component.disk);
        let reachable = side.is_some() && self.membership.seen(group.host) == side && works;
        let (was, group) = (component.reachable, component.group);
        let now = self.clock.now();
        let delay = if works { self.settings.repair_delay } else { Nanos::ZERO };
        let Some(component) = self.objects.component_mut(id) else { return };
        component.reachable = reachable;
        if was != reachable {
            self.objects.shape_changed();
        }
        let Some(component) = self.objects.component_mut(id) else { return };
        if reachable {
            if !was {
                component.absence = component.absence.wrapping_add(1);
                component.repair_at = None;
                self.returned(id);
            }
        } else {
            component.copy = None;
            let due = now + delay;
            if side.is_some() && component.repair_at.is_none_or(|at| at > due) {
                component.absence = component.absence.wrapping_add(1);
                component.repair_at = Some(due);
                let absence = component.absence;
                self.clock.schedule(due, Timer::Repair { component: id, absence });
            }
            self.inventory.group_mut(group).filling.retain(|filled| *filled != id);
        }
        self.announce(id);
    }

    /// A component came back: what it missed is copied, unless its replacement is nearer to being complete.
    fn returned(&mut self, id: ComponentId) {
        let Some(Component { volume, layout, set, slot, .. }) = self.objects.component(id) else {
            return;
        };
        let (volume, layout, set, slot) = (*volume, *layout, *set, *slot);
        let Some(object) = self.objects.object_mut(volume, layout) else { return };
        let place = *object.slot_mut(set, slot);
        let Some(replacement) = place.replacement.filter(|_| place.current == id) else { return };
        let stale = |id| self.objects.component(id).map_or(0, |component| component.stale.count());
        if stale(id) <= stale(replacement) && !self.is_needed(replacement, id) {
            self.drop_replacement(volume, set, slot);
        }
    }

    /// Says what has become of a component.
    pub(in crate::cluster) fn announce(&mut self, id: ComponentId) {
        let Some(component) = self.objects.component(id) else { return };
        let state = self.inventory.state_of(component);
        let volume = component.volume;
        if component.announced == state {
            return;
        }
        if let Some(component) = self.objects.component_mut(id) {
            component.announced = state;
        }
        self.outbox.state_changed();
        self.outbox.notice(self.clock.now(), Notice::Component { component: id, volume, state });
    }

    fn choose_owner(&mut self, volume: VolumeId) {
        let Some(state) = self.objects.volume(volume) else { return };
        let side = state.object.side;
        if side.is_none() || self.membership.seen(state.owner) == side {
            return;
        }
        let owner = state
            .object
            .components()
            .find(|id| self.objects.component(*id).is_some_and(|component| component.reachable))
            .and_then(|id| self.objects.component(id))
            .map(|component| self.inventory.host_of(component.group));
        if let (Some(owner), Some(state)) = (owner, self.objects.volume_mut(volume)) {
            state.owner = owner;
        }
    }

    /// Says when a volume begins or ends to answer errors.
    pub(in crate::cluster) fn announce_availability(&mut self, volume: VolumeId) {
        let Some(state) = self.objects.volume(volume) else { return };
        let quorum = state.object.side.is_some();
        let current = self
            .objects
            .all_sets(volume, |component| component.reachable && component.stale.is_empty());
        let (was, is) = (state.available, quorum && current);
        if was == is {
            return;
        }
        if let Some(state) = self.objects.volume_mut(volume) {
            state.available = is;
        }
        self.outbox.notice(
            self.clock.now(),
            if is {
                Notice::VolumeAvailable { volume }
            } else {
                let reason = if quorum { IoFailure::NoCurrentCopy } else { IoFailure::NoQuorum };
                Notice::VolumeUnavailable { volume, reason }
            },
        );
    }

    /// After an unclean restart, components that were not active are taken for stale as a whole if enough others were. Where
    /// that does not hold each stale row counts.
    fn count_lonely_write(&mut self, volume: VolumeId, set: u32) {
        let Some(object) = self.objects.object(volume, Layout::Present) else { return };
        let active = object.set(set).iter().filter(|slot| {
            self.objects
                .component(slot.current)
                .is_some_and(|component| component.announced == ComponentState::Active)
        });
        if active.count() < usize::from(object.geometry.kind.data_units()) {
            self.outbox.state_changed();
        }
    }
}

impl Repair {
    /// The silence of the hosts that changed together is noticed.
    pub(in crate::cluster) fn detect(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        epoch: u32,
    ) {
        let now = storage.clock.now();
        let changed = storage.membership.detect(epoch, now);
        for host in &changed {
            let notice = Notice::Host { host: *host, reachability: Reachability::Unreachable };
            storage.outbox.notice(now, notice);
        }
        if !changed.is_empty() {
            storage.outbox.state_changed();
            storage.clock.schedule(now + storage.settings.repair_delay, Timer::RepairWitnesses);
            self.membership_changed(storage, requests);
        }
    }

    /// A stuck device has been stuck for too long.
    pub(in crate::cluster) fn give_up(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        device: DeviceId,
        epoch: u32,
    ) {
        let member = &storage.inventory.group(device.group).members[usize::from(device.member)];
        if member.epoch == epoch && !member.failed {
            self.device_failed(storage, requests, device);
        }
    }

    /// The device counts as failed from now on.
    pub(in crate::cluster) fn device_failed(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        device: DeviceId,
    ) {
        let group = storage.inventory.group_mut(device.group);
        group.members[usize::from(device.member)].failed = true;
        storage.outbox.state_changed();
        storage.outbox.notice(storage.clock.now(), Notice::DeviceFailed { device });
        self.membership_changed(storage, requests);
    }

    /// Brings everything in line with what the cluster has seen.
    pub(in crate::cluster) fn membership_changed(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
    ) {
        let volumes: Vec<VolumeId> = storage.objects.volume_ids();
        for volume in &volumes {
            storage.update_object(*volume, Layout::Present);
            storage.update_object(*volume, Layout::Next);
            storage.choose_owner(*volume);
        }
        self.fail_unreachable_subs(storage, requests);
        for volume in volumes {
            if storage.objects.object(volume, Layout::Next).is_some()
                && !storage.objects.is_whole(volume, Layout::Next)
            {
                self.abandon_reshape(storage, volume);
            }
            self.settle_doubts(storage, requests, volume);
            storage.announce_availability(volume);
        }
        // A partition may serve now what waited for it.
        requests.resume_subs(storage, self);
        self.retry_copies(storage, requests);
    }

    fn fail_unreachable_subs(&mut self, storage: &mut Storage, requests: &mut Requests) {
        let unreachable = storage.objects.components().filter(|component| !component.reachable);
        let lost: BTreeSet<ComponentId> = unreachable.map(|component| component.id).collect();
        requests.fail_subs(
            storage,
            self,
            |sub| match sub.state {
                SubState::Vanished => FailedHow::Crashed,
                _ => FailedHow::Gone,
            },
            |sub| lost.contains(&sub.component),
        );
    }

    /// The component missed a write to that row.
    pub(in crate::cluster) fn mark_stale(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        id: ComponentId,
        row: u64,
    ) {
        let Some(component) = storage.objects.component_mut(id) else { return };
        if component.stale.insert(row) {
            let (volume, layout, set) = (component.volume, component.layout, component.set);
            // It was complete until now: whatever it was once filled for is over.
            let first = component.stale.count() == 1;
            if first && !component.reachable {
                component.reason = ResyncReason::Stale;
            }
            if first {
                storage.objects.shape_changed();
            }
            if layout == Layout::Present {
                storage.count_lonely_write(volume, set);
            }
        }
        let Some(component) = storage.objects.component_mut(id) else { return };
        if let Some(copy) = &mut component.copy {
            for copied in copy.rows.iter_mut().filter(|copied| copied.row == row) {
                copied.spoiled = true;
            }
            // A row between two slices begins again at once; one with slices in flight when they have ended.
            copy.rows.retain(|copied| copied.row != row || copied.in_flight > 0);
        }
        if component.reachable {
            if component.copy.is_none() {
                component.reason = ResyncReason::Stale;
            }
            self.ensure_copy(storage, requests, id);
        }
    }
}
