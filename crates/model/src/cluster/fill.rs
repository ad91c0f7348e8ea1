//! Filling a cluster at its start: capacity devices that hold other data already.
//!
//! That data consists of internal volumes: they are not reported to the driver and get no requests. They take space, are
//! moved by rebalancing, and have one copy. Their bytes are zeros, so they take no space in the backing files. Moving
//! them costs the modelled devices as much as moving other data.
//!
//! Each of these volumes has at most one component on a device, since rebalancing never brings two components of the same
//! part of a volume together.

use super::cluster::Cluster;
use super::geometry::Geometry;
use super::ids::VolumeId;
use super::object::Layout;
use super::placement::{Place, Placed, PlacementRefusal};
use super::policy::{Checksum, Policy};
use super::regions::RegionSet;
use super::storage::Storage;
use super::volume::Volume;
use underlay_core::Nanos;

/// Components on a device that is full; fewer would be moved in too large steps.
const COMPONENTS_PER_DEVICE: u64 = 100;

/// No volume that a driver creates begins with this.
const NAME: &str = "(fill)";

const POLICY: Policy =
    Policy { failures_to_tolerate: 0, checksum: Checksum::Off, ..Policy::DEFAULT };

impl Volume {
    /// Whether it stands for other data.
    pub(super) fn is_fill(&self) -> bool {
        self.name.starts_with(NAME)
    }
}

impl Storage {
    /// One volume with a component of that length on each of these devices, all of it written.
    fn fill_places(&mut self, places: Vec<Place>, length: u64) {
        let name = format!("{NAME} {}", self.objects.next_volume().0);
        let geometry = Geometry {
            kind: POLICY.set_kind(),
            sets: places.len() as u32,
            unit_bytes: self.settings.stripe_unit.0 as u32,
            capacity_bytes: length * places.len() as u64,
        };
        let placed = Placed { places, witnesses: Vec::new() };
        let id = self.add_volume(&name, geometry, POLICY, &placed);
        self.occupy_all(id);
    }

    fn occupy_all(&mut self, volume: VolumeId) {
        let Some(object) = self.objects.object(volume, Layout::Present) else { return };
        let rows = object.geometry.rows_per_set();
        let Some(all) = RegionSet::from_runs(rows, &[(0, rows)]) else { return };
        for id in object.components().collect::<Vec<_>>() {
            self.occupy_rows(id, &all);
        }
    }
}

impl Cluster {
    /// Fills every working capacity device to at least `percent` of its capacity, as far as it is emptier and components of
    /// one hundredth of the smallest device fit. At most 100.
    ///
    /// # Errors
    /// When a host would have more components than it may. Nothing is filled then.
    pub fn fill(&mut self, now: Nanos, percent: u8) -> Result<(), PlacementRefusal> {
        self.run_until(now);
        let inventory = &self.storage.inventory;
        let places = self.storage.usable_places();
        let disk = |place: &Place| &inventory.group(place.group).disks[usize::from(place.disk)];
        let unit = self.storage.settings.stripe_unit.0;
        let limit = (self.storage.settings.component_limit.0 / unit * unit).max(unit);
        let Some(smallest) = places.iter().map(|place| disk(place).capacity).min() else {
            return Ok(());
        };
        let length = (smallest / COMPONENTS_PER_DEVICE / unit * unit).clamp(unit, limit);
        let wanted: Vec<(Place, u64)> = places
            .iter()
            .map(|place| {
                let disk = disk(place);
                let target =
                    (u128::from(disk.capacity) * u128::from(percent.min(100)) / 100) as u64;
                let missing = target.saturating_sub(disk.used).div_ceil(length);
                (*place, missing.min(disk.free() / length))
            })
            .collect();
        let most = self.storage.settings.components_per_host;
        for host in inventory.hosts() {
            let here = wanted.iter().filter(|(place, _)| inventory.host_of(place.group) == host.id);
            let added: u64 = here.map(|(_, count)| count).sum();
            if u64::from(host.components) + added > u64::from(most) {
                return Err(PlacementRefusal::Components { limit: most });
            }
        }
        let rounds = wanted.iter().map(|(_, count)| *count).max().unwrap_or(0);
        for round in 0..rounds {
            let places = wanted.iter().filter(|(_, count)| *count > round);
            self.storage.fill_places(places.map(|(place, _)| *place).collect(), length);
        }
        self.repair.membership_changed(&mut self.storage, &mut self.requests);
        Ok(())
    }
}
