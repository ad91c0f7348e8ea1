//! A storage design of a plan: where the volumes live, and what is promised of them.

use std::path::PathBuf;
use underlay_core::words;
use underlay_core::{Durability, FileSystem};

use underlay_core::{Bytes, Evidence};
use underlay_model::cluster::{ClusterSpec, Policy};
use underlay_model::{DeviceProfile, DiskGroupSpec, HostLink};

use super::{ClientPlan, EnginePlan, VariantPlan};

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
    /// The volumes; always `data`, `wal` and `backup`, sometimes `temp`, in this order. Of several databases those of all,
    /// each with the name of its database before its own.
    pub volumes: Vec<VolumePlan>,
    /// On a cluster: the host that each volume is used from, by number. Volumes of one database have the same; those of a block
    /// load go round the hosts. Empty elsewhere.
    pub volume_hosts: Vec<u32>,
    /// The engine with this design's overrides applied; of several databases that of the first.
    pub engine: EnginePlan,
    /// The paths below `engine` that this design overrides, for example `settings.wal_level`.
    pub engine_overrides: Vec<String>,
    /// Where the load generator runs, with this design's overrides applied.
    pub client: ClientPlan,
    /// Whether results of this design are measured or emulated.
    pub evidence: Evidence,
    /// Of a study with axes: where it lies on them.
    pub variant: Option<VariantPlan>,
}

impl DesignPlan {
    /// The same volumes and server on another datastore. Volumes stay on their hosts where the other cluster has these;
    /// otherwise those of each database are used from one host.
    pub fn on_datastore(&self, kind: DatastoreKind) -> DesignPlan {
        let hosts = match &kind {
            DatastoreKind::Cluster(cluster) => cluster.spec.hosts.len(),
            DatastoreKind::Path { .. } | DatastoreKind::Emulated { .. } => 0,
        };
        let mut databases: Vec<&str> = Vec::new();
        let mut volume_hosts = Vec::new();
        for (index, volume) in self.volumes.iter().enumerate().take_while(|_| hosts > 0) {
            let database = volume.name.rsplit_once('-').map_or("", |(database, _)| database);
            let known = databases.iter().position(|it| *it == database);
            let number = known.unwrap_or_else(|| {
                databases.push(database);
                databases.len() - 1
            });
            let own = self.volume_hosts.get(index).filter(|host| (**host as usize) < hosts);
            volume_hosts.push(own.copied().unwrap_or_else(|| unplaced_host(number, hosts)));
        }
        DesignPlan { kind, volume_hosts, ..self.clone() }
    }
}

/// The host of a database that has no place on a cluster, by number: the last for the first database, the one before for the
/// next. Placement of volumes begins at the first host, and a machine's place has nothing to do with its data's.
pub(crate) fn unplaced_host(database: usize, hosts: usize) -> u32 {
    (hosts - 1 - database % hosts) as u32
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
        /// The link between the host and all devices; `None` = each is connected directly.
        link: Option<HostLink>,
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
    /// Share of every capacity device that other data takes at the start of a run, in percent; `None` = they are empty.
    pub fill_percent: Option<u8>,
    /// What its hosts give the databases that are placed on them, scaled; only of hosts with a limit.
    pub compute: Vec<HostCompute>,
}

/// What the second threads of all cores add to what the cores do alone: VMware measured 157,000 orders per minute with
/// hyper-threading and 133,000 without ("SQL Server 2016 Database Performance and Improvements on vSAN 6.7", figure 7).
const SECOND_THREADS: f64 = 0.18;

/// Processors and memory of a host, shared by the databases that are placed on it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCompute {
    /// Name of the host.
    pub host: String,
    /// Its cores; `None` = no limit.
    pub cores: Option<f64>,
    /// Hardware threads of each core, 1 or 2.
    pub threads_per_core: u32,
    /// Speed of its cores, compared with those of other designs; 1 = the same.
    pub core_speed: f64,
    /// Its memory; `None` = no limit.
    pub memory: Option<Bytes>,
}

impl HostCompute {
    /// What all databases on the host get together, in cores of speed 1 that run one thread each; `None` = no limit.
    pub fn cpus(&self) -> Option<f64> {
        self.cores.map(|cores| cores * self.thread_gain() * self.core_speed)
    }

    /// What its cores do with all their threads, over what they do with one each.
    pub fn thread_gain(&self) -> f64 {
        if self.threads_per_core > 1 { 1.0 + SECOND_THREADS } else { 1.0 }
    }

    /// Processors that a server on the host sees, one per thread; `None` = no limit.
    pub fn threads(&self) -> Option<f64> {
        self.cores.map(|cores| cores * f64::from(self.threads_per_core))
    }
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

words! {
    /// How the members of a device hold its data.
    pub enum Layout: "layout" {
        /// Each holds a part of it.
        Stripe = "stripe",
        /// Each holds all of it.
        Mirror = "mirror",
    }
}

words! {
    /// What happens to data as it leaves the write buffer of a disk group.
    pub enum ReductionKind: "data reduction" {
        /// It is stored as it is.
        Off = "off",
        /// Blocks of 4 KiB are deduplicated and compressed.
        DedupeCompress = "dedupe-compress",
    }
}

words! {
    /// How rebuilding shares the devices of a disk group with the volumes.
    pub enum ResyncKind: "resync policy" {
        /// Volumes first, rebuilding at least its floor.
        Adaptive = "adaptive",
        /// In order of arrival.
        None = "none",
        /// At most a fixed rate.
        StaticLimit = "static-limit",
        /// A rate that follows the volumes' latency.
        LatencyWatermark = "latency-watermark",
    }
}

/// One volume (virtual disk) of a design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumePlan {
    /// `data`, `wal`, `backup` or `temp`; of several databases `oltp-1-data` and so on.
    pub name: String,
    /// Size of the volume.
    pub capacity: Bytes,
    /// The device it lies on; `None` where volumes do not lie on single devices.
    pub device: Option<String>,
    /// What it is formatted with (emulated datastores only).
    pub file_system: FileSystem,
}
