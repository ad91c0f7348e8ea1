//! Components made, replaced and removed: repair of what is gone, and the moves of rebalancing.

use super::cluster::Cluster;
use super::data_command::{DataCommand, Durability};
use super::event::{ComponentState, Notice, ResyncReason};
use super::ids::{ComponentId, HostId, VolumeId};
use super::object::{Component, Layout, Slot};
use super::placement::{Place, PlacementRefusal, place_component, place_witness};
use super::regions::RegionSet;
use super::volatile::Volatile;
use std::collections::BTreeSet;

/// Slots of one set that may be replaced at the same time: as many as can fail.
const REPLACEMENTS_MAX: usize = 2;

/// What a new component is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewComponent {
    pub(super) volume: VolumeId,
    pub(super) layout: Layout,
    pub(super) set: u32,
    pub(super) slot: u8,
    pub(super) place: Place,
    pub(super) length: u64,
    pub(super) reserved: u64,
    pub(super) reason: ResyncReason,
}

impl Cluster {
    /// Makes an empty component.
    pub(super) fn create_component(&mut self, new: &NewComponent) -> ComponentId {
        self.outbox.state_changed();
        self.shape_changed();
        let id = ComponentId(self.components.len() as u32);
        let rows = new.length / self.settings.stripe_unit.0;
        let group = &mut self.groups[new.place.group.0 as usize];
        let durability = group.durability;
        let disk = &mut group.disks[usize::from(new.place.disk)];
        let base = disk.take_range(new.length, id);
        disk.used += new.reserved;
        self.hosts[group.host.0 as usize].components += 1;
        let volatile = (durability == Durability::OnFlush).then(|| Volatile::new(rows));
        self.components.push(Some(Box::new(Component {
            id,
            volume: new.volume,
            layout: new.layout,
            set: new.set,
            slot: new.slot,
            group: new.place.group,
            disk: new.place.disk,
            base,
            length: new.length,
            stale: RegionSet::new(rows),
            written: RegionSet::new(rows),
            unsure: None,
            reserved: new.reserved,
            volatile,
            reachable: true,
            announced: ComponentState::Active,
            reason: new.reason,
            copy: None,
            absence: 0,
            repair_at: None,
        })));
        self.outbox.command(DataCommand::Create {
            component: id,
            length_bytes: new.length,
            device: super::ids::DeviceId { group: new.place.group, member: new.place.disk + 1 },
            durability,
        });
        id
    }

    /// Removes a component and gives its space back.
    pub(super) fn remove_component(&mut self, id: ComponentId) {
        let unit_bytes = self.settings.stripe_unit.0 as u32;
        let Some(component) = self.components[id.0 as usize].take() else { return };
        self.outbox.state_changed();
        self.shape_changed();
        let group = &mut self.groups[component.group.0 as usize];
        group.filling.retain(|filled| *filled != id);
        let disk = &mut group.disks[usize::from(component.disk)];
        disk.used -= component.occupied_bytes(unit_bytes);
        disk.return_range(id);
        self.hosts[group.host.0 as usize].components -= 1;
        self.outbox.command(DataCommand::Remove { component: id });
    }

    /// An absent component has been absent for long enough.
    pub(super) fn repair_due(&mut self, id: ComponentId, absence: u32) {
        let due = self
            .component(id)
            .is_some_and(|component| component.absence == absence && !component.reachable);
        if due {
            self.repair_if_overdue(id);
        }
    }

    /// Rebuilds a component elsewhere if its time has come and nothing is being done about it.
    pub(super) fn repair_if_overdue(&mut self, id: ComponentId) {
        let now = self.clock.now();
        let Some(component) = self.component(id) else { return };
        let due = component.repair_at.is_some_and(|at| at <= now);
        if component.reachable || !due || component.layout != Layout::Present {
            return;
        }
        let (volume, set, slot) = (component.volume, component.set, component.slot);
        let Some(object) = self.object_mut(volume, Layout::Present) else { return };
        if object.side.is_none() {
            return;
        }
        let place = *object.slot_mut(set, slot);
        match place.replacement {
            Some(replacement) if replacement == id => {
                self.drop_replacement(volume, set, slot);
                self.repair_if_overdue(place.current);
            }
            Some(_) => {}
            None => {
                if let Err(refusal) = self.replace(volume, set, slot, ResyncReason::Repair) {
                    self.repair_blocked(volume, &refusal);
                }
            }
        }
    }

    fn repair_blocked(&mut self, volume: VolumeId, refusal: &PlacementRefusal) {
        let reason = refusal.to_string();
        let Some(state) = self.volume_mut(volume) else { return };
        if state.repair_blocked.as_ref() != Some(&reason) {
            state.repair_blocked = Some(reason.clone());
            self.outbox.notice(self.clock.now(), Notice::RepairBlocked { volume, reason });
        }
        self.schedule_retry();
    }

