//! The paths of an emulated datastore, and the configuration of its server.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use underlay_core::Dilation;
use underlay_host::Ticket;

use super::backing::Backing;
use super::emulation::{Emulation, Storage};
use super::mounted::VolumeSite;
use crate::cluster_config::ClusterConfig;
use crate::config::{
    ClusterServerConfig, DeviceConfig, HostLinkConfig, NbdConfig, ServerConfig, VolumeConfig,
};
use crate::error::DatastoreError;
use crate::path::allow_traversal;
use crate::profile_config::ProfileConfig;
use crate::spec::{Context, VolumeRequest};

/// Where everything is.
pub(super) struct Layout {
    pub(super) export: PathBuf,
    pub(super) config: PathBuf,
    pub(super) socket: PathBuf,
    pub(super) log: PathBuf,
    backing: PathBuf,
    pub(super) targets: Vec<PathBuf>,
    pub(super) tickets: Vec<Ticket>,
}

impl Layout {
    pub(super) fn create(
        backing: &Backing,
        requests: &[VolumeRequest],
        context: &Context<'_>,
    ) -> Result<Layout, DatastoreError> {
        // Canonical, because mounts and loop devices are found again by their names.
        let scratch = context
            .scratch
            .canonicalize()
            .map_err(DatastoreError::file("resolve", context.scratch))?;
        let base = scratch.join("datastore");
        let mut tickets = vec![context.teardown.create_directory(&base)?];
        allow_traversal(&base)?;
        let backing = match backing {
            Backing::Scratch => {
                let inside = base.join("backing");
                create_directory(&inside)?;
                inside
            }
            Backing::Elsewhere(directory) => {
                let outside = directory.join(unique_name(&scratch));
                tickets.push(context.teardown.create_directory(&outside)?);
                outside
            }
        };
        let (export, mounts) = (base.join("export"), base.join("volumes"));
        create_directory(&export)?;
        create_directory(&mounts)?;
        allow_traversal(&mounts)?;
        let targets: Vec<PathBuf> =
            requests.iter().map(|request| mounts.join(&request.name)).collect();
        targets.iter().try_for_each(|target| create_directory(target))?;
        Ok(Layout {
            export,
            config: base.join("server.json"),
            // Short: the path of a socket has 107 bytes at most.
            socket: base.join("c.sock"),
            log: base.join("server.log"),
            backing,
            targets,
            tickets,
        })
    }

    /// What the server is to be told. `placed` = the device of each volume, where volumes lie on devices.
    pub(super) fn server_config(
        &self,
        emulation: &Emulation<'_>,
        requests: &[VolumeRequest],
        placed: &[usize],
        dilation: Dilation,
    ) -> ServerConfig {
        let (devices, link, cluster) = match emulation.storage {
            Storage::Devices(devices, link) => (devices, link, None),
            Storage::Cluster(cluster) => (&[][..], None, Some(cluster)),
        };
        let volumes = requests.iter().enumerate().map(|(index, request)| VolumeConfig {
            name: request.name.clone(),
            capacity_bytes: request.capacity.0,
            device: placed.get(index).copied().unwrap_or(0),
            backing_file: self.backing.join(&request.name),
            policy: cluster.map(|cluster| cluster.policy_of(&request.name).into()),
            host: request.host,
        });
        let devices = devices.iter().map(|(name, profile)| DeviceConfig {
            name: name.clone(),
            profile: ProfileConfig::from_profile(profile),
        });
        ServerConfig {
            mount_point: Some(self.export.clone()),
            nbd: NbdConfig::default(),
            control_socket: self.socket.clone(),
            seed: emulation.seed.0,
            time_dilation: dilation.factor(),
            durability: emulation.durability,
            devices: devices.collect(),
            link: link.map(HostLinkConfig::from_link),
            cluster: cluster.map(|cluster| ClusterServerConfig {
                spec: ClusterConfig::from_spec(&cluster.spec),
                components: self.backing.clone(),
                memory: None,
                fill_percent: cluster.fill_percent,
            }),
            volumes: volumes.collect(),
        }
    }

    pub(super) fn sites(&self, requests: &[VolumeRequest], dilation: Dilation) -> Vec<VolumeSite> {
        requests
            .iter()
            .zip(&self.targets)
            .map(|(request, target)| VolumeSite {
                exported_file: self.export.join(&request.name),
                target: target.clone(),
                file_system: request.file_system,
                dilation,
            })
            .collect()
    }
}

/// A name that no other datastore uses, in a directory that several share. Two state directories may have
/// runs of the same name, hence the process; one process may have two of them, hence the number.
fn unique_name(scratch: &Path) -> String {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    let run = scratch.file_name().unwrap_or_default().to_string_lossy();
    format!("underlay-{run}-{}-{number}", std::process::id())
}

fn create_directory(path: &Path) -> Result<(), DatastoreError> {
    fs::create_dir(path).map_err(DatastoreError::file("create directory", path))
}
