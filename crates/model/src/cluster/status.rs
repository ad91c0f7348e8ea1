//! Status of a cluster: volumes, components, devices, and resynchronisation.
//!
//! Nothing here changes the cluster.

use super::cluster::Cluster;
use super::data_command::DurabilityPoint;
use super::event::{ComponentState, ResyncReason};
use super::geometry::Geometry;
use super::ids::{ComponentId, DeviceId, GroupId, HostId, VolumeId};
use super::inventory::Inventory;
use super::object::{Component, Layout, Slot};
use super::objects::Objects;
use super::policy::Policy;
use super::storage::Storage;
use super::volume::Volume;
use super::volume_counters::VolumeCounters;
use underlay_core::{Bytes, Nanos};

/// For how long requests have occupied what all volumes of a host share, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostUse {
    /// The storage stack.
    pub stack_busy: Nanos,
    /// The link to the other hosts, sending.
    pub send_busy: Nanos,
    /// The same, receiving.
    pub receive_busy: Nanos,
}

impl HostUse {
    /// The increase since an earlier moment.
    pub fn since(self, earlier: HostUse) -> HostUse {
        let since = |now: Nanos, then: Nanos| now.saturating_sub(then);
        HostUse {
            stack_busy: since(self.stack_busy, earlier.stack_busy),
            send_busy: since(self.send_busy, earlier.send_busy),
            receive_busy: since(self.receive_busy, earlier.receive_busy),
        }
    }
}

/// One component, as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComponentStatus {
    /// Its name.
    pub component: ComponentId,
    /// Whose it is.
    pub volume: VolumeId,
    /// The set it belongs to.
    pub set: u32,
    /// Its place in the set.
    pub slot: u8,
    /// Where it lies.
    pub host: HostId,
    /// Where it lies.
    pub device: DeviceId,
    /// Its length.
    pub length: Bytes,
    /// What it occupies or has reserved.
    pub occupied: Bytes,
    /// What must be copied before it is current.
    pub stale: Bytes,
    /// Its state.
    pub state: ComponentState,
    /// Whether it is meant to take another one's place.
    pub role: ComponentRole,
}

/// What a component is in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentRole {
    /// It fills the slot.
    Current,
    /// It is being filled to take the current one's place.
    Replacement,
    /// It belongs to the layout that a policy change is filling.
    NextLayout,
}

/// One volume, as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeStatus {
    /// Its number.
    pub volume: VolumeId,
    /// Its name.
    pub name: String,
    /// Its size.
    pub capacity: Bytes,
    /// Its policy; the old one while a change is in progress.
    pub policy: Policy,
    /// The host that serves it.
    pub owner: HostId,
    /// Whether all of it can be read and written.
    pub available: bool,
    /// Hosts with a witness.
    pub witnesses: Vec<HostId>,
    /// All its components.
    pub components: Vec<ComponentStatus>,
}

/// What is being copied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResyncStatus {
    /// Bytes left on components that are being filled, per [`ResyncReason::ALL`].
    pub bytes_left: [u64; 4],
    /// Components being filled, and policy changes in progress.
    pub active: u32,
    /// Those that wait for a source or for space.
    pub suspended: u32,
    /// Bytes copied so far, per reason.
    pub copied_bytes: [u64; 4],
    /// I/Os of copies so far, per reason.
    pub slices: [u64; 4],
    /// Slowly moving average of the rate, once known.
    pub bytes_per_second: Option<f64>,
    /// How long until everything is copied at that rate, on the cluster's clock.
    pub time_left: Option<Nanos>,
    /// How long until the first component that is out of reach is rebuilt elsewhere, if it does not return.
    pub repair_in: Option<Nanos>,
}

/// Space and state of one capacity device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceStatus {
    /// The device.
    pub device: DeviceId,
    /// Its size.
    pub capacity: Bytes,
    /// What components occupy or have reserved.
    pub used: Bytes,
    /// Whether it counts as failed.
    pub failed: bool,
}

