//! The configuration file of the server process: JSON, written by the process that starts it.
//!
//! What is not here: device profiles (`profile_config`) and clusters (`cluster_config`).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use underlay_core::{Dilation, Nanos, RootSeed};
use underlay_model::HostLink;

use crate::cluster_config::{ClusterConfig, PolicyConfig};
use crate::error::DatastoreError;
use crate::profile_config::{ProfileConfig, undivided};
use underlay_core::Durability;

/// A word of a closed set, as text.
pub(crate) mod word {
    use std::borrow::Cow;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use underlay_core::Words;
    use underlay_core::words::UnknownWord;

    pub(crate) fn serialize<W: Words, S: Serializer>(
        value: &W,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.word())
    }

    pub(crate) fn deserialize<'de, W: Words, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<W, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        W::from_word(&text).ok_or_else(|| D::Error::custom(UnknownWord::of::<W>(&text)))
    }
}

/// Everything the server process needs to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ServerConfig {
    /// Directory over which the volumes' files are mounted; none = NBD only, which needs no root.
    pub(crate) mount_point: Option<PathBuf>,
    /// Where NBD clients are accepted.
    #[serde(default)]
    pub(crate) nbd: NbdConfig,
    /// Unix socket for commands.
    pub(crate) control_socket: PathBuf,
    pub(crate) seed: u64,
    /// How many times slower than the host's clock the models' clock is.
    #[serde(default = "undivided")]
    pub(crate) time_dilation: u32,
    #[serde(with = "word")]
    pub(crate) durability: Durability,
    /// Devices that volumes lie on directly; none when there is a cluster.
    pub(crate) devices: Vec<DeviceConfig>,
    /// The link between the host and all these devices.
    #[serde(default)]
    pub(crate) link: Option<HostLinkConfig>,
    /// The cluster that all volumes live on.
    #[serde(default)]
    pub(crate) cluster: Option<ClusterServerConfig>,
    pub(crate) volumes: Vec<VolumeConfig>,
}

/// A cluster and where its data is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ClusterServerConfig {
    pub(crate) spec: ClusterConfig,
    /// An existing directory for components.
    pub(crate) components: PathBuf,
    /// Where it remembers what must survive its server; none = nothing must.
    #[serde(default)]
    pub(crate) memory: Option<PathBuf>,
    /// Share of every capacity device that other data takes; none = they are empty.
    #[serde(default)]
    pub(crate) fill_percent: Option<u8>,
}

/// Where NBD clients are accepted; nowhere when both are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct NbdConfig {
    pub(crate) socket: Option<PathBuf>,
    /// Loopback only: there is no authentication.
    pub(crate) address: Option<SocketAddr>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct DeviceConfig {
    pub(crate) name: String,
    pub(crate) profile: ProfileConfig,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct VolumeConfig {
    pub(crate) name: String,
    pub(crate) capacity_bytes: u64,
    /// Index into the devices.
    #[serde(default)]
    pub(crate) device: usize,
    /// Where the bytes are, unless they are in the components of a cluster.
    #[serde(default)]
    pub(crate) backing_file: PathBuf,
    /// What it asks of the cluster.
    #[serde(default)]
    pub(crate) policy: Option<PolicyConfig>,
    /// The host of the cluster that it is used from, by number; the model chooses where there is none.
    #[serde(default)]
    pub(crate) host: Option<u32>,
}

/// The link between a host and its devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct HostLinkConfig {
    bytes_per_second: u64,
    latency_ns: u64,
    divisor: u32,
}

impl HostLinkConfig {
    pub(crate) fn from_link(link: HostLink) -> HostLinkConfig {
        HostLinkConfig {
            bytes_per_second: link.bytes_per_second,
            latency_ns: link.latency.0,
            divisor: link.divisor,
        }
    }

    pub(crate) fn to_link(&self) -> HostLink {
        HostLink {
            bytes_per_second: self.bytes_per_second,
            latency: Nanos(self.latency_ns),
            divisor: self.divisor,
        }
    }
}

impl ServerConfig {
    pub(crate) fn read(path: &Path) -> Result<ServerConfig, DatastoreError> {
        let text = std::fs::read(path).map_err(DatastoreError::file("read", path))?;
        serde_json::from_slice(&text)
            .map_err(|source| DatastoreError::BadConfig { path: path.to_path_buf(), source })
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), DatastoreError> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|source| DatastoreError::BadConfig { path: path.to_path_buf(), source })?;
        std::fs::write(path, text).map_err(DatastoreError::file("write", path))
    }

    pub(crate) fn root_seed(&self) -> RootSeed {
        RootSeed(self.seed)
    }

    /// Real time where the factor is none.
    pub(crate) fn dilation(&self) -> Dilation {
        Dilation::new(self.time_dilation).unwrap_or_default()
    }
}
