//! What `underlay volume` asks a supervisor, and what comes back: one JSON line each over a unix socket.
//!
//! Both ends are built from this file. A supervisor of an older program may still run, so an answer that cannot be
//! understood says so instead of guessing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::control::Condition;
use crate::fault::{ClusterFault, DatastoreNotice};

/// What a supervisor can be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Question {
    Status,
    /// Latencies since the last such question.
    Latencies,
    /// Latencies inside a cluster since the last such question.
    BackendLatencies,
    /// How well times were kept since the last such question.
    Timing,
    /// The same since the start. Takes nothing from who asks for the other.
    TimingSinceStart,
    Create(NewVolume),
    Remove {
        name: String,
    },
    SetCondition {
        device: String,
        condition: Condition,
    },
    Inject(ClusterFault),
    /// What happened since the last such question.
    Notices,
    PowerCut,
    PowerOn,
    Stop {
        /// Also when the volumes are in use.
        forced: bool,
    },
    /// Refused when there is a volume.
    StopIfEmpty,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reply {
    Done,
    Status(Box<Status>),
    Latencies(Vec<Latency>),
    BackendLatencies(Vec<BackendLatencyStatus>),
    Timing(TimingStatus),
    Notices(Vec<DatastoreNotice>),
    Created(Box<VolumeStatus>),
    /// It would not be right to do it; nothing was done.
    Refused {
        reason: String,
    },
    /// It was tried and went wrong.
    Failed {
        reason: String,
    },
}

/// A volume to be created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NewVolume {
    /// Lower case letters, digits and `-`.
    pub name: String,
    /// Its size; a multiple of 4,096.
    pub capacity_bytes: u64,
    /// The device it is to lie on; `None` = the first one.
    pub device: Option<String>,
    /// What it asks of a cluster; `None` = one failure to tolerate by mirroring.
    pub policy: Option<NewPolicy>,
    /// `ext4` or `xfs`; `None` = a bare block device.
    pub file_system: Option<String>,
    /// An existing directory to mount it on; `None` = a place of the datastore's own. Only with a file
    /// system.
    pub mount: Option<PathBuf>,
}

/// What a volume asks of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NewPolicy {
    /// Failures that lose nothing, 0 to 2.
    pub failures_to_tolerate: u8,
    /// By parity instead of copies.
    pub erasure_coding: bool,
    /// Devices over which each copy is spread, 1 to 12.
    pub stripe_width: u8,
    /// Most I/Os per second, in units of 32 KiB.
    pub iops_limit: Option<u32>,
    /// Whether blocks carry a checksum.
    pub checksum: bool,
    /// Share of the size that is set aside at creation, 0 to 100.
    pub space_reservation_percent: u8,
}

/// What a running datastore does. Counters are since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// Where it lives.
    pub directory: PathBuf,
    /// The supervisor's and the server's process.
    #[serde(alias = "keeper-pid")]
    pub supervisor_pid: u32,
    /// The server's process.
    pub server_pid: u32,
    /// Whether there is power.
    pub powered: bool,
    /// Why there are no block devices, if so; volumes are then served over NBD only.
    pub no_block_devices: Option<String>,
    /// The unix socket for NBD clients.
    pub nbd_socket: PathBuf,
    /// Where NBD clients are accepted over TCP.
    pub nbd_address: Option<SocketAddr>,
    /// The devices; of a cluster also its cache devices, on which no volume lies.
    pub devices: Vec<DeviceStatus>,
    /// Where the volumes of a cluster lie; empty without one.
    #[serde(default)]
    pub components: Vec<ComponentStatus>,
    /// Counters and gauges of a cluster by name; empty without one.
    pub cluster: BTreeMap<String, f64>,
    /// What happened in a cluster lately, oldest first; at most 200 entries.
    pub notices: Vec<RecentNotice>,
    /// The volumes, in the order of their creation.
    pub volumes: Vec<VolumeStatus>,
    /// Requests held back until the model said they were done.
    pub delayed: u64,
    /// Requests for which this host was slower than the modelled device.
    pub host_limited: u64,
    /// Sum of the lateness of delayed requests, ns.
    pub lateness_ns: u64,
    /// Requests whose data could not be moved.
    pub errors: u64,
    /// CPU time that the server took, ns.
    pub cpu_ns: u64,
    /// Resident memory of the server.
    pub memory_bytes: u64,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeviceStatus {
    /// Its name.
    pub name: String,
    /// Its profile.
    pub profile: String,
    /// `healthy`, `slow`, `stuck`, `erroring` or `lost`; of a cluster's devices also `failed`: given up by the cluster, and
    /// `unreachable`: its host is lost, frozen or behind a partition.
    pub condition: String,
    /// What it holds.
    pub capacity_bytes: u64,
    /// What no volume takes; of a cluster's cache device, what is free of its write buffer.
    pub free_bytes: u64,
    /// Bytes in its write buffer.
    pub buffer_fill_bytes: u64,
    /// Bytes that left its write buffer.
    pub drained_bytes: u64,
}