impl Inventory {
    /// All capacity devices.
    pub(super) fn devices(&self) -> impl Iterator<Item = DeviceStatus> + '_ {
        self.groups().iter().flat_map(|group| {
            group.disks.iter().enumerate().map(|(index, disk)| DeviceStatus {
                device: DeviceId { group: group.id, member: index as u8 + 1 },
                capacity: Bytes(disk.capacity),
                used: Bytes(disk.used),
                failed: !group.works(index as u8),
            })
        })
    }

    /// The host of that name.
    pub(super) fn find_host(&self, name: &str) -> Option<HostId> {
        self.hosts().iter().find(|host| host.name == name).map(|host| host.id)
    }

    /// The disk group of that name: `host/group`.
    pub(super) fn find_group(&self, name: &str) -> Option<GroupId> {
        let mut groups = self.groups().iter().map(|group| group.id);
        groups.find(|group| self.group_name(*group) == name)
    }

    /// The device of that name, as [`Cluster::device_name`] writes it: `host/group/cache`, `host/group/disk0`.
    pub(super) fn find_device(&self, name: &str) -> Option<DeviceId> {
        self.groups().iter().find_map(|group| {
            (0..group.members.len() as u8)
                .map(|member| DeviceId { group: group.id, member })
                .find(|device| self.device_name(*device) == name)
        })
    }

    /// All hosts, in order.
    pub(super) fn host_ids(&self) -> impl Iterator<Item = HostId> + '_ {
        self.hosts().iter().map(|host| host.id)
    }

    /// A host's name.
    pub(super) fn host_name(&self, host: HostId) -> Option<&str> {
        self.hosts().get(host.0 as usize).map(|host| host.name.as_str())
    }

    /// All disk groups, with their host and name.
    pub(super) fn named_groups(&self) -> impl Iterator<Item = (GroupId, HostId, &str)> + '_ {
        self.groups().iter().map(|group| (group.id, group.host, group.name.as_str()))
    }
}

impl Objects {
    /// All volumes that a driver created.
    pub(super) fn created_volumes(&self) -> impl Iterator<Item = VolumeId> + '_ {
        self.volumes().filter(|volume| !volume.is_fill()).map(|volume| volume.id)
    }

    /// Which parts of a range of a volume hold data, as runs of (bytes, whether they do), in order; the rest reads as zeros. By
    /// whole rows of stripes: a row that holds anything counts. None if the volume does not exist or cannot be used.
    pub(super) fn data_runs(
        &self,
        volume: VolumeId,
        offset: u64,
        length: u32,
    ) -> Option<Vec<(u32, bool)>> {
        let object = self.object(volume, Layout::Present)?;
        object.side?;
        let mut runs: Vec<(u32, bool)> = Vec::new();
        for range in object.geometry.split(offset, length) {
            let members = object.set(range.set).iter().flat_map(Slot::components);
            let holds = members
                .filter_map(|id| self.component(id))
                .any(|component| component.written.contains(range.row));
            match runs.last_mut() {
                Some((bytes, of)) if *of == holds => *bytes += range.length,
                _ => runs.push((range.length, holds)),
            }
        }
        Some(runs)
    }

    /// The address map of a volume, if it exists.
    pub(super) fn geometry(&self, volume: VolumeId) -> Option<Geometry> {
        self.volume(volume).map(|volume| volume.object.geometry)
    }

    /// Counters of one volume, if it exists.
    pub(super) fn volume_counters(&self, volume: VolumeId) -> Option<&VolumeCounters> {
        self.volume(volume).map(|volume| &volume.counters)
    }
}

impl Storage {
    /// What is known of a volume; none if it does not exist.
    pub(super) fn volume_status(&self, volume: VolumeId) -> Option<VolumeStatus> {
        let Volume { id, name, capacity, policy, object, owner, available, .. } =
            self.objects.volume(volume)?;
        Some(VolumeStatus {
            volume: *id,
            name: name.clone(),
            capacity: *capacity,
            policy: *policy,
            owner: *owner,
            available: *available,
            witnesses: object.witnesses.clone(),
            components: self
                .objects
                .components()
                .filter(|component| component.volume == volume)
                .map(|component| self.component_status(component))
                .collect(),
        })
    }

    fn component_status(&self, component: &Component) -> ComponentStatus {
        let unit_bytes = self.settings.stripe_unit.0;
        let replacement =
            self.objects.object(component.volume, component.layout).is_some_and(|object| {
                let place = object.set(component.set)[usize::from(component.slot)];
                place.replacement == Some(component.id)
            });
        ComponentStatus {
            component: component.id,
            volume: component.volume,
            set: component.set,
            slot: component.slot,
            host: self.inventory.host_of(component.group),
            device: DeviceId { group: component.group, member: component.disk + 1 },
            length: Bytes(component.length),
            occupied: Bytes(component.occupied_bytes(unit_bytes as u32)),
            stale: Bytes(component.stale.count() * unit_bytes),
            state: self.inventory.state_of(component),
            role: match component.layout {
                Layout::Next => ComponentRole::NextLayout,
                Layout::Present if replacement => ComponentRole::Replacement,
                Layout::Present => ComponentRole::Current,
            },
        }
    }
}

