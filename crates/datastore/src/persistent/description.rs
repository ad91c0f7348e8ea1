//! `datastore.json`: what a persistent datastore is made of, and which volumes it has.

use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use underlay_core::RootSeed;
use underlay_host::FileSystem;
use underlay_model::cluster::{ClusterSpec, Policy};
use underlay_model::{DeviceProfile, HostLink};

use crate::cluster_config::{ClusterConfig, PolicyConfig};
use crate::config::{HostLinkConfig, word};
use crate::error::DatastoreError;
use crate::profile_config::ProfileConfig;
use underlay_core::Durability;

/// The version that this code writes and reads.
const FORMAT: u32 = 1;

/// What a persistent datastore is.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// What all randomness of the models and of power cuts derives from.
    pub seed: RootSeed,
    /// What a power cut can take away.
    pub durability: Durability,
    /// At least one, unless there is a cluster.
    pub devices: Vec<DeviceDescription>,
    /// The link between the host and all these devices; `None` = each is connected directly.
    pub link: Option<HostLink>,
    /// The cluster that all volumes live on.
    pub cluster: Option<ClusterSpec>,
    /// A loopback address for NBD clients, beside the unix socket.
    pub nbd_address: Option<SocketAddr>,
    /// In the order of their creation.
    pub volumes: Vec<VolumeDescription>,
}

/// A device that volumes lie on.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceDescription {
    /// Unique in the datastore.
    pub name: String,
    /// What it is.
    pub profile: DeviceProfile,
}

