//! Space accounting: occupied regions of components, and used space of devices.
//!
//! A component occupies its written regions or its reservation, whichever is more. The used space of a device is the sum over
//! its components and is updated with each change; [`Cluster::space_is_exact`] verifies it.

use super::cluster::Cluster;
use super::data_command::{Piece, PieceMember};
use super::geometry::RowRange;
use super::ids::ComponentId;
use super::row_plan::touched;
use super::storage::Storage;

impl Storage {
    /// The component holds data in that row from now on.
    pub(super) fn occupy(&mut self, id: ComponentId, row: u64) {
        if let Some(volatile) =
            self.objects.component_mut(id).and_then(|found| found.volatile.as_mut())
        {
            volatile.keep_space(row);
        }
        self.change_space(id, |written| written.insert(row));
    }

    /// The component holds data in all these rows from now on. For what was written before the beginning.
    pub(super) fn occupy_rows(&mut self, id: ComponentId, rows: &super::regions::RegionSet) {
        self.change_space(id, |written| {
            written.unite(rows);
            true
        });
    }

    /// The component took a write of that row, or a discard that leaves nothing of it.
    #[inline]
    pub(super) fn row_changed(&mut self, id: ComponentId, row: u64, emptied: bool) {
        let Some(component) = self.objects.component_mut(id) else { return };
        match &mut component.volatile {
            Some(volatile) if emptied => return volatile.discard(row),
            None if emptied => return self.release(id, row),
            Some(volatile) => volatile.write(row),
            None => {}
        }
        // The usual case: the space is taken before a write begins.
        if !component.written.contains(row) {
            self.occupy(id, row);
        }
    }

    /// The component holds nothing in that row any more.
    pub(super) fn release(&mut self, id: ComponentId, row: u64) {
        self.change_space(id, |written| written.remove(row));
    }

    fn change_space(
        &mut self,
        id: ComponentId,
        change: impl FnOnce(&mut super::regions::RegionSet) -> bool,
    ) {
        let unit_bytes = self.settings.stripe_unit.0 as u32;
        let Some(component) = self.objects.component_mut(id) else { return };
        let before = component.occupied_bytes(unit_bytes);
        if !change(&mut component.written) {
            return;
        }
        let after = component.occupied_bytes(unit_bytes);
        let group = self.inventory.group_mut(component.group);
        let disk = &mut group.disks[usize::from(component.disk)];
        debug_assert!(before <= disk.used, "a component's space is counted on its device");
        debug_assert!(
            after <= component.length.max(component.reserved),
            "a component stays within itself"
        );
        disk.used = disk.used + after - before;
    }

    /// Whether the component's device has room for one more region of it.
    pub(super) fn has_room(&self, id: ComponentId, row: u64) -> bool {
        let Some(component) = self.objects.component(id) else { return false };
        if component.written.contains(row) {
            return true;
        }
        let unit_bytes = self.settings.stripe_unit.0;
        let within_reserve = (component.written.count() + 1) * unit_bytes <= component.reserved;
        let group = self.inventory.group(component.group);
        within_reserve || group.disks[usize::from(component.disk)].free() >= unit_bytes
    }

    /// Takes the space a write needs on all members; takes nothing when one of them has no room.
    pub(super) fn allocate(&mut self, range: &RowRange, piece: &Piece) -> bool {
        let row = range.row;
        let holds = |member: &PieceMember| {
            self.objects
                .component(member.component)
                .is_none_or(|component| component.written.contains(row))
        };
        if piece.members().iter().all(holds) {
            return true;
        }
        let ranges = touched(piece.kind, piece.unit_bytes, range);
        let new =
            |member: &PieceMember| !holds(member) && !ranges[usize::from(member.slot)].is_empty();
        if !piece.members().iter().any(new) {
            return true;
        }
        let needing: Vec<ComponentId> =
            piece.members().iter().filter(|member| new(member)).map(|m| m.component).collect();
        if !needing.iter().all(|id| self.has_room(*id, row)) {
            return false;
        }
        for id in needing {
            self.occupy(id, row);
        }
        true
    }

    /// Whether the used space of each device is the sum over its components.
    pub(super) fn space_is_exact(&self) -> bool {
        let unit_bytes = self.settings.stripe_unit.0 as u32;
        self.inventory.groups().iter().all(|group| {
            group.disks.iter().enumerate().all(|(index, disk)| {
                let here = || {
                    self.objects.components().filter(move |component| {
                        component.group == group.id && usize::from(component.disk) == index
                    })
                };
                let used: u64 = here().map(|component| component.occupied_bytes(unit_bytes)).sum();
                let promised: u64 = here().map(|component| component.length).sum();
                used == disk.used && promised == disk.promised
            })
        })
    }
}

impl Cluster {
    /// Whether the used space of each device is the sum over its components.
    pub fn space_is_exact(&self) -> bool {
        self.storage.space_is_exact()
    }
}
