//! Filling stale components: slice by slice, from the other members, within a window per disk group.
//!
//! One engine serves all reasons: a component that returned copies the rows it missed, a new one copies all rows that hold
//! data. Rows that hold data nowhere cost nothing. A slice reads its sources, writes its target, and takes effect in
//! the data plane at one moment; writes of the volume go to the target all the while, so that a row is current as soon as
//! all its slices are. What is left is the set of stale rows, which survives interruptions and restarts.

use super::Repair;
use super::resync_search::Next;
use crate::cluster::data_command::DataCommand;
use crate::cluster::event::{Notice, ResyncReason};
use crate::cluster::geometry::RowRange;
use crate::cluster::ids::{ComponentId, GroupId, VolumeId};
use crate::cluster::object::{Copy, Layout};
use crate::cluster::operation::{Part, Phase, Purpose};
use crate::cluster::requests::Requests;
use crate::cluster::row_members::row_is_known;
use crate::cluster::slab::Key;
use crate::cluster::storage::Storage;
use crate::cluster::timers::Timer;
use crate::cluster::wants::Wanted;
use crate::cluster::wants::Wants;
use crate::request::Operation;
use crate::scheduler::IoClass;
use underlay_core::{Bytes, Nanos};

impl Storage {
    fn slice_ended(&mut self, id: ComponentId, row: u64, copied_all: bool) {
        let unit_bytes = self.settings.stripe_unit.0 as u32;
        let Some(component) = self.objects.component_mut(id) else { return };
        let Some(copy) = &mut component.copy else { return };
        let Some(at) = copy.rows.iter().position(|copied| copied.row == row) else { return };
        let copied = &mut copy.rows[at];
        debug_assert!(copied.in_flight > 0, "a slice of a row ends once");
        debug_assert!(copied.begun <= unit_bytes, "a row is copied once");
        copied.in_flight -= 1;
        copied.spoiled |= !copied_all;
        if copied.in_flight > 0 || (!copied.spoiled && copied.begun < unit_bytes) {
            return;
        }
        let caught_up =
            !copied.spoiled && component.stale.remove(row) && component.stale.is_empty();
        copy.rows.swap_remove(at);
        if caught_up {
            self.objects.shape_changed();
        }
    }
}

impl Repair {
    /// Makes sure that a stale, reachable component is being filled.
    pub(in crate::cluster) fn ensure_copy(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        id: ComponentId,
    ) {
        let Some(component) = storage.objects.component(id) else { return };
        // The next layout of a policy change is filled by `reshape`.
        if !component.reachable || component.layout != Layout::Present {
            return;
        }
        if component.copy.is_some() {
            return;
        }
        if component.stale.is_empty() {
            return self.fill_complete(storage, requests, id);
        }
        let (volume, reason, group) = (component.volume, component.reason, component.group);
        let bytes = Bytes(component.stale.count() * storage.settings.stripe_unit.0);
        let epoch = self.resync.next_epoch();
        if let Some(component) = storage.objects.component_mut(id) {
            component.copy =
                Some(Box::new(Copy { epoch, rows: Vec::new(), cursor: 0, blocked: false }));
        }
        debug_assert!(
            !storage.inventory.group(group).filling.contains(&id),
            "a component is filled once"
        );
        storage.inventory.group_mut(group).filling.push_back(id);
        storage.outbox.notice(storage.clock.now(), Notice::ResyncStarted { volume, reason, bytes });
        storage.announce(id);
        self.pump(storage, requests, group);
    }

    /// Tries blocked and new copies again, and repairs that are overdue.
    pub(in crate::cluster) fn retry_copies(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
    ) {
        self.resync.retry_scheduled = false;
        let ids: Vec<ComponentId> =
            storage.objects.components().map(|component| component.id).collect();
        for id in ids {
            let Some(component) = storage.objects.component_mut(id) else { continue };
            if let Some(copy) = &mut component.copy
                && copy.blocked
            {
                copy.blocked = false;
                let group = component.group;
                // Announced when a slice begins: most looks change nothing.
                storage.inventory.group_mut(group).filling.push_back(id);
            }
            self.ensure_copy(storage, requests, id);
            self.repair_if_overdue(storage, requests, id);
        }
        for index in 0..storage.inventory.groups().len() {
            self.pump(storage, requests, GroupId(index as u32));
        }
    }

    /// Begins slices towards a group until its window is full.
    pub(in crate::cluster) fn pump(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        group: GroupId,
    ) {
        while storage.inventory.group(group).resync_in_flight < storage.settings.resync_window {
            // A component that cannot continue now must not hold up those behind it.
            let mut position = 0;
            let begun = loop {
                let Some(id) = storage.inventory.group(group).filling.get(position).copied() else {
                    break false;
                };
                match storage.next_slice(id) {
                    Next::Slice(range) => {
                        storage.announce(id);
                        self.begin_slice(storage, requests, id, group, range);
                        break true;
                    }
                    Next::Waiting => position += 1,
                    Next::Blocked => {
                        storage.inventory.group_mut(group).filling.retain(|filled| *filled != id);
                        if let Some(component) = storage.objects.component_mut(id)
                            && let Some(copy) = &mut component.copy
                        {
                            copy.blocked = true;
                        }
                        storage.announce(id);
                    }
                    Next::Complete => {
                        storage.inventory.group_mut(group).filling.retain(|filled| *filled != id);
                        if let Some(component) = storage.objects.component_mut(id) {
                            component.copy = None;
                        }
                        self.fill_complete(storage, requests, id);
                    }
                }
            };
            if !begun {
                return;
            }
        }
    }

