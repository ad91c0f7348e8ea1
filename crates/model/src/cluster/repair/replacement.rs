//! Replacing components: for repair, and for the moves of rebalancing.
//!
//! What is not here: making and removing a component (`component_lifecycle`), the choice of a place (`placement`) and the
//! copy that fills a new component (`resync`).

use super::Repair;
use crate::cluster::component_lifecycle::NewComponent;
use crate::cluster::event::{Notice, ResyncReason};
use crate::cluster::geometry::RowRange;
use crate::cluster::ids::{ComponentId, HostId, VolumeId};
use crate::cluster::inventory::Inventory;
use crate::cluster::object::{Layout, Slot};
use crate::cluster::objects::Objects;
use crate::cluster::operation::{Failed, FailedHow};
use crate::cluster::placement::{Place, PlacementRefusal, place_component, place_witness};
use crate::cluster::regions::RegionSet;
use crate::cluster::requests::Requests;
use crate::cluster::row_members::row_is_known;
use crate::cluster::storage::Storage;
use std::collections::BTreeSet;

/// Slots of one set that may be replaced at the same time: as many as can fail.
const REPLACEMENTS_MAX: usize = 2;

/// Another component for a slot of a volume's present layout.
#[derive(Clone, Copy, Debug)]
pub(in crate::cluster) struct Replacement {
    pub(in crate::cluster) volume: VolumeId,
    pub(in crate::cluster) set: u32,
    pub(in crate::cluster) slot: u8,
    pub(in crate::cluster) place: Place,
    pub(in crate::cluster) reason: ResyncReason,
}

impl Inventory {
    fn domain_of(&self, host: HostId) -> String {
        self.host(host).fault_domain.clone()
    }
}

impl Objects {
    /// Rows of a set that hold data on some component.
    pub(in crate::cluster) fn rows_with_data(&self, volume: VolumeId, set: u32) -> RegionSet {
        let rows = self.object(volume, Layout::Present).map_or(0, |o| o.geometry.rows_per_set());
        let mut all = RegionSet::new(rows);
        let Some(object) = self.object(volume, Layout::Present) else { return all };
        for id in object.set(set).iter().flat_map(Slot::components) {
            if let Some(component) = self.component(id) {
                all.unite(&component.written);
                // What it missed holds data too, or did.
                all.unite(&component.stale);
            }
        }
        all
    }
}

impl Storage {
    /// A place for another component of a slot: not in a fault domain of other slots or witnesses.
    fn place_for(
        &self,
        volume: VolumeId,
        slot: u8,
        set: u32,
        bytes: u64,
    ) -> Result<Place, PlacementRefusal> {
        let taken = self.domains_of_others(volume, Some(slot));
        let mut avoid = Vec::new();
        let mut prefer_not = Vec::new();
        for component in self.objects.components() {
            if component.volume == volume && component.slot == slot {
                let place = Place { group: component.group, disk: component.disk };
                // The device of the replaced component is no alternative. A device with another
                // stripe of the same member is, but would be used twice.
                if component.set == set { avoid.push(place) } else { prefer_not.push(place) }
            }
        }
        let allowed = |domain: &str| !taken.contains(domain);
        place_component(&self.map(), bytes, allowed, &avoid, &prefer_not)
    }

    /// Fault domains that hold other slots, or witnesses, of a volume.
    pub(in crate::cluster) fn domains_of_others(
        &self,
        volume: VolumeId,
        slot: Option<u8>,
    ) -> BTreeSet<String> {
        let mut taken = BTreeSet::new();
        let Some(object) = self.objects.object(volume, Layout::Present) else { return taken };
        let members = usize::from(object.geometry.kind.members());
        for (index, place) in object.slots.iter().enumerate() {
            if slot == Some((index % members) as u8) {
                continue;
            }
            for id in place.components() {
                if let Some(component) = self.objects.component(id) {
                    taken.insert(self.inventory.domain_of(self.inventory.host_of(component.group)));
                }
            }
        }
        if slot.is_some() {
            taken.extend(object.witnesses.iter().map(|host| self.inventory.domain_of(*host)));
        }
        taken
    }

    /// Whether a replacement has rows that neither the component it replaces nor the other slots within reach have: after a power
    /// cut it may have been chosen as the truth.
    pub(in crate::cluster) fn is_needed(&self, replacement: ComponentId, old: ComponentId) -> bool {
        let (Some(new), Some(missing)) =
            (self.objects.component(replacement), self.objects.component(old))
        else {
            return false;
        };
        debug_assert!(new.set == missing.set && new.slot == missing.slot, "both fill one slot");
        let mut both = Failed::NONE;
        both.push(replacement, FailedHow::Gone);
        both.push(old, FailedHow::Gone);
        missing.stale.iter().filter(|row| new.is_current(*row)).any(|row| {
            let range = RowRange { set: new.set, row, start: 0, length: 0 };
            let others = self.piece_now(new.volume, new.layout, &range, &both);
            !others.is_some_and(|piece| row_is_known(&piece))
        })
    }

    /// Gives a replacement up.
    pub(in crate::cluster) fn drop_replacement(&mut self, volume: VolumeId, set: u32, slot: u8) {
        let Some(object) = self.objects.object_mut(volume, Layout::Present) else { return };
        let place = object.slot_mut(set, slot);
        let Some(replacement) = place.replacement.take() else { return };
        let reason = self.objects.component(replacement).map(|component| component.reason);
        self.remove_component(replacement);
        if let Some(reason) = reason {
            self.outbox.notice(self.clock.now(), Notice::ResyncAbandoned { volume, reason });
        }
    }
}

