//! What a keeper tells its server to serve: the description of a datastore, as the server wants it.

use std::path::{Path, PathBuf};

use super::description::{Description, VolumeDescription};
use super::home::Home;
use crate::cluster_config::{ClusterConfig, PolicyConfig};
use crate::config::{
    ClusterServerConfig, DeviceConfig, NbdConfig, ProfileConfig, ServerConfig, VolumeConfig,
};

/// Where NBD clients of this host are accepted, below the directory of a running datastore.
pub(super) fn nbd_socket(run: &Path) -> PathBuf {
    run.join("nbd.sock")
}

/// The whole datastore; volumes are files below `mount_point` if there is one. `run` is the directory of what lives as long
/// as the keeper.
pub(super) fn server_config(
    home: &Home,
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
        control_socket: home.control_socket(),
        seed: description.seed.0,
        durability: description.durability,
        devices: devices.collect(),
        cluster: description.cluster.as_ref().map(|spec| ClusterServerConfig {
            spec: ClusterConfig::from_spec(spec),
            components: home.components(),
            memory: Some(home.memory()),
        }),
        volumes: volumes.map(|volume| volume_config(home, description, volume)).collect(),
    }
}

/// One volume of it.
pub(super) fn volume_config(
    home: &Home,
    description: &Description,
    volume: &VolumeDescription,
) -> VolumeConfig {
    let device = description.devices.iter().position(|device| device.name == volume.device);
    VolumeConfig {
        name: volume.name.clone(),
        capacity_bytes: volume.capacity_bytes,
        // On a cluster it has no meaning; elsewhere the description was checked.
        device: device.unwrap_or(0),
        backing_file: home.volumes().join(&volume.name),
        policy: volume.policy.map(PolicyConfig::from),
    }
}
