//! The current parts of a cluster: the state of each device, and where the components of the volumes are.

use underlay_model::MemberState;
use underlay_model::cluster::{ComponentRole, DeviceId};

use super::plane::ClusterPlane;
use crate::control::{ClusterParts, ComponentEntry, Condition, PartEntry};

impl<C> ClusterPlane<C> {
    /// All devices, cache devices too, and all components of all volumes.
    pub(crate) fn parts(&self) -> ClusterParts {
        let cluster = &self.cluster;
        let groups = cluster.groups().map(|(group, ..)| group);
        let devices = groups.flat_map(|group| cluster.devices_of(group));
        let volumes = cluster.volumes().filter_map(|volume| cluster.volume_status(volume));
        let components = volumes.flat_map(|volume| {
            let entries = volume.components.iter().map(|component| ComponentEntry {
                component: component.component.0,
                volume: volume.name.clone(),
                device: cluster.device_name(component.device),
                state: component.state.to_string(),
                role: role_word(component.role).to_string(),
                length_bytes: component.length.0,
                stale_bytes: component.stale.0,
                file: self.component_path(component.device, component.component),
            });
            entries.collect::<Vec<_>>()
        });
        ClusterParts {
            devices: devices.map(|device| self.device_part(device)).collect(),
            components: components.collect(),
        }
    }

    fn device_part(&self, device: DeviceId) -> PartEntry {
        let condition = match self.cluster.device_condition(device) {
            None | Some(MemberState::Healthy) => Condition::Healthy,
            Some(MemberState::Slow { factor }) => Condition::Slow { factor },
            Some(MemberState::Stuck) => Condition::Stuck,
            Some(MemberState::Erroring { probability }) => Condition::Erroring { probability },
            Some(MemberState::Lost) => Condition::Lost,
        };
        PartEntry {
            name: self.cluster.device_name(device),
            condition,
            has_failed: self.cluster.has_failed(device),
        }
    }
}

const fn role_word(role: ComponentRole) -> &'static str {
    match role {
        ComponentRole::Current => "current",
        ComponentRole::Replacement => "replacement",
        ComponentRole::NextLayout => "next-layout",
    }
}