/// One volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeDescription {
    /// Lower case letters, digits and `-`; unique in the datastore.
    pub name: String,
    /// Its size in bytes.
    pub capacity_bytes: u64,
    /// The device it lies on; empty on a cluster.
    pub device: String,
    /// What it asks of the cluster.
    pub policy: Option<Policy>,
    /// What it was formatted with; `None` = a bare block device.
    pub file_system: Option<FileSystem>,
    /// Where it is mounted while the datastore runs, if not in the usual place. Only with a file system.
    pub mount: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct DescriptionFile {
    format: u32,
    seed: u64,
    #[serde(with = "word")]
    durability: Durability,
    devices: Vec<DeviceFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<HostLinkConfig>,
    #[serde(default)]
    cluster: Option<ClusterConfig>,
    nbd_address: Option<SocketAddr>,
    volumes: Vec<VolumeFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct DeviceFile {
    name: String,
    profile: ProfileConfig,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct VolumeFile {
    name: String,
    capacity_bytes: u64,
    device: String,
    #[serde(default)]
    policy: Option<PolicyConfig>,
    /// Earlier versions had a choice; only `loop` is left.
    #[serde(default, skip_serializing)]
    block_device: Option<String>,
    file_system: Option<String>,
    mount: Option<PathBuf>,
}

impl Description {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Result<Description, DatastoreError> {
        let text = fs::read(path).map_err(DatastoreError::file("read", path))?;
        let damaged =
            |reason: String| DatastoreError::BadDescription { path: path.to_path_buf(), reason };
        let file: DescriptionFile =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if file.format != FORMAT {
            return Err(damaged(format!(
                "it has format {}, this program knows {FORMAT}",
                file.format
            )));
        }
        let volumes = file.volumes.into_iter().map(|volume| {
            if let Some(kind) = volume.block_device.filter(|kind| kind != "loop") {
                let name = &volume.name;
                return Err(damaged(format!(
                    "volume `{name}` has a block device of kind `{kind}`, which this version does not offer; set its \
                     `block-device` to `loop`: its data is the same"
                )));
            }
            let word = volume.file_system;
            let file_system = word
                .map(|word| {
                    FileSystem::from_word(&word)
                        .ok_or_else(|| damaged(format!("`{word}` is not a known file system")))
                })
                .transpose()?;
            Ok(VolumeDescription {
                name: volume.name,
                capacity_bytes: volume.capacity_bytes,
                device: volume.device,
                policy: volume.policy.map(Policy::from),
                file_system,
                mount: volume.mount,
            })
        });
        let device = |device: DeviceFile| DeviceDescription {
            name: device.name,
            profile: device.profile.to_profile(),
        };
        let volumes = volumes.collect::<Result<Vec<_>, DatastoreError>>()?;
        let devices: Vec<_> = file.devices.into_iter().map(device).collect();
        let cluster = file.cluster.as_ref().map(ClusterConfig::to_spec);
        let is_known =
            |name: &str| cluster.is_some() || devices.iter().any(|device| device.name == name);
        if let Some(lost) = volumes.iter().find(|volume| !is_known(&volume.device)) {
            let (volume, device) = (&lost.name, &lost.device);
            return Err(damaged(format!(
                "volume `{volume}` is on `{device}`, which is not a device"
            )));
        }
        Ok(Description {
            seed: RootSeed(file.seed),
            durability: file.durability,
            devices,
            link: file.link.as_ref().map(HostLinkConfig::to_link),
            cluster,
            nbd_address: file.nbd_address,
            volumes,
        })
    }

    /// Writes the file so that at any moment either the old or the new one is there.
    pub(crate) fn write(&self, path: &Path) -> Result<(), DatastoreError> {
        let device = |device: &DeviceDescription| DeviceFile {
            name: device.name.clone(),
            profile: ProfileConfig::from_profile(&device.profile),
        };
        let volume = |volume: &VolumeDescription| VolumeFile {
            name: volume.name.clone(),
            capacity_bytes: volume.capacity_bytes,
            device: volume.device.clone(),
            policy: volume.policy.map(PolicyConfig::from),
            block_device: None,
            file_system: volume.file_system.map(|system| system.as_str().to_string()),
            mount: volume.mount.clone(),
        };
        let file = DescriptionFile {
            format: FORMAT,
            seed: self.seed.0,
            durability: self.durability,
            devices: self.devices.iter().map(device).collect(),
            link: self.link.map(HostLinkConfig::from_link),
            cluster: self.cluster.as_ref().map(ClusterConfig::from_spec),
            nbd_address: self.nbd_address,
            volumes: self.volumes.iter().map(volume).collect(),
        };
        let text = serde_json::to_vec_pretty(&file).expect("plain data");
        let new = path.with_extension("new");
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, path)?;
            File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
        };
        write().map_err(DatastoreError::file("write", path))
    }

    /// The volume of that name.
    pub fn volume(&self, name: &str) -> Option<&VolumeDescription> {
        self.volumes.iter().find(|volume| volume.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::{Description, DeviceDescription, VolumeDescription};
    use underlay_core::Durability;
    use underlay_core::Nanos;
    use underlay_core::RootSeed;
    use underlay_host::FileSystem;
    use underlay_model::{HostLink, builtin, mirror};

    fn description() -> Description {
        Description {
            seed: RootSeed(7),
            durability: Durability::Flushed,
            devices: vec![DeviceDescription {
                name: "nvme".to_string(),
                profile: mirror(&builtin::find("dc1500m-960").unwrap(), 2).unwrap(),
            }],
            link: Some(HostLink {
                bytes_per_second: 1_600_000_000,
                latency: Nanos(5_000),
                divisor: 1,
            }),
            cluster: None,
            nbd_address: Some("127.0.0.1:10809".parse().unwrap()),
            volumes: vec![VolumeDescription {
                name: "data".to_string(),
                capacity_bytes: 1 << 30,
                device: "nvme".to_string(),
                policy: None,
                file_system: Some(FileSystem::Xfs),
                mount: Some("/mnt/data".into()),
            }],
        }
    }

    #[test]
    fn descriptions_survive_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("datastore.json");
        description().write(&path).unwrap();
        let read = Description::read(&path).unwrap();
        // Texts of profiles are for people and stay behind.
        assert_eq!((read.seed, read.durability), (RootSeed(7), Durability::Flushed));
        assert_eq!(read.volumes, description().volumes);
        assert_eq!(read.nbd_address, description().nbd_address);
        assert_eq!((read.link, read.devices[0].profile.copies), (description().link, 2));
        assert_eq!(read.devices[0].profile.medium, description().devices[0].profile.medium);
        read.write(&path).unwrap();
        assert_eq!(Description::read(&path).unwrap(), read);
    }

    #[test]
    fn the_kind_of_block_device_of_earlier_versions_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("datastore.json");
        description().write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let with = |kind| {
            text.replace(
                "\"file-system\"",
                &format!("\"block-device\": \"{kind}\",\n\"file-system\""),
            )
        };
        std::fs::write(&path, with("loop")).unwrap();
        assert_eq!(Description::read(&path).unwrap().volumes, description().volumes);
        std::fs::write(&path, with("ublk")).unwrap();
        let error = Description::read(&path).unwrap_err().to_string();
        assert!(error.contains("`data` has a block device of kind `ublk`"), "{error}");
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("datastore.json");
        description().write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for (from, to, said) in [
            ("\"format\": 1", "\"format\": 9", "format 9"),
            ("\"xfs\"", "\"zfs\"", "`zfs` is not a known file system"),
            ("\"seed\"", "\"sead\"", "unknown field `sead`"),
            ("\"device\": \"nvme\"", "\"device\": \"sata\"", "is on `sata`"),
        ] {
            assert!(text.contains(from), "{text}");
            std::fs::write(&path, text.replace(from, to)).unwrap();
            let error = Description::read(&path).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
