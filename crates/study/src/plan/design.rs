//! A storage design of a plan: where the volumes live, and what is promised of them.

use std::path::PathBuf;

use underlay_core::{Bytes, Evidence};
use underlay_model::cluster::{ClusterSpec, Policy};
use underlay_model::{DeviceProfile, DiskGroupSpec};

use super::EnginePlan;

/// One storage design.
#[derive(Clone, Debug)]
pub struct DesignPlan {
    /// File-name safe, unique in the study.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What it is.
    pub description: String,
    /// What its numbers rest on.
    pub source: String,
    /// The built-in design it started from, if any.
    pub based_on: Option<String>,
    /// Where the volumes live.
    pub kind: DatastoreKind,
    /// The volumes; always `data`, `wal` and `backup`, sometimes `temp`, in this order.
    pub volumes: Vec<VolumePlan>,
    /// The engine with this design's overrides applied.
    pub engine: EnginePlan,
    /// The paths below `engine` that this design overrides, for example `settings.wal_level`.
    pub engine_overrides: Vec<String>,
    /// Whether results of this design are measured or emulated.
    pub evidence: Evidence,
}

/// Where the volumes of a design live.
#[derive(Clone, Debug)]
pub enum DatastoreKind {
    /// A directory of the host: a mounted device, a network file system, anything.
    Path {
        /// The directory; each volume becomes a directory below it.
        directory: PathBuf,
    },
    /// Modelled devices over backing files, in real time.
    Emulated {
        /// The devices by name, in the order of the file.
        devices: Vec<(String, DeviceProfile)>,
        /// When an acknowledged write is safe.
        durability: Durability,
        /// Where the backing files go; `None` = Underlay's own folder.
        backing: Option<PathBuf>,
    },
    /// A hyper-converged cluster of modelled hosts.
    Cluster(Box<ClusterPlan>),
}

/// A cluster and what its volumes ask of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterPlan {
    /// Hosts, disk groups, network and settings, scaled.
    pub spec: ClusterSpec,
    /// The policy of every volume of the design.
    pub policy: Policy,
}

impl ClusterPlan {
    /// A disk group as this cluster would have it: scheduled and reduced as its other groups are.
    pub fn joining(&self, group: &DiskGroupSpec) -> DiskGroupSpec {
        match self.spec.hosts.iter().flat_map(|host| &host.groups).next() {
            None => group.clone(),
            Some(present) => DiskGroupSpec {
                scheduler: present.scheduler,
                reduction: present.reduction,
                ..group.clone()
            },
        }
    }
}

/// What happens to data as it leaves the write buffer of a disk group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReductionKind {
    /// It is stored as it is.
    Off,
    /// Blocks of 4 KiB are deduplicated and compressed.
    DedupeCompress,
}

impl ReductionKind {
    /// All kinds.
    pub const ALL: [ReductionKind; 2] = [ReductionKind::Off, ReductionKind::DedupeCompress];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            ReductionKind::Off => "off",
            ReductionKind::DedupeCompress => "dedupe-compress",
        }
    }
}

/// How rebuilding shares the devices of a disk group with the volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResyncKind {
    /// Volumes first, rebuilding at least its floor.
    Adaptive,
    /// In order of arrival.
    None,
    /// At most a fixed rate.
    StaticLimit,
    /// A rate that follows the volumes' latency.
    LatencyWatermark,
}

impl ResyncKind {
    /// All kinds.
    pub const ALL: [ResyncKind; 4] = [
        ResyncKind::Adaptive,
        ResyncKind::None,
        ResyncKind::StaticLimit,
        ResyncKind::LatencyWatermark,
    ];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            ResyncKind::Adaptive => "adaptive",
            ResyncKind::None => "none",
            ResyncKind::StaticLimit => "static-limit",
            ResyncKind::LatencyWatermark => "latency-watermark",
        }
    }
}

/// When an emulated device keeps what it acknowledged through a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// As the device profile says: protected buffers keep everything acknowledged.
    Profile,
    /// Only what was flushed, or written through, survives.
    Flushed,
    /// Everything acknowledged survives.
    Acknowledged,
    /// Flushes are acknowledged and not carried out: a device that lies.
    Lying,
}

impl Durability {
    /// All kinds.
    pub const ALL: [Durability; 4] =
        [Durability::Profile, Durability::Flushed, Durability::Acknowledged, Durability::Lying];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Durability::Profile => "profile",
            Durability::Flushed => "flushed",
            Durability::Acknowledged => "acknowledged",
            Durability::Lying => "lying",
        }
    }
}

/// One volume (virtual disk) of a design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumePlan {
    /// `data`, `wal`, `backup` or `temp`.
    pub name: String,
    /// Size of the volume.
    pub capacity: Bytes,
    /// The device it lies on; `None` where volumes do not lie on single devices.
    pub device: Option<String>,
    /// What it is formatted with (emulated datastores only).
    pub file_system: FileSystem,
}

/// File systems a volume can be formatted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// xfs.
    Xfs,
}

impl FileSystem {
    /// All file systems.
    pub const ALL: [FileSystem; 2] = [FileSystem::Ext4, FileSystem::Xfs];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
        }
    }
}
