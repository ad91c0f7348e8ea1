//! Volumes: creation, removal, and changes of their policy.
//!
//! What is not here: where components are placed (`placement`) and how a policy change is carried out (`reshape`).

use super::cluster::Cluster;
use super::component_lifecycle::NewComponent;
use super::event::ResyncReason;
use super::geometry::Geometry;
use super::ids::{HostId, VolumeId};
use super::iops_limit::IopsLimit;
use super::membership::MAIN_SIDE;
use super::object::{Layout, Object, Slot};
use super::objects::Objects;
use super::placement::{Demand, Placed, PlacementRefusal, place_object};
use super::policy::Policy;
use super::regions::RegionSet;
use super::storage::Storage;
use super::volume::Volume;
use super::volume_counters::VolumeCounters;
use underlay_core::{Bytes, Nanos};

impl Objects {
    /// The volume of that name.
    pub(super) fn find_volume(&self, name: &str) -> Option<VolumeId> {
        self.volumes().find(|volume| volume.name == name).map(|volume| volume.id)
    }
}

impl Storage {
    /// Says that the volume was filled before the beginning: all its space is occupied, and a rebuild copies all of it.
    /// For simulations; the data plane is not told.
    ///
    /// # Errors
    /// If there is no such volume, or no room for all of it.
    pub(super) fn assume_written(&mut self, volume: VolumeId) -> Result<(), PlacementRefusal> {
        let Some(object) = self.objects.object(volume, Layout::Present) else {
            return Err(PlacementRefusal::NoVolume);
        };
        let rows = object.geometry.rows_per_set();
        for id in object.components().collect::<Vec<_>>() {
            for row in 0..rows {
                if !self.has_room(id, row) {
                    let needed = Bytes(rows * self.settings.stripe_unit.0);
                    return Err(PlacementRefusal::Space { needed, free: Bytes::ZERO });
                }
                self.occupy(id, row);
            }
        }
        Ok(())
    }

    /// The address map of a volume with that policy, and where its parts go.
    fn plan(
        &self,
        capacity: Bytes,
        policy: &Policy,
    ) -> Result<(Geometry, Placed), PlacementRefusal> {
        let problems = policy.problems();
        if !problems.is_empty() {
            return Err(PlacementRefusal::Policy(problems));
        }
        let kind = policy.set_kind();
        let unit_bytes = self.settings.stripe_unit.0;
        let data = capacity.0.div_ceil(u64::from(kind.data_units()));
        let limit = self.settings.component_limit.0 / unit_bytes * unit_bytes;
        let sets = data.div_ceil(limit).max(u64::from(policy.stripe_width));
        // Before any of them is placed: a volume of any size may be asked for.
        let per_host = self.settings.components_per_host;
        let most = u64::from(per_host).saturating_mul(self.inventory.hosts().len() as u64);
        if sets.saturating_mul(u64::from(kind.members())) > most {
            return Err(PlacementRefusal::Components { limit: per_host });
        }
        // Hosts are few, so this is far below 2^32.
        let sets = sets as u32;
        let geometry =
            Geometry { kind, sets, unit_bytes: unit_bytes as u32, capacity_bytes: capacity.0 };
        let component_bytes = reserved_bytes(&geometry, policy);
        let demand = Demand { geometry: &geometry, policy, component_bytes };
        let placed = place_object(&self.map(), &demand)?;
        Ok((geometry, placed))
    }

    /// Makes the components of a layout.
    fn build(
        &mut self,
        volume: VolumeId,
        layout: Layout,
        geometry: Geometry,
        policy: &Policy,
        placed: &Placed,
    ) -> Object {
        let members = usize::from(geometry.kind.members());
        let mut slots = Vec::with_capacity(placed.places.len());
        for (index, place) in placed.places.iter().enumerate() {
            let current = self.create_component(&NewComponent {
                volume,
                layout,
                set: (index / members) as u32,
                slot: (index % members) as u8,
                place: *place,
                length: geometry.component_bytes(),
                reserved: reserved_bytes(&geometry, policy),
                reason: ResyncReason::Policy,
            });
            slots.push(Slot { current, replacement: None });
        }
        for host in &placed.witnesses {
            self.inventory.count_on_host(*host);
        }
        let rows = geometry.rows_per_set();
        Object {
            geometry,
            checksum: policy.checksum,
            slots,
            witnesses: placed.witnesses.clone(),
            side: Some(MAIN_SIDE),
            in_doubt: (0..geometry.sets).map(|_| RegionSet::new(rows)).collect(),
            cached_sets: Vec::new(),
        }
    }

