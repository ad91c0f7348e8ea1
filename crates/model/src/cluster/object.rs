//! What a volume consists of: sets of slots, the components in them, and the witnesses.
//!
//! A *slot* is a place in a set (a replica, a data or parity member). It is filled by its *current* component and, while
//! that one is being replaced, by a second one that is being filled. Both take writes.
//!
//! There is no stored state "active" or "stale": a component is what its stale regions and its reachability make it.

use super::cached_set::CachedSet;
use super::event::{ComponentState, ResyncReason};
use super::geometry::Geometry;
use super::ids::{ComponentId, GroupId, HostId, VolumeId};
use super::policy::Checksum;
use super::regions::RegionSet;
use super::row_copy::RowCopy;
use super::volatile::Volatile;
use underlay_core::Nanos;

/// Which of a volume's two layouts a component belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// The one that is read.
    Present,
    /// The one that a policy change is filling.
    Next,
}

/// One component.
#[derive(Clone, Debug)]
pub(super) struct Component {
    pub(super) id: ComponentId,
    pub(super) volume: VolumeId,
    pub(super) layout: Layout,
    pub(super) set: u32,
    pub(super) slot: u8,
    pub(super) group: GroupId,
    /// Capacity device in the group, from 0.
    pub(super) disk: u8,
    /// Where the component begins in the device's address space.
    pub(super) base: u64,
    pub(super) length: u64,
    /// Regions whose content is not what the volume holds.
    pub(super) stale: RegionSet,
    /// Regions that occupy space.
    pub(super) written: RegionSet,
    /// Regions in which blocks were lost before the last restart: among equals, another member is the truth.
    pub(super) unsure: Option<Box<RegionSet>>,
    /// Bytes set aside from the beginning.
    pub(super) reserved: u64,
    /// What a power cut may take back, where it takes unflushed writes.
    pub(super) volatile: Option<Volatile>,
    /// Whether the object's side reaches it and its devices work.
    pub(super) reachable: bool,
    /// What was last announced.
    pub(super) announced: ComponentState,
    /// Why it is being filled, when it is.
    pub(super) reason: ResyncReason,
    /// The copy in progress.
    pub(super) copy: Option<Box<Copy>>,
    /// Tells timers of earlier absences from the present one.
    pub(super) absence: u32,
    /// When an absent component is to be rebuilt.
    pub(super) repair_at: Option<Nanos>,
}

/// A component's copy in progress.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// Tells slices of an earlier copy from this one.
    pub(super) epoch: u32,
    /// Rows of which slices are in flight.
    pub(super) rows: Vec<RowCopy>,
    /// Where to look for the next stale row.
    pub(super) cursor: u64,
    /// No stale row has a source, or no space: waits for a change of the cluster.
    pub(super) blocked: bool,
}

impl Component {
    /// Whether the row's content is what the volume holds.
    pub(super) fn is_current(&self, row: u64) -> bool {
        !self.stale.contains(row)
    }

    /// Space that the device has given to the component.
    pub(super) fn occupied_bytes(&self, unit_bytes: u32) -> u64 {
        (self.written.count() * u64::from(unit_bytes)).max(self.reserved)
    }
}

/// A place in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) current: ComponentId,
    pub(super) replacement: Option<ComponentId>,
}

impl Slot {
    /// The components that fill the slot.
    pub(super) fn components(&self) -> impl Iterator<Item = ComponentId> + use<> {
        std::iter::once(self.current).chain(self.replacement)
    }
}

/// One layout of a volume.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) geometry: Geometry,
    pub(super) checksum: Checksum,
    /// `set * members + slot`.
    pub(super) slots: Vec<Slot>,
    /// Hosts that hold a witness.
    pub(super) witnesses: Vec<HostId>,
    /// The side of the cluster that has more than half of the votes.
    pub(super) side: Option<u32>,
    /// Per set: rows whose members may differ after a power cut, until one of them is chosen as the truth.
    pub(super) in_doubt: Vec<RegionSet>,
    /// Per set: its entry of the cache in `whole_set`; empty at first.
    pub(super) cached_sets: Vec<CachedSet>,
}

impl Object {
    /// The slots of a set.
    pub(super) fn set(&self, set: u32) -> &[Slot] {
        let members = usize::from(self.geometry.kind.members());
        debug_assert!(set < self.geometry.sets, "set {set} of {}", self.geometry.sets);
        &self.slots[set as usize * members..][..members]
    }

    /// One slot.
    pub(super) fn slot_mut(&mut self, set: u32, slot: u8) -> &mut Slot {
        let members = usize::from(self.geometry.kind.members());
        &mut self.slots[set as usize * members + usize::from(slot)]
    }

    /// All components, of all sets.
    pub(super) fn components(&self) -> impl Iterator<Item = ComponentId> + '_ {
        self.slots.iter().flat_map(Slot::components)
    }

    /// Votes of all slots and witnesses. A slot has one, a witness as many as there are sets, so that a
    /// replica weighs as much as a witness.
    pub(super) fn votes(&self) -> u64 {
        self.slots.len() as u64 + self.witnesses.len() as u64 * u64::from(self.geometry.sets)
    }
}
