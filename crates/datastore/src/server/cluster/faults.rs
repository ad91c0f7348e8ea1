//! Faults by name: translates names of hosts and devices to the model's numbers.

use underlay_core::Nanos;
use underlay_model::cluster::{Cluster, ComponentId, DeviceId, Fault, HostId, ReturnedContent};

use super::changes::{rot_volume, tear_volume};
use super::plane::ClusterPlane;
use crate::fault::ClusterFault;

/// Lets a fault, or a repair, happen.
pub(crate) fn inject<C>(
    plane: &mut ClusterPlane<C>,
    now: Nanos,
    fault: &ClusterFault,
) -> Result<(), String> {
    match fault {
        ClusterFault::VolumeBitRot { volume, bits, seed } => {
            rot_volume(plane, now, volume, *bits, *seed)
        }
        ClusterFault::VolumeTornWrite { volume, keep_bytes } => {
            tear_volume(plane, now, volume, *keep_bytes)
        }
        other => {
            let fault = resolve(&plane.cluster, other)?;
            plane.inject(now, fault).map_err(|problem| problem.to_string())
        }
    }
}

/// The model's form of a fault; an error names what there is when a name is wrong.
fn resolve(cluster: &Cluster, fault: &ClusterFault) -> Result<Fault, String> {
    let device = |name: &String| find_device(cluster, name);
    let host = |name: &String| find_host(cluster, name);
    Ok(match fault {
        ClusterFault::DeviceSlow { device: name, factor } => {
            Fault::DeviceSlow { device: device(name)?, factor: *factor }
        }
        ClusterFault::DeviceStuck { device: name } => Fault::DeviceStuck { device: device(name)? },
        ClusterFault::DeviceErroring { device: name, probability } => {
            Fault::DeviceErroring { device: device(name)?, probability: *probability }
        }
        ClusterFault::DeviceLost { device: name } => Fault::DeviceLost { device: device(name)? },
        ClusterFault::DeviceReturned { device: name } => {
            Fault::DeviceReturned { device: device(name)?, content: ReturnedContent::Kept }
        }
        ClusterFault::DeviceReplaced { device: name } => {
            Fault::DeviceReturned { device: device(name)?, content: ReturnedContent::Blank }
        }
        ClusterFault::HostLost { host: name } => Fault::HostLost { host: host(name)? },
        ClusterFault::HostFrozen { host: name } => Fault::HostFrozen { host: host(name)? },
        ClusterFault::HostsPartitioned { hosts } => {
            Fault::HostsPartitioned { hosts: hosts.iter().map(host).collect::<Result<_, _>>()? }
        }
        ClusterFault::HostReturned { host: name } => Fault::HostReturned { host: host(name)? },
        ClusterFault::BitRot { component, offset_bytes, bit } => Fault::BitRot {
            component: ComponentId(*component),
            offset_bytes: *offset_bytes,
            bit: *bit,
        },
        ClusterFault::TornWrite { component, keep_bytes } => {
            Fault::TornWrite { component: ComponentId(*component), keep_bytes: *keep_bytes }
        }
        ClusterFault::VolumeBitRot { .. } | ClusterFault::VolumeTornWrite { .. } => {
            return Err("a volume is more than one component".to_string());
        }
    })
}

fn find_host(cluster: &Cluster, name: &str) -> Result<HostId, String> {
    cluster.find_host(name).ok_or_else(|| {
        let known = cluster.hosts().filter_map(|host| cluster.host_name(host));
        format!("there is no host `{name}`; there are {}", known.collect::<Vec<_>>().join(", "))
    })
}

fn find_device(cluster: &Cluster, name: &str) -> Result<DeviceId, String> {
    cluster.find_device(name).ok_or_else(|| {
        let groups = cluster.groups().map(|(group, ..)| group);
        let known = groups.flat_map(|group| cluster.devices_of(group));
        let known: Vec<String> = known.map(|device| cluster.device_name(device)).collect();
        format!("there is no device `{name}`; there are {}", known.join(", "))
    })
}
