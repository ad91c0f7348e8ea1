//! The cluster's side of data reduction: destaged ranges, buffered blocks, and the disk group of a component.
//!
//! What is not here: fingerprints and compression of real bytes. The `datastore` crate computes them and reports the result.

use super::cluster::Cluster;
use super::ids::{ComponentId, GroupId};
use super::inventory::Inventory;
use super::objects::Objects;
use super::storage::Storage;
use crate::disk_group::Reduction;
use crate::reduction::{BLOCK_BYTES, Observed};

/// Contiguous blocks of a component to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// The component.
    pub component: ComponentId,
    /// Its disk group.
    pub group: GroupId,
    /// First block.
    pub first: u64,
    /// Number of blocks.
    pub blocks: u64,
}

impl Inventory {
    /// The disk groups that deduplicate and compress.
    pub(super) fn reducing_groups(&self) -> Vec<GroupId> {
        let reduces = |id: &GroupId| self.reduces(*id);
        self.groups().iter().map(|group| group.id).filter(reduces).collect()
    }

    /// Whether a disk group deduplicates and compresses.
    pub(super) fn reduces(&self, group: GroupId) -> bool {
        self.groups()
            .get(group.0 as usize)
            .is_some_and(|group| group.engine.spec().reduction != Reduction::Off)
    }

    /// What a group destaged since the last call, by component; nothing the first time. What belonged to components that
    /// are gone is left out.
    pub(super) fn take_destaged(&mut self, group: GroupId) -> Vec<Leaving> {
        let Some(entry) = self.find_group_mut(group) else { return Vec::new() };
        let mut found = Vec::new();
        for (disk, offset, length) in entry.engine.take_destaged() {
            let (mut at, end) = (offset, offset + u64::from(length));
            while at < end {
                let (owner, rest) = entry.disks[disk].owner_from(at);
                let bytes = rest.min(end - at);
                if let Some((component, within)) = owner {
                    let block = BLOCK_BYTES as u64;
                    let (first, blocks) = (within / block, bytes / block);
                    found.push(Leaving { component, group, first, blocks });
                }
                at += bytes;
            }
        }
        found
    }

    /// Tells a group what deduplication and compression made of the real bytes.
    pub(super) fn set_reduction_observed(&mut self, group: GroupId, observed: Observed) {
        if let Some(group) = self.find_group_mut(group) {
            group.engine.set_reduction_observed(
                observed.stored_bytes_per_destaged_byte,
                observed.unique_share,
            );
        }
    }
}

impl Objects {
    /// The disk group of a component that exists.
    pub(super) fn place_of(&self, component: ComponentId) -> Option<GroupId> {
        self.component(component).map(|component| component.group)
    }
}

impl Storage {
    /// Which of 64 blocks of a component, from `first` on, have a version in the write buffer: one bit each.
    pub(super) fn buffered(&self, component: ComponentId, first: u64) -> u64 {
        let Some(place) = self.objects.component(component) else { return 0 };
        let group = self.inventory.group(place.group);
        group.engine.buffered(usize::from(place.disk), place.base / BLOCK_BYTES as u64 + first)
    }
}

impl Cluster {
    /// The disk groups that deduplicate and compress.
    pub fn reducing_groups(&self) -> Vec<GroupId> {
        self.storage.inventory.reducing_groups()
    }

    /// Whether a disk group deduplicates and compresses.
    pub fn reduces(&self, group: GroupId) -> bool {
        self.storage.inventory.reduces(group)
    }

    /// What a group destaged since the last call, by component; nothing the first time. What belonged to components that
    /// are gone is left out.
    pub fn take_destaged(&mut self, group: GroupId) -> Vec<Leaving> {
        self.storage.inventory.take_destaged(group)
    }

    /// The disk group of a component that exists.
    pub fn place_of(&self, component: ComponentId) -> Option<GroupId> {
        self.storage.objects.place_of(component)
    }

    /// Which of 64 blocks of a component, from `first` on, have a version in the write buffer: one bit each.
    pub fn buffered(&self, component: ComponentId, first: u64) -> u64 {
        self.storage.buffered(component, first)
    }

    /// Tells a group what deduplication and compression made of the real bytes.
    pub fn set_reduction_observed(&mut self, group: GroupId, observed: Observed) {
        self.storage.inventory.set_reduction_observed(group, observed)
    }
}