    fn begin_slice(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        id: ComponentId,
        group: GroupId,
        range: RowRange,
    ) {
        let Some(component) = storage.objects.component(id) else { return };
        let Some(copy) = &component.copy else { return };
        let (epoch, volume) = (copy.epoch, component.volume);
        let purpose = Purpose::Resync { component: id, group, epoch };
        storage.inventory.group_mut(group).resync_in_flight += 1;
        self.resync.rate.begin(storage.clock.now());
        let part = requests.begin_copy(purpose, volume, range);
        let client = storage.inventory.host_of(group);
        let wants = storage.slice_reads(id, &range);
        requests.issue_from(storage, self, part, client, Nanos::ZERO, &wants);
    }

    pub(in crate::cluster) fn resync_phase_ended(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        key: Key,
        part: &Part,
    ) {
        let Purpose::Resync { component: id, group, epoch } = part.purpose else { return };
        // The copy may have been dropped, or begun again, while the slice was in flight.
        let alive = storage.objects.component(id).is_some_and(|component| {
            component.copy.as_ref().is_some_and(|copy| copy.epoch == epoch)
        });
        let known = alive
            && part.failed.is_empty()
            && storage.sources(id, part.range.row).is_some_and(|piece| {
                let slot = storage.objects.component(id).map_or(0, |component| component.slot);
                piece.current(slot).is_some() || row_is_known(&piece)
            });
        if known && part.phase == Phase::Reading {
            let mut wants = Wants::new();
            wants.push(Wanted {
                component: id,
                operation: Operation::Write,
                offset: part.range.row * storage.settings.stripe_unit.0
                    + u64::from(part.range.start),
                length: part.range.length,
                class: IoClass::Resync,
            });
            requests.begin_copy_write(key);
            let client = storage.inventory.host_of(group);
            return requests.issue_from(storage, self, key, client, Nanos::ZERO, &wants);
        }
        requests.end_copy(key);
        debug_assert!(storage.inventory.group(group).resync_in_flight > 0, "a slice ends once");
        storage.inventory.group_mut(group).resync_in_flight -= 1;
        if known {
            self.commit_slice(storage, id, &part.range);
        }
        if alive {
            storage.slice_ended(id, part.range.row, known);
        }
        self.pump(storage, requests, group);
    }

    fn commit_slice(&mut self, storage: &mut Storage, id: ComponentId, range: &RowRange) {
        let (Some(piece), Some(component)) =
            (storage.sources(id, range.row), storage.objects.component(id))
        else {
            return;
        };
        let (slot, reason) = (component.slot, component.reason);
        let piece = piece.with_range(range.start, range.length);
        storage.outbox.command(DataCommand::Resync { piece, target: id, slot });
        self.resync.count(storage.clock.now(), reason, u64::from(range.length));
    }

    /// Nothing of the component is stale any more.
    fn fill_complete(&mut self, storage: &mut Storage, requests: &mut Requests, id: ComponentId) {
        let Some(component) = storage.objects.component_mut(id) else { return };
        let (volume, set, slot, reason) =
            (component.volume, component.set, component.slot, component.reason);
        debug_assert!(component.stale.is_empty(), "what is complete has nothing stale");
        let was_filling = component.announced != crate::cluster::event::ComponentState::Active;
        let Some(object) = storage.objects.object_mut(volume, Layout::Present) else { return };
        let place = object.slot_mut(set, slot);
        if place.replacement == Some(id) {
            let old = place.current;
            *place = crate::cluster::object::Slot { current: id, replacement: None };
            storage.objects.shape_changed();
            storage.remove_component(old);
        } else if place.current == id && place.replacement.is_some() && was_filling {
            storage.drop_replacement(volume, set, slot);
        }
        storage.announce(id);
        if was_filling {
            storage.outbox.notice(storage.clock.now(), Notice::ResyncFinished { volume, reason });
            self.fill_changed_object(storage, requests, volume, reason);
        }
    }

    fn fill_changed_object(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        volume: VolumeId,
        reason: ResyncReason,
    ) {
        storage.announce_availability(volume);
        if reason == ResyncReason::Rebalance {
            self.rebalance_now(storage, requests);
        }
    }

    /// Looks again at copies that are blocked, a little later.
    pub(in crate::cluster) fn schedule_retry(&mut self, storage: &mut Storage) {
        if !self.resync.retry_scheduled {
            self.resync.retry_scheduled = true;
            let at = storage.clock.now() + storage.settings.rebalance_interval;
            storage.clock.schedule(at, Timer::RetryCopies);
        }
    }
}
