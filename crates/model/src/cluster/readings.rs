//! Readings for a performance service: counters and latencies of disk groups, device states, reachability.
//!
//! Readings change nothing but the time span that the next latency histograms cover.

use super::cluster::Cluster;
use super::event::ComponentState;
use super::ids::{DeviceId, GroupId, HostId, VolumeId};
use super::inventory::Inventory;
use super::objects::Objects;
use super::status::ComponentRole;
use super::storage::Storage;
use crate::disk_group::{GroupCounters, LatencyOf, MemberState};
use crate::request::Operation;
use underlay_core::Histogram;

impl Inventory {
    /// Latencies of disk groups and devices since the last call, those that are not empty, by name and operation:
    /// `group.HOST/GROUP.CLASS`, `device.HOST/GROUP/disk0`.
    pub(super) fn take_latencies(&mut self) -> Vec<(String, Operation, Histogram)> {
        let mut all = Vec::new();
        for id in (0..self.groups().len() as u32).map(GroupId) {
            for (of, operation, histogram) in self.group_mut(id).engine.take_latencies() {
                let name = match of {
                    LatencyOf::Class(class) => {
                        format!("group.{}.{}", self.group_name(id), class.as_str())
                    }
                    LatencyOf::Member(member) => {
                        let device = DeviceId { group: id, member: member as u8 };
                        format!("device.{}", self.device_name(device))
                    }
                };
                all.push((name, operation, histogram));
            }
        }
        all
    }

    /// A disk group by host and name: `HOST/GROUP`.
    pub(super) fn group_name(&self, group: GroupId) -> String {
        let group = self.group(group);
        format!("{}/{}", self.host(group.host).name, group.name)
    }

    /// All devices of a disk group, the cache device first.
    pub(super) fn devices_of(&self, group: GroupId) -> impl Iterator<Item = DeviceId> + use<> {
        let members = self.groups().get(group.0 as usize).map_or(0, |group| group.members.len());
        (0..members as u8).map(move |member| DeviceId { group, member })
    }

    /// Whether a device counts as failed.
    pub(super) fn has_failed(&self, device: DeviceId) -> bool {
        let group = self.groups().get(device.group.0 as usize);
        let member = group.and_then(|group| group.members.get(usize::from(device.member)));
        member.is_some_and(|member| member.failed)
    }

    /// How a device works: what faults made of it. Whether the cluster has noticed says [`Cluster::has_failed`].
    pub(super) fn device_condition(&self, device: DeviceId) -> Option<MemberState> {
        self.groups().get(device.group.0 as usize)?.engine.member_state(usize::from(device.member))
    }
}

impl Objects {
    /// A volume's name.
    pub(super) fn volume_name(&self, volume: VolumeId) -> Option<&str> {
        self.volume(volume).map(|volume| volume.name.as_str())
    }

    /// Whether all of a volume can be read and written.
    pub(super) fn is_available(&self, volume: VolumeId) -> bool {
        self.volume(volume).is_some_and(|volume| volume.available)
    }
}

impl Storage {
    /// Components that are not what their volumes count on: not reachable, failed, old, or being filled.
    pub(super) fn impaired_components(&self) -> usize {
        let volumes = self.objects.created_volumes().filter_map(|id| self.volume_status(id));
        let components = volumes.flat_map(|volume| volume.components);
        let impaired = components.filter(|component| {
            component.role == ComponentRole::Current && component.state != ComponentState::Active
        });
        impaired.count()
    }
}

impl Cluster {
    /// What a disk group has done up to the moment that the cluster has reached.
    pub fn group_counters(&mut self, group: GroupId) -> Option<GroupCounters> {
        self.storage.inventory.group_counters(group, self.storage.clock.now())
    }

    /// Latencies of disk groups and devices since the last call, those that are not empty, by name and operation:
    /// `group.HOST/GROUP.CLASS`, `device.HOST/GROUP/disk0`.
    pub fn take_latencies(&mut self) -> Vec<(String, Operation, Histogram)> {
        self.storage.inventory.take_latencies()
    }

    /// A disk group by host and name: `HOST/GROUP`.
    pub fn group_name(&self, group: GroupId) -> String {
        self.storage.inventory.group_name(group)
    }

    /// All devices of a disk group, the cache device first.
    pub fn devices_of(&self, group: GroupId) -> impl Iterator<Item = DeviceId> + use<> {
        self.storage.inventory.devices_of(group)
    }

    /// Whether a device counts as failed.
    pub fn has_failed(&self, device: DeviceId) -> bool {
        self.storage.inventory.has_failed(device)
    }

    /// How a device works: what faults made of it. Whether the cluster has noticed says [`Cluster::has_failed`].
    pub fn device_condition(&self, device: DeviceId) -> Option<MemberState> {
        self.storage.inventory.device_condition(device)
    }

    /// Counts a request that completed here, but whose bytes no member has: its client gets an I/O error.
    pub fn count_unreadable(&mut self, volume: VolumeId) {
        if let Some(volume) = self.storage.objects.volume_mut(volume) {
            volume.counters.errors += 1;
        }
    }

    /// Components that are not what their volumes count on: not reachable, failed, old, or being filled.
    pub fn impaired_components(&self) -> usize {
        self.storage.impaired_components()
    }

    /// A volume's name.
    pub fn volume_name(&self, volume: VolumeId) -> Option<&str> {
        self.storage.objects.volume_name(volume)
    }

    /// Whether all of a volume can be read and written.
    pub fn is_available(&self, volume: VolumeId) -> bool {
        self.storage.objects.is_available(volume)
    }

    /// Whether the cluster sees a host among the others: one behind a partition can be reached by its own side at most.
    pub fn is_reachable(&self, host: HostId) -> bool {
        (host.0 as usize) < self.storage.inventory.hosts().len()
            && self.storage.membership.is_member(host)
    }
}
