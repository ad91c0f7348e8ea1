//! The stored state of a cluster: placement, states, stale regions, policy changes, rows in doubt.
//!
//! These types are the format; the cluster's own types are not serialisable. Region sets are stored as runs. Times are
//! stored as what is left of them, because the clock starts again at zero.
//!
//! ## When to store it
//!
//! At each [`super::ClusterEvent::StateChanged`]: after the preceding commands were carried out, and before the following
//! ones. After, because a state that says that a copy has ended must not be stored before the copy. Before, because members
//! that the last stored state relies on must exist until it is replaced. No command may stay half done: on a restart it is
//! completed first (the write-intent log of the `datastore` crate's data plane). Then a restart with [`Restart::Unclean`]
//! loses nothing, however many of the commands since the last state were carried out: rows whose members may differ are
//! made equal by copying, components that were not active are filled completely, and components that the state does not
//! name belong to no volume. The state is first corrected by a survey of the components ([`ClusterState::correct`]). State
//! that was stored at rest, after the last request, may be restored with [`Restart::Clean`]: only what was left to copy is
//! copied.

use serde::{Deserialize, Serialize};

/// Version of the format.
pub(super) const VERSION: u32 = 1;

/// Whether the last run ended cleanly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// No request was in flight, and the state was stored after the last one.
    Clean,
    /// Anything may have been in flight; what was under way has been completed, and everything that was carried out is there.
    Unclean,
    /// The same, and what was carried out last may be gone: even rows with parity may not fit.
    AfterHostCrash,
}

/// A cluster's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClusterState {
    /// Version of the format.
    pub version: u32,
    /// Number of the next component.
    pub next_component: u32,
    /// Number of the next volume.
    pub next_volume: u32,
    /// Hosts that were not up.
    pub hosts: Vec<HostRecord>,
    /// Devices that had failed: disk group, member.
    pub failed_devices: Vec<(u32, u8)>,
    /// All components.
    pub components: Vec<ComponentRecord>,
    /// All volumes.
    pub volumes: Vec<VolumeRecord>,
}

/// A host that was not up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostRecord {
    /// Its number.
    pub host: u32,
    /// What it was doing.
    pub condition: HostCondition,
    /// The side of a partition, 0 = the main one.
    pub side: u32,
}

/// What a host was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostCondition {
    /// Running.
    Up,
    /// Running, and answering nothing.
    Frozen,
    /// Without power.
    Lost,
}

/// One component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ComponentRecord {
    /// Its number.
    pub component: u32,
    /// Disk group.
    pub group: u32,
    /// Capacity device in the group, from 0.
    pub disk: u8,
    /// Where it begins in the device's address space.
    pub base: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Bytes reserved.
    pub reserved: u64,
    /// Whether it was active.
    pub active: bool,
    /// Runs of stale regions: first, number.
    pub stale: Vec<(u64, u64)>,
    /// Runs of occupied regions.
    pub written: Vec<(u64, u64)>,
    /// Why it was being filled.
    pub reason: String,
    /// Nanoseconds until it is rebuilt elsewhere, when it was absent.
    pub repair_in_ns: Option<u64>,
    /// Runs of regions in which blocks are known to be lost. Not stored: the owner of the data says so before it is
    /// restored.
    #[serde(skip)]
    pub unsure: Vec<(u64, u64)>,
}

/// One layout of a volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LayoutRecord {
    /// What it promises.
    pub policy: PolicyRecord,
    /// Number of sets.
    pub sets: u32,
    /// Length of a stripe unit.
    pub unit_bytes: u32,
    /// Component of each slot and the one that is to replace it; sets one after the other.
    pub slots: Vec<(u32, Option<u32>)>,
    /// Hosts with a witness.
    pub witnesses: Vec<u32>,
    /// Per set: runs of rows whose members may differ.
    pub in_doubt: Vec<Vec<(u64, u64)>>,
}

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PolicyRecord {
    /// Failures to tolerate.
    pub failures_to_tolerate: u8,
    /// By erasure coding instead of mirroring.
    pub erasure_coding: bool,
    /// Stripes per object.
    pub stripe_width: u8,
    /// Normalised I/Os per second.
    pub iops_limit: Option<u32>,
    /// Whether blocks are summed.
    pub checksum: bool,
    /// Percent of the size set aside.
    pub space_reservation_percent: u8,
}

/// One volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct VolumeRecord {
    /// Its number.
    pub volume: u32,
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub capacity: u64,
    /// Where it is read.
    pub present: LayoutRecord,
    /// What a policy change was filling.
    pub next: Option<LayoutRecord>,
    /// Runs of units that were not in the next layout yet.
    pub pending: Vec<(u64, u64)>,
    /// A policy change that was to be tried again.
    pub wanted: Option<PolicyRecord>,
    /// Whether a loss of unflushed writes had not been reported yet.
    pub unreported_loss: bool,
}

/// Why a state cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreProblem {
    /// The specification has problems.
    #[error("the cluster's specification has problems: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Specification(Vec<super::spec::ClusterProblem>),
    /// Another version.
    #[error("the stored state has format version {found}, this program reads {VERSION}")]
    Version {
        /// What was found.
        found: u32,
    },
    /// The state belongs to another cluster.
    #[error("the stored state does not fit the cluster: {0}")]
    Misfit(String),
}

pub(super) fn misfit(what: String) -> RestoreProblem {
    RestoreProblem::Misfit(what)
}