/// One volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct VolumeStatus {
    /// Its name.
    pub name: String,
    /// Its size.
    pub capacity_bytes: u64,
    /// What its data takes on this host.
    pub stored_bytes: u64,
    /// The device it lies on; empty on a cluster.
    pub device: String,
    /// How it is protected on a cluster: `RAID-1`, `RAID-5`, ...
    pub policy: Option<String>,
    /// `ext4`, `xfs`, or a bare block device.
    pub file_system: Option<String>,
    /// Its block device, such as `/dev/loop3`.
    pub block_device: Option<PathBuf>,
    /// A name of the block device that stays the same: a symbolic link in the datastore's directory.
    pub link: Option<PathBuf>,
    /// Where it is mounted.
    pub mount: Option<PathBuf>,
    /// For NBD clients.
    pub nbd_uri: String,
    /// For NBD clients that only speak TCP.
    pub nbd_tcp_uri: Option<String>,
    /// Requests that were answered with an I/O error while there was power.
    #[serde(default)]
    pub errors: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// Bytes that a power cut could take away; none of a cluster's volume, where they are not counted.
    pub volatile_bytes: Option<u64>,
    /// Connections of NBD clients.
    #[serde(default)]
    pub nbd_clients: u64,
    /// Per operation: read, write, flush, discard.
    pub operations: Vec<OperationStatus>,
    /// Warnings for its creator, and whether it could not be mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One component of a volume of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ComponentStatus {
    /// Its name, as faults and notices call it: `c0`.
    pub name: String,
    /// Whose it is.
    pub volume: String,
    /// Where it lies: `HOST/GROUP/disk0`.
    pub device: String,
    /// `active`, `absent`, `degraded`, `stale` or `resyncing`.
    pub state: String,
    /// `current`, `replacement` (being filled to take another one's place), or `next-layout` (of a policy change).
    pub role: String,
    /// Its length.
    pub length_bytes: u64,
    /// What must be copied before it is current.
    pub stale_bytes: u64,
    /// What its data takes on this host.
    pub stored_bytes: u64,
}

/// What a volume did of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OperationStatus {
    /// `read`, `write`, `flush` or `discard`.
    pub operation: String,
    /// How many.
    pub ios: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Sum of latencies as a client sees them.
    pub latency_ns: u64,
    /// Sum of the modelled waiting for other requests.
    pub queue_ns: u64,
}

/// Latencies of one operation on one volume over some span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Latency {
    /// The volume.
    pub volume: String,
    /// The operation.
    pub operation: String,
    /// How many.
    pub ios: u64,
    /// Percentiles of the latency a client sees.
    pub p50_ns: u64,
    /// See [`Latency::p50_ns`].
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Latencies of a disk group's requests of one class, or of a device's, over some span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BackendLatencyStatus {
    /// `group.HOST/GROUP.CLASS.OPERATION` or `device.HOST/GROUP/DEVICE.OPERATION`.
    pub name: String,
    /// How many.
    pub ios: u64,
    /// Percentiles of the latency, from submission to answer.
    pub p50_ns: u64,
    /// See [`BackendLatencyStatus::p50_ns`].
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// How well modelled times were kept over some span; see [`crate::TimingReport`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TimingStatus {
    /// Whether latencies may be read as the modelled device's.
    pub valid: bool,
    /// Why not, if not.
    pub reason: Option<String>,
    /// Requests held back until the model said they were done.
    pub delayed: u64,
    /// Of those, the 99th percentile of how late they were answered; none when there were none.
    pub lateness_p99_ns: Option<u64>,
    /// And the median of their modelled latencies.
    pub modelled_p50_ns: Option<u64>,
    /// Share of all requests, 0..=1, for which this host was slower than the modelled device.
    pub host_limited_share: f64,
    /// Mean latency of reads and writes as the kernel's block layer saw it, which begins when a request enters the queue of its block
    /// device; none when it says nothing about them, as when clients come over NBD, or over the time since the start.
    #[serde(default)]
    pub block_mean_ns: Option<u64>,
    /// And that of the same requests by the model.
    #[serde(default)]
    pub modelled_mean_ns: Option<u64>,
}

/// Something that happened in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RecentNotice {
    /// When, in nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// `fault`, `host`, `device`, `component`, `resync`, `volume` or `data`.
    pub kind: String,
    /// What.
    pub text: String,
}