    /// Begins to fill another component for a slot.
    pub(super) fn replace(
        &mut self,
        volume: VolumeId,
        set: u32,
        slot: u8,
        reason: ResyncReason,
    ) -> Result<(), PlacementRefusal> {
        let Some(object) = self.object(volume, Layout::Present) else { return Ok(()) };
        let replaced = object.set(set).iter().filter(|place| place.replacement.is_some()).count();
        if replaced
            >= REPLACEMENTS_MAX.min(usize::from(object.geometry.kind.spare_members()).max(1))
        {
            return Ok(());
        }
        let rows = self.rows_with_data(volume, set);
        let needed = rows.count() * self.settings.stripe_unit.0;
        let place = self.place_for(volume, slot, set, needed)?;
        self.replace_at(volume, set, slot, place, reason, rows);
        Ok(())
    }

    /// Begins to fill another component for a slot at a chosen place.
    pub(super) fn replace_at(
        &mut self,
        volume: VolumeId,
        set: u32,
        slot: u8,
        place: Place,
        reason: ResyncReason,
        rows: RegionSet,
    ) {
        let Some(object) = self.object(volume, Layout::Present) else { return };
        let members = usize::from(object.geometry.kind.members());
        let old = object.slots[set as usize * members + usize::from(slot)].current;
        let Some((length, reserved)) =
            self.component(old).map(|component| (component.length, component.reserved))
        else {
            return;
        };
        let layout = Layout::Present;
        let new = NewComponent { volume, layout, set, slot, place, length, reserved, reason };
        let id = self.create_component(&new);
        if let Some(component) = self.component_mut(id) {
            component.stale = rows;
        }
        if let Some(object) = self.object_mut(volume, layout) {
            *object.slot_mut(set, slot) = Slot { current: old, replacement: Some(id) };
        }
        self.shape_changed();
        if let Some(state) = self.volume_mut(volume) {
            state.repair_blocked = None;
        }
        self.ensure_copy(id);
    }

    /// Rows of a set that hold data on some component.
    pub(super) fn rows_with_data(&self, volume: VolumeId, set: u32) -> RegionSet {
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
        for component in self.components.iter().flatten() {
            if component.volume == volume && component.slot == slot {
                let place = Place { group: component.group, disk: component.disk };
                if component.set == set { avoid.push(place) } else { prefer_not.push(place) }
            }
        }
        let allowed = |domain: &str| !taken.contains(domain);
        place_component(&self.map(), bytes, allowed, &avoid, &prefer_not)
    }

    /// Fault domains that hold other slots, or witnesses, of a volume.
    pub(super) fn domains_of_others(&self, volume: VolumeId, slot: Option<u8>) -> BTreeSet<String> {
        let mut taken = BTreeSet::new();
        let Some(object) = self.object(volume, Layout::Present) else { return taken };
        let members = usize::from(object.geometry.kind.members());
        for (index, place) in object.slots.iter().enumerate() {
            if slot == Some((index % members) as u8) {
                continue;
            }
            for id in place.components() {
                if let Some(component) = self.component(id) {
                    taken.insert(self.domain_of(self.host_of(component.group)));
                }
            }
        }
        if slot.is_some() {
            taken.extend(object.witnesses.iter().map(|host| self.domain_of(*host)));
        }
        taken
    }

    fn domain_of(&self, host: HostId) -> String {
        self.hosts[host.0 as usize].fault_domain.clone()
    }

    /// Gives a replacement up.
    pub(super) fn drop_replacement(&mut self, volume: VolumeId, set: u32, slot: u8) {
        let Some(object) = self.object_mut(volume, Layout::Present) else { return };
        let place = object.slot_mut(set, slot);
        let Some(replacement) = place.replacement.take() else { return };
        let reason = self.component(replacement).map(|component| component.reason);
        self.remove_component(replacement);
        if let Some(reason) = reason {
            self.outbox.notice(self.clock.now(), Notice::ResyncAbandoned { volume, reason });
        }
    }

    /// Moves witnesses off hosts that have been gone for the repair delay.
    pub(super) fn repair_witnesses(&mut self) {
        let (now, delay) = (self.clock.now(), self.settings.repair_delay);
        let gone: BTreeSet<HostId> = self
            .hosts
            .iter()
            .filter(|host| host.gone_since.is_some_and(|since| since + delay <= now))
            .map(|host| host.id)
            .collect();
        let volumes: Vec<VolumeId> =
            self.volumes.iter().flatten().map(|volume| volume.id).collect();
        for volume in volumes {
            self.move_witnesses(volume, &gone);
        }
    }

    fn move_witnesses(&mut self, volume: VolumeId, gone: &BTreeSet<HostId>) {
        let Some(object) = self.object(volume, Layout::Present) else { return };
        if object.side.is_none() {
            return;
        }
        for (index, host) in object.witnesses.clone().into_iter().enumerate() {
            if !gone.contains(&host) {
                continue;
            }
            let mut taken = self.domains_of_others(volume, None);
            let Some(object) = self.object(volume, Layout::Present) else { return };
            taken.extend(object.witnesses.iter().map(|host| self.domain_of(*host)));
            let target = place_witness(&self.map(), |domain| !taken.contains(domain));
            match target {
                Some(target) => {
                    self.outbox.state_changed();
                    self.hosts[host.0 as usize].components -= 1;
                    self.hosts[target.0 as usize].components += 1;
                    if let Some(object) = self.object_mut(volume, Layout::Present) {
                        object.witnesses[index] = target;
                    }
                }
                None => self.schedule_retry(),
            }
        }
    }
}
