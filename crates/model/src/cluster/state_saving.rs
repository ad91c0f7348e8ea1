//! The cluster's state as it is stored for a restart.
//!
//! What is not here: when it is stored (`outbox`), its format (`state`), and files.

use super::cluster::Cluster;
use super::event::ComponentState;
use super::inventory::Inventory;
use super::object::{Component, Object};
use super::policy::Policy;
use super::policy_record::policy_record;
use super::state::{ClusterState, ComponentRecord, LayoutRecord, VERSION, VolumeRecord};
use super::storage::Storage;
use super::volume::Volume;

impl Inventory {
    fn failed_devices(&self) -> Vec<(u32, u8)> {
        self.groups()
            .iter()
            .flat_map(|group| {
                let failed = group.members.iter().enumerate().filter(|(_, member)| member.failed);
                failed.map(|(member, _)| (group.id.0, member as u8))
            })
            .collect()
    }
}

impl Storage {
    /// Everything the cluster must not forget; see [`super::Restart`] for when to store it.
    pub(super) fn state(&self) -> ClusterState {
        debug_assert!(
            self.space_is_exact(),
            "the space of a device is the sum over its components"
        );
        ClusterState {
            version: VERSION,
            next_component: self.objects.next_component().0,
            next_volume: self.objects.next_volume().0,
            hosts: self.membership.records(),
            failed_devices: self.inventory.failed_devices(),
            components: self
                .objects
                .components()
                .map(|component| self.component_record(component))
                .collect(),
            volumes: self.objects.volumes().map(volume_record).collect(),
        }
    }

    fn component_record(&self, component: &Component) -> ComponentRecord {
        ComponentRecord {
            component: component.id.0,
            group: component.group.0,
            disk: component.disk,
            base: component.base,
            length: component.length,
            reserved: component.reserved,
            active: component.announced == ComponentState::Active,
            stale: component.stale.runs(),
            written: component.written.runs(),
            reason: component.reason.as_str().to_string(),
            repair_in_ns: component.repair_at.map(|at| at.saturating_sub(self.clock.now()).0),
            unsure: Vec::new(),
        }
    }
}

impl Cluster {
    /// Everything the cluster must not forget; see [`super::Restart`] for when to store it.
    pub fn state(&self) -> ClusterState {
        self.storage.state()
    }
}

fn volume_record(volume: &Volume) -> VolumeRecord {
    VolumeRecord {
        volume: volume.id.0,
        name: volume.name.clone(),
        capacity: volume.capacity.0,
        present: layout_record(&volume.object, &volume.policy),
        next: volume.reshape.as_ref().map(|next| layout_record(&next.object, &next.policy)),
        pending: volume.reshape.as_ref().map_or(Vec::new(), |next| next.pending.runs()),
        wanted: volume.wanted.as_ref().map(policy_record),
        unreported_loss: volume.losses != volume.losses_reported,
    }
}

fn layout_record(object: &Object, policy: &Policy) -> LayoutRecord {
    LayoutRecord {
        policy: policy_record(policy),
        sets: object.geometry.sets,
        unit_bytes: object.geometry.unit_bytes,
        slots: object
            .slots
            .iter()
            .map(|slot| (slot.current.0, slot.replacement.map(|replacement| replacement.0)))
            .collect(),
        witnesses: object.witnesses.iter().map(|host| host.0).collect(),
        in_doubt: object.in_doubt.iter().map(super::regions::RegionSet::runs).collect(),
    }
}
