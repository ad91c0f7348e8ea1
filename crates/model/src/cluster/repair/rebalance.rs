//! Rebalancing: moves components from full devices to empty ones.
//!
//! Looked at in intervals and when a move ends. *Reactive*: a device is fuller than the limit (80 %). *Proactive*: the
//! fullest and the emptiest device differ by more than the variance (30 %), until they differ by half of it. One component is
//! moved at a time, the largest that does not overshoot; the slots of an object keep their fault domains apart.

use super::Repair;
use super::replacement::Replacement;
use crate::cluster::event::ResyncReason;
use crate::cluster::ids::ComponentId;
use crate::cluster::inventory::Inventory;
use crate::cluster::membership::MAIN_SIDE;
use crate::cluster::object::{Component, Layout};
use crate::cluster::placement::Place;
use crate::cluster::requests::Requests;
use crate::cluster::storage::Storage;

impl Inventory {
    fn fullness(&self, place: Place) -> u64 {
        self.group(place.group).disks[usize::from(place.disk)].fullness()
    }
}

impl Storage {
    /// All working devices on hosts that are seen.
    pub(in crate::cluster) fn usable_places(&self) -> Vec<Place> {
        self.inventory
            .groups()
            .iter()
            .filter(|group| self.membership.is_member(group.host))
            .flat_map(|group| {
                (0..group.disks.len() as u8)
                    .filter(|disk| group.works(*disk))
                    .map(|disk| Place { group: group.id, disk })
            })
            .collect()
    }

    fn better_place(
        &self,
        id: ComponentId,
        bytes: u64,
        source: Place,
        places: &[Place],
    ) -> Option<Place> {
        let component = self.objects.component(id)?;
        let Component { volume, set, slot, .. } = *component;
        let object = self.objects.object(volume, Layout::Present)?;
        let undisturbed = object.side == Some(MAIN_SIDE)
            && object.set(set).iter().all(|place| place.replacement.is_none())
            && self.objects.object(volume, Layout::Next).is_none();
        if !undisturbed {
            return None;
        }
        let taken = self.domains_of_others(volume, Some(slot));
        let limit = self.inventory.fullness(source);
        places.iter().copied().find(|place| {
            let group = self.inventory.group(place.group);
            let disk = &group.disks[usize::from(place.disk)];
            let host = self.inventory.host(group.host);
            let after = (u128::from(disk.used + bytes) * 10_000 / u128::from(disk.capacity)) as u64;
            let mate = |id: ComponentId| {
                self.objects.component(id).is_some_and(|mate| {
                    mate.slot == slot && mate.group == place.group && mate.disk == place.disk
                })
            };
            *place != source
                && after < limit
                && disk.free() >= bytes
                && host.components < self.settings.components_per_host
                && !taken.contains(&host.fault_domain)
                && !object.components().any(mate)
        })
    }
}

impl Repair {
    /// Begins a move if one is needed and none is under way.
    pub(in crate::cluster) fn rebalance_now(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
    ) {
        let moving = storage.objects.components().any(|component| {
            component.reason == ResyncReason::Rebalance && !component.stale.is_empty()
        });
        if moving {
            return;
        }
        let mut places = storage.usable_places();
        places.sort_by_key(|place| (storage.inventory.fullness(*place), *place));
        let (Some(emptiest), Some(fullest)) = (places.first(), places.last()) else { return };
        let (least, most) =
            (storage.inventory.fullness(*emptiest), storage.inventory.fullness(*fullest));
        debug_assert!(least <= most, "devices are in order of fullness");
        if let Some(variance) = storage.settings.rebalance_variance_percent {
            let threshold = u64::from(variance) * 100;
            let limit = if self.rebalancing.evening_out { threshold / 2 } else { threshold };
            self.rebalancing.evening_out = most - least > limit;
        }
        let too_full = most > u64::from(storage.settings.rebalance_full_percent) * 100;
        if too_full || self.rebalancing.evening_out {
            for source in places.iter().rev() {
                let full = storage.inventory.fullness(*source);
                let concerns = full > u64::from(storage.settings.rebalance_full_percent) * 100
                    || (self.rebalancing.evening_out && full == most);
                if !concerns || self.move_something(storage, requests, *source, &places) {
                    return;
                }
            }
        }
    }

    /// Moves the largest component of a device that makes neither place fuller than this one was.
    fn move_something(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        source: Place,
        places: &[Place],
    ) -> bool {
        let unit_bytes = storage.settings.stripe_unit.0 as u32;
        let mut here: Vec<(u64, ComponentId)> = storage
            .objects
            .components()
            .filter(|component| component.group == source.group && component.disk == source.disk)
            .filter(|component| component.layout == Layout::Present && component.reachable)
            .filter(|component| component.stale.is_empty() && component.written.count() > 0)
            .map(|component| (component.occupied_bytes(unit_bytes), component.id))
            .collect();
        here.sort_unstable_by(|a, b| b.cmp(a));
        for (bytes, id) in here {
            if let Some(target) = storage.better_place(id, bytes, source, places) {
                let Some(component) = storage.objects.component(id) else { continue };
                let (volume, set, slot) = (component.volume, component.set, component.slot);
                let rows = component.written.clone();
                let (place, reason) = (target, ResyncReason::Rebalance);
                let replacement = Replacement { volume, set, slot, place, reason };
                self.replace_at(storage, requests, &replacement, rows);
                return true;
            }
        }
        false
    }
}
