//! Making and removing components: numbers, space on devices, and the commands for the data plane.
//!
//! What is not here: why one is needed, where it goes (`placement`), and which slot it fills.

use super::data_command::{DataCommand, DurabilityPoint};
use super::event::{ComponentState, ResyncReason};
use super::ids::{ComponentId, DeviceId, VolumeId};
use super::object::{Component, Layout};
use super::placement::Place;
use super::regions::RegionSet;
use super::storage::Storage;
use super::volatile::Volatile;

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

impl Storage {
    /// Makes an empty component.
    pub(super) fn create_component(&mut self, new: &NewComponent) -> ComponentId {
        self.outbox.state_changed();
        let id = self.objects.next_component();
        let rows = new.length / self.settings.stripe_unit.0;
        let group = self.inventory.group_mut(new.place.group);
        let durability = group.durability;
        let disk = &mut group.disks[usize::from(new.place.disk)];
        let base = disk.take_range(new.length, id);
        disk.used += new.reserved;
        self.inventory.count_on_host(self.inventory.host_of(new.place.group));
        // Other devices lose nothing in a power cut, so there is nothing to record.
        let volatile = (durability == DurabilityPoint::OnFlush).then(|| Volatile::new(rows));
        self.objects.add_component(Component {
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
        });
        self.outbox.command(DataCommand::Create {
            component: id,
            length_bytes: new.length,
            device: DeviceId { group: new.place.group, member: new.place.disk + 1 },
            durability,
        });
        id
    }

    /// Removes a component and gives its space back.
    pub(super) fn remove_component(&mut self, id: ComponentId) {
        let unit_bytes = self.settings.stripe_unit.0 as u32;
        let Some(component) = self.objects.take_component(id) else { return };
        self.outbox.state_changed();
        let group = self.inventory.group_mut(component.group);
        group.filling.retain(|filled| *filled != id);
        let disk = &mut group.disks[usize::from(component.disk)];
        debug_assert!(component.occupied_bytes(unit_bytes) <= disk.used, "its space is counted");
        disk.used -= component.occupied_bytes(unit_bytes);
        disk.return_range(id);
        self.inventory.discount_on_host(self.inventory.host_of(component.group));
        self.outbox.command(DataCommand::Remove { component: id });
    }
}
