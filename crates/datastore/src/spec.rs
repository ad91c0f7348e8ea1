//! What a caller asks for: which datastore, which volumes on it, and in which surroundings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use underlay_core::{Bytes, Dilation, Durability, RootSeed};
use underlay_host::{FileSystem, Teardown, User};
use underlay_model::cluster::{ClusterSpec, Method, Policy};
use underlay_model::{DeviceProfile, HostLink};

/// One volume to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeRequest {
    /// `data`, `wal`, `backup`, `temp`: lower case letters, digits and `-`, unique in a datastore.
    pub name: String,
    /// Size of the volume, file system included.
    pub capacity: Bytes,
    /// What to format it with. A `path` datastore keeps the file system it is on.
    pub file_system: FileSystem,
    /// The device of the design that it lives on; `None` = the first.
    pub device: Option<String>,
    /// The host of the cluster that it is used from, by number; `None` = that of its first component.
    pub host: Option<u32>,
}

/// One volume, ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedVolume {
    /// As requested.
    pub name: String,
    /// The directory to put files in. Owned by [`Context::owner`] when there is one.
    pub path: PathBuf,
    /// The block device below, a key of `/proc/diskstats` (`loop3`, `nvme0n1p2`); `None` when the file
    /// system has no single one.
    pub block_device: Option<String>,
    /// Whether that device serves this volume and nothing else, so that its counters are the volume's.
    pub owns_block_device: bool,
    /// Size of the volume.
    pub capacity: Bytes,
}

/// Which datastore.
#[derive(Clone, Debug, PartialEq)]
pub enum DatastoreSpec {
    /// A directory on any mounted file system. What is measured there is measured for real.
    Path {
        /// Must exist and be writable.
        directory: PathBuf,
    },
    /// Modelled devices over backing files.
    Emulated {
        /// The devices by name.
        devices: Vec<(String, DeviceProfile)>,
        /// What all randomness of the models and of power cuts derives from.
        seed: RootSeed,
        /// Where the backing files are kept; `None` = in memory if the volumes take at most half of
        /// what is available, else in the scratch directory.
        backing_directory: Option<PathBuf>,
        /// What a power cut can take away.
        durability: Durability,
        /// The link between the host and all devices; `None` = each is connected directly.
        link: Option<HostLink>,
    },
    /// A modelled hyper-converged cluster over files for its components.
    Cluster {
        /// The cluster, and what volumes ask of it.
        storage: Box<ClusterStorage>,
        /// What all randomness of the model and of power cuts derives from.
        seed: RootSeed,
        /// As in [`DatastoreSpec::Emulated`]; copies and parity need their space too.
        backing_directory: Option<PathBuf>,
    },
}

/// A cluster, and what volumes ask of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterStorage {
    /// The cluster.
    pub spec: ClusterSpec,
    /// The policy of volumes that have none of their own.
    pub policy: Policy,
    /// Policies by the volume's name.
    pub policies: BTreeMap<String, Policy>,
    /// Share of every capacity device that other data takes at the start, in percent; `None` = they are empty.
    pub fill_percent: Option<u8>,
}

impl ClusterStorage {
    /// What a volume asks.
    pub fn policy_of(&self, volume: &str) -> Policy {
        self.policies.get(volume).copied().unwrap_or(self.policy)
    }

    /// What a volume needs at most, copies, parity and checksums included.
    pub(crate) fn needed(&self, volume: &str, capacity: Bytes) -> Bytes {
        with_checksums(full_size(&self.policy_of(volume), capacity))
    }
}

/// What all copies of a volume take when it is full, parity included.
pub(crate) fn full_size(policy: &Policy, capacity: Bytes) -> Bytes {
    let failures = u64::from(policy.failures_to_tolerate);
    Bytes(match (policy.method, failures) {
        (Method::ErasureCoding, 1) => capacity.0.div_ceil(3).saturating_mul(4),
        (Method::ErasureCoding, _) => capacity.0.div_ceil(4).saturating_mul(6),
        (Method::Mirror, _) => capacity.0.saturating_mul(failures + 1),
    })
}

/// The same on this host, where each component has its checksums beside it.
pub(crate) fn with_checksums(stored: Bytes) -> Bytes {
    Bytes(stored.0.saturating_add(stored.0 / 1024))
}

/// Whether modelled latencies are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timing {
    /// Requests complete when the model says so.
    Modelled,
    /// Requests complete at once: for restores, and for the causal check.
    Off,
}

/// The surroundings of a datastore.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Everything acquired is registered here first.
    pub teardown: &'a Teardown,
    /// An existing directory of this run, for mount points, sockets, logs and (by default) backing files.
    pub scratch: &'a Path,
    /// The program that understands `datastore-server --config FILE` by calling [`crate::serve`].
    pub server_program: &'a Path,
    /// Owner of the volumes' directories; `None` = the user that runs this.
    pub owner: Option<&'a User>,
    /// How many times slower than the host's clock emulated storage is: all times that a datastore reports
    /// are in design time.
    pub dilation: Dilation,
}