    /// Adds a volume whose parts have their places.
    pub(super) fn add_volume(
        &mut self,
        name: &str,
        geometry: Geometry,
        policy: Policy,
        placed: &Placed,
    ) -> VolumeId {
        let id = self.objects.next_volume();
        let object = self.build(id, Layout::Present, geometry, &policy, placed);
        let owner = self.first_host(&object);
        self.objects.add_volume(Volume {
            id,
            name: name.to_string(),
            capacity: Bytes(geometry.capacity_bytes),
            policy,
            object,
            layout: 0,
            reshape: None,
            wanted: None,
            repair_blocked: None,
            owner,
            limit: policy.iops_limit.map(IopsLimit::new),
            available: true,
            losses: 0,
            losses_reported: 0,
            counters: VolumeCounters::default(),
        });
        id
    }

    fn first_host(&self, object: &Object) -> HostId {
        let first = object.components().next().and_then(|id| self.objects.component(id));
        first.map_or(HostId(0), |component| self.inventory.host_of(component.group))
    }
}

impl Cluster {
    /// Makes a volume that reads as zeros.
    ///
    /// # Errors
    /// When the policy cannot be kept here, with what is missing and what to do.
    pub fn create_volume(
        &mut self,
        now: Nanos,
        name: &str,
        capacity: Bytes,
        policy: Policy,
    ) -> Result<VolumeId, PlacementRefusal> {
        self.run_until(now);
        if self.storage.objects.volumes().any(|volume| volume.name == name) {
            return Err(PlacementRefusal::NameTaken(name.to_string()));
        }
        if capacity.0 == 0 || !capacity.0.is_multiple_of(4096) {
            return Err(PlacementRefusal::Capacity(capacity));
        }
        let (geometry, placed) = self.storage.plan(capacity, &policy)?;
        let id = self.storage.add_volume(name, geometry, policy, &placed);
        self.repair.membership_changed(&mut self.storage, &mut self.requests);
        Ok(id)
    }

    /// Removes a volume with its data. Requests in flight end with an error.
    ///
    /// # Errors
    /// If there is none of that number.
    pub fn remove_volume(&mut self, now: Nanos, volume: VolumeId) -> Result<(), PlacementRefusal> {
        self.run_until(now);
        if self.storage.objects.volume(volume).is_none() {
            return Err(PlacementRefusal::NoVolume);
        }
        self.repair.abandon_reshape(&mut self.storage, volume);
        self.requests.fail_operations_of(&mut self.storage, volume);
        let Some(state) = self.storage.objects.take_volume(volume) else {
            return Ok(());
        };
        self.storage.outbox.state_changed();
        for id in state.object.components().collect::<Vec<_>>() {
            self.storage.remove_component(id);
        }
        for host in &state.object.witnesses {
            self.storage.inventory.discount_on_host(*host);
        }
        Ok(())
    }

    /// Changes a volume's policy. What concerns only the limit takes effect at once; everything else fills a new
    /// layout beside the old one, while the volume serves.
    ///
    /// # Errors
    /// When the new policy cannot be kept here; the old one stays.
    pub fn set_policy(
        &mut self,
        now: Nanos,
        volume: VolumeId,
        policy: Policy,
    ) -> Result<(), PlacementRefusal> {
        self.run_until(now);
        let Some(state) = self.storage.objects.volume(volume) else {
            return Err(PlacementRefusal::NoVolume);
        };
        let problems = policy.problems();
        if !problems.is_empty() {
            return Err(PlacementRefusal::Policy(problems));
        }
        let (capacity, present) = (state.capacity, state.policy);
        self.storage.outbox.state_changed();
        self.repair.abandon_reshape(&mut self.storage, volume);
        if let Some(state) = self.storage.objects.volume_mut(volume) {
            state.wanted = None;
            if state.policy.iops_limit != policy.iops_limit {
                state.limit = policy.iops_limit.map(IopsLimit::new);
                state.policy.iops_limit = policy.iops_limit;
            }
        }
        if (Policy { iops_limit: policy.iops_limit, ..present }) == policy {
            return Ok(());
        }
        let (geometry, placed) = self.storage.plan(capacity, &policy)?;
        let object = self.storage.build(volume, Layout::Next, geometry, &policy, &placed);
        self.repair.begin_reshape(&mut self.storage, &mut self.requests, volume, object, policy);
        Ok(())
    }

    /// The volume of that name.
    pub fn find_volume(&self, name: &str) -> Option<VolumeId> {
        self.storage.objects.find_volume(name)
    }

    /// Says that the volume was filled before the beginning: all its space is occupied, and a rebuild copies all of it.
    /// For simulations; the data plane is not told.
    ///
    /// # Errors
    /// If there is no such volume, or no room for all of it.
    pub fn assume_written(&mut self, volume: VolumeId) -> Result<(), PlacementRefusal> {
        self.storage.assume_written(volume)
    }
}

fn reserved_bytes(geometry: &Geometry, policy: &Policy) -> u64 {
    let percent = u64::from(policy.space_reservation_percent);
    let rows = (geometry.rows_per_set() * percent).div_ceil(100);
    rows * u64::from(geometry.unit_bytes)
}
