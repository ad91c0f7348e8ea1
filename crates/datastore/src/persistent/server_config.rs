//! The configuration that a supervisor gives its server, made from the description of the datastore.

use std::path::{Path, PathBuf};

use super::data_directory::DataDirectory;
use super::description::{Description, VolumeDescription};
use crate::cluster_config::{ClusterConfig, PolicyConfig};
use crate::config::{
    ClusterServerConfig, DeviceConfig, HostLinkConfig, NbdConfig, ServerConfig, VolumeConfig,
};
use crate::profile_config::ProfileConfig;

/// Where NBD clients of this host are accepted, below the directory of a running datastore.
pub(super) fn nbd_socket(run: &Path) -> PathBuf {
    run.join("nbd.sock")
}

/// The whole datastore; volumes are files below `mount_point` if there is one. `run` is the directory of what lives as long
/// as the supervisor.
pub(super) fn server_config(
    data_directory: &DataDirectory,
    description: &Description,
    mount_point: Option<PathBuf>,
    run: &Path,
) -> ServerConfig {
    let devices = description.devices.iter().map(|device| DeviceConfig {
        name: device.name.clone(),
        profile: ProfileConfig::from_profile(&device.profile),
    });
    let volumes = description.volumes.iter();
    ServerConfig {
        mount_point,
        nbd: NbdConfig { socket: Some(nbd_socket(run)), address: description.nbd_address },
        control_socket: data_directory.control_socket(),
        seed: description.seed.0,
        time_dilation: 1,
        durability: description.durability,
        devices: devices.collect(),
        link: description.link.map(HostLinkConfig::from_link),
        cluster: description.cluster.as_ref().map(|spec| ClusterServerConfig {
            spec: ClusterConfig::from_spec(spec),
            components: data_directory.components(),
            memory: Some(data_directory.memory()),
            fill_percent: None,
        }),
        volumes: volumes.map(|volume| volume_config(data_directory, description, volume)).collect(),
    }
}

/// One volume of it.
pub(super) fn volume_config(
    data_directory: &DataDirectory,
    description: &Description,
    volume: &VolumeDescription,
) -> VolumeConfig {
    let device = description.devices.iter().position(|device| device.name == volume.device);
    VolumeConfig {
        name: volume.name.clone(),
        capacity_bytes: volume.capacity_bytes,
        // On a cluster it has no meaning; elsewhere the description was checked.
        device: device.unwrap_or(0),
        backing_file: data_directory.volumes().join(&volume.name),
        policy: volume.policy.map(PolicyConfig::from),
        host: None,
    }
}