impl Repair {
    /// An absent component has been absent for long enough.
    pub(in crate::cluster) fn repair_due(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        id: ComponentId,
        absence: u32,
    ) {
        let due = storage
            .objects
            .component(id)
            .is_some_and(|component| component.absence == absence && !component.reachable);
        if due {
            self.repair_if_overdue(storage, requests, id);
        }
    }

    /// Rebuilds a component elsewhere if its time has come and nothing is being done about it.
    pub(in crate::cluster) fn repair_if_overdue(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        id: ComponentId,
    ) {
        let now = storage.clock.now();
        let Some(component) = storage.objects.component(id) else { return };
        let due = component.repair_at.is_some_and(|at| at <= now);
        if component.reachable || !due || component.layout != Layout::Present {
            return;
        }
        let (volume, set, slot) = (component.volume, component.set, component.slot);
        let Some(object) = storage.objects.object_mut(volume, Layout::Present) else { return };
        if object.side.is_none() {
            return;
        }
        let place = *object.slot_mut(set, slot);
        match place.replacement {
            // Its devices may come back, and nothing else has what it has.
            Some(replacement) if storage.is_needed(replacement, place.current) => {}
            Some(replacement) if replacement == id => {
                storage.drop_replacement(volume, set, slot);
                self.repair_if_overdue(storage, requests, place.current);
            }
            Some(_) => {}
            None => {
                if let Err(refusal) =
                    self.replace(storage, requests, volume, set, slot, ResyncReason::Repair)
                {
                    self.repair_blocked(storage, volume, &refusal);
                }
            }
        }
    }

    fn repair_blocked(
        &mut self,
        storage: &mut Storage,
        volume: VolumeId,
        refusal: &PlacementRefusal,
    ) {
        let reason = refusal.to_string();
        let Some(state) = storage.objects.volume_mut(volume) else { return };
        if state.repair_blocked.as_ref() != Some(&reason) {
            state.repair_blocked = Some(reason.clone());
            storage.outbox.notice(storage.clock.now(), Notice::RepairBlocked { volume, reason });
        }
        self.schedule_retry(storage);
    }

    /// Begins to fill another component for a slot.
    pub(in crate::cluster) fn replace(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        volume: VolumeId,
        set: u32,
        slot: u8,
        reason: ResyncReason,
    ) -> Result<(), PlacementRefusal> {
        let Some(object) = storage.objects.object(volume, Layout::Present) else { return Ok(()) };
        let replaced = object.set(set).iter().filter(|place| place.replacement.is_some()).count();
        if replaced
            >= REPLACEMENTS_MAX.min(usize::from(object.geometry.kind.spare_members()).max(1))
        {
            return Ok(());
        }
        let rows = storage.objects.rows_with_data(volume, set);
        let needed = rows.count() * storage.settings.stripe_unit.0;
        let place = storage.place_for(volume, slot, set, needed)?;
        let replacement = Replacement { volume, set, slot, place, reason };
        self.replace_at(storage, requests, &replacement, rows);
        Ok(())
    }

    /// Begins to fill another component for a slot at a chosen place.
    pub(in crate::cluster) fn replace_at(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        replacement: &Replacement,
        rows: RegionSet,
    ) {
        let Replacement { volume, set, slot, place, reason } = *replacement;
        let Some(object) = storage.objects.object(volume, Layout::Present) else { return };
        let members = usize::from(object.geometry.kind.members());
        let old = object.slots[set as usize * members + usize::from(slot)].current;
        let Some((length, reserved)) =
            storage.objects.component(old).map(|component| (component.length, component.reserved))
        else {
            return;
        };
        let layout = Layout::Present;
        let new = NewComponent { volume, layout, set, slot, place, length, reserved, reason };
        let id = storage.create_component(&new);
        if let Some(component) = storage.objects.component_mut(id) {
            // Rows that hold data nowhere need no copy: the new component is empty there, too.
            component.stale = rows;
        }
        if let Some(object) = storage.objects.object_mut(volume, layout) {
            debug_assert!(
                object.slot_mut(set, slot).replacement.is_none(),
                "a slot has one replacement"
            );
            *object.slot_mut(set, slot) = Slot { current: old, replacement: Some(id) };
        }
        storage.objects.shape_changed();
        if let Some(state) = storage.objects.volume_mut(volume) {
            state.repair_blocked = None;
        }
        self.ensure_copy(storage, requests, id);
    }

    /// Moves witnesses off hosts that have been gone for the repair delay.
    pub(in crate::cluster) fn repair_witnesses(&mut self, storage: &mut Storage) {
        let (now, delay) = (storage.clock.now(), storage.settings.repair_delay);
        let gone = storage.membership.gone_for(delay, now);
        let volumes: Vec<VolumeId> = storage.objects.volume_ids();
        for volume in volumes {
            self.move_witnesses(storage, volume, &gone);
        }
    }

    fn move_witnesses(&mut self, storage: &mut Storage, volume: VolumeId, gone: &BTreeSet<HostId>) {
        let Some(object) = storage.objects.object(volume, Layout::Present) else { return };
        if object.side.is_none() {
            return;
        }
        for (index, host) in object.witnesses.clone().into_iter().enumerate() {
            if !gone.contains(&host) {
                continue;
            }
            let mut taken = storage.domains_of_others(volume, None);
            let Some(object) = storage.objects.object(volume, Layout::Present) else { return };
            taken.extend(object.witnesses.iter().map(|host| storage.inventory.domain_of(*host)));
            let target = place_witness(&storage.map(), |domain| !taken.contains(domain));
            match target {
                Some(target) => {
                    storage.outbox.state_changed();
                    storage.inventory.discount_on_host(host);
                    storage.inventory.count_on_host(target);
                    if let Some(object) = storage.objects.object_mut(volume, Layout::Present) {
                        object.witnesses[index] = target;
                    }
                }
                None => self.schedule_retry(storage),
            }
        }
    }
}