impl Cluster {
    /// All volumes that were created; not what [`Cluster::fill`] made.
    pub fn volumes(&self) -> impl Iterator<Item = VolumeId> + '_ {
        self.storage.objects.created_volumes()
    }

    /// Which parts of a range of a volume hold data, as runs of (bytes, whether they do), in order; the rest reads as zeros. By
    /// whole rows of stripes: a row that holds anything counts. None if the volume does not exist or cannot be used.
    pub fn data_runs(
        &self,
        volume: VolumeId,
        offset: u64,
        length: u32,
    ) -> Option<Vec<(u32, bool)>> {
        self.storage.objects.data_runs(volume, offset, length)
    }

    /// What is known of a volume; none if it does not exist.
    pub fn volume_status(&self, volume: VolumeId) -> Option<VolumeStatus> {
        self.storage.volume_status(volume)
    }

    /// The address map of a volume, if it exists.
    pub fn geometry(&self, volume: VolumeId) -> Option<Geometry> {
        self.storage.objects.geometry(volume)
    }

    /// Counters of one volume, if it exists.
    pub fn volume_counters(&self, volume: VolumeId) -> Option<&VolumeCounters> {
        self.storage.objects.volume_counters(volume)
    }

    /// What is being copied, and how long it will take.
    pub fn resync_status(&self) -> ResyncStatus {
        let unit_bytes = self.storage.settings.stripe_unit.0;
        let copied = self.repair.copied();
        let mut status = ResyncStatus {
            copied_bytes: copied.copied_bytes,
            slices: copied.slices,
            bytes_per_second: copied.rate.known(),
            ..ResyncStatus::default()
        };
        for component in self.storage.objects.components().filter(|component| component.reachable) {
            if component.stale.is_empty() {
                continue;
            }
            status.bytes_left[component.reason as usize] += component.stale.count() * unit_bytes;
            match &component.copy {
                Some(copy) if !copy.blocked => status.active += 1,
                _ => status.suspended += 1,
            }
        }
        for reshape in self.storage.objects.volumes().filter_map(|volume| volume.reshape.as_ref()) {
            status.active += 1;
            status.bytes_left[ResyncReason::Policy as usize] +=
                reshape.pending.count() * unit_bytes;
        }
        let absent = self.storage.objects.components().filter(|component| !component.reachable);
        let due = absent
            .filter_map(|component| component.repair_at)
            .filter(|at| *at > self.storage.clock.now());
        status.repair_in = due.min().map(|at| at - self.storage.clock.now());
        let left: u64 = status.bytes_left.iter().sum();
        status.time_left = status
            .bytes_per_second
            .filter(|_| left > 0)
            .map(|rate| Nanos((left as f64 / rate * 1e9) as u64));
        status
    }

    /// All capacity devices.
    pub fn devices(&self) -> impl Iterator<Item = DeviceStatus> + '_ {
        self.storage.inventory.devices()
    }

    /// The host of that name.
    pub fn find_host(&self, name: &str) -> Option<HostId> {
        self.storage.inventory.find_host(name)
    }

    /// The disk group of that name: `host/group`.
    pub fn find_group(&self, name: &str) -> Option<GroupId> {
        self.storage.inventory.find_group(name)
    }

    /// The device of that name, as [`Cluster::device_name`] writes it: `host/group/cache`, `host/group/disk0`.
    pub fn find_device(&self, name: &str) -> Option<DeviceId> {
        self.storage.inventory.find_device(name)
    }

    /// All hosts, in order.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        self.storage.inventory.host_ids()
    }

    /// A host's name.
    pub fn host_name(&self, host: HostId) -> Option<&str> {
        self.storage.inventory.host_name(host)
    }

    /// Whether all disk groups keep what they acknowledged when the power fails.
    pub fn is_durable(&self) -> bool {
        let mut groups = self.storage.inventory.groups().iter();
        groups.all(|group| group.durability == DurabilityPoint::OnWrite)
    }

    /// For how long requests have occupied what all volumes of a host share; none if there is no such host.
    pub fn host_use(&self, host: HostId) -> Option<HostUse> {
        let host = self.storage.inventory.hosts().get(host.0 as usize)?;
        Some(HostUse {
            stack_busy: host.stack.busy(),
            send_busy: host.send.busy(),
            receive_busy: host.receive.busy(),
        })
    }

    /// All disk groups, with their host and name.
    pub fn groups(&self) -> impl Iterator<Item = (GroupId, HostId, &str)> + '_ {
        self.storage.inventory.named_groups()
    }
}
