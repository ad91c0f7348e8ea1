//! Events that a cluster emits for its driver: data commands, finished requests, and notices for the time line.
//!
//! What is not here: how events are ordered and buffered (see the module `outbox`).

use super::data_command::DataCommand;
use super::ids::{ComponentId, DeviceId, HostId, VolumeId};
use super::state::ClusterState;
use crate::request::Operation;
use crate::store::RequestId;
use std::fmt;
use underlay_core::{Bytes, Nanos};

/// One thing that happened. Events come in the order in which they are to be dealt with: in which they happened, except
/// that what must not come before a stored state comes after [`ClusterEvent::StateChanged`].
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterEvent {
    /// Something for the data plane.
    Data(DataCommand),
    /// What must not be forgotten has changed to this: it is to be stored after everything before this event was carried
    /// out, and before anything after it is carried out or answered. Only after [`super::Cluster::remember_changes`].
    StateChanged(Box<ClusterState>),
    /// A request is done.
    Finished(VolumeFinished),
    /// Something for the time line.
    Notice {
        /// When.
        at: Nanos,
        /// What.
        notice: Notice,
    },
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeFinished {
    /// The caller's name for it.
    pub request: RequestId,
    /// Its volume.
    pub volume: VolumeId,
    /// What it was.
    pub operation: Operation,
    /// When it was submitted.
    pub arrived: Nanos,
    /// When it was done.
    pub at: Nanos,
    /// How much earlier that is told; see [`super::Cluster::submit_early`].
    pub early: Nanos,
    /// Time it waited: for its turn, for other requests, for a congested disk group.
    pub queue: Nanos,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As asked. A write is on every live member.
    Ok,
    /// With an I/O error. A failed write may have taken effect in part.
    Error(IoFailure),
}

/// Why a request got an I/O error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoFailure {
    /// No side of the cluster has more than half of the object's votes.
    NoQuorum,
    /// No current copy of the data can be reached.
    NoCurrentCopy,
    /// A device is full.
    NoSpace,
    /// A power cut took acknowledged writes that no flush had made durable, and no member has them. Reported once, by
    /// the first flush that ends after it, and by those that were in flight.
    UnflushedLost,
    /// The volume was removed.
    VolumeRemoved,
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IoFailure::NoQuorum => "no side of the cluster has more than half of the votes",
            IoFailure::NoCurrentCopy => "no current copy of the data can be reached",
            IoFailure::NoSpace => "a capacity device is full",
            IoFailure::UnflushedLost => "a power cut destroyed writes that were not flushed",
            IoFailure::VolumeRemoved => "the volume was removed",
        })
    }
}

/// Why data is being copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResyncReason {
    /// A component is gone; another takes its place.
    Repair,
    /// A component came back and missed something.
    Stale,
    /// The volume's policy changed.
    Policy,
    /// Devices are unevenly or too full.
    Rebalance,
}

impl ResyncReason {
    /// All reasons, in the order used by counters.
    pub const ALL: [ResyncReason; 4] =
        [ResyncReason::Repair, ResyncReason::Stale, ResyncReason::Policy, ResyncReason::Rebalance];

    /// The word used in series names and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            ResyncReason::Repair => "repair",
            ResyncReason::Stale => "stale",
            ResyncReason::Policy => "policy",
            ResyncReason::Rebalance => "rebalance",
        }
    }
}

/// The state of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComponentState {
    /// Reachable and current.
    Active,
    /// Not reachable; it may come back. Rebuilt elsewhere after the repair delay.
    Absent,
    /// Its device failed. Rebuilt elsewhere at once.
    Degraded,
    /// Reachable, and parts of it are old; nothing is being copied, for want of a source or its turn.
    Stale,
    /// Reachable, and being filled.
    Resyncing,
}

impl fmt::Display for ComponentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ComponentState::Active => "active",
            ComponentState::Absent => "absent",
            ComponentState::Degraded => "degraded",
            ComponentState::Stale => "stale",
            ComponentState::Resyncing => "resyncing",
        })
    }
}

/// Something for the time line.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A component changed its state.
    Component {
        /// The component.
        component: ComponentId,
        /// Whose it is.
        volume: VolumeId,
        /// Its state now.
        state: ComponentState,
    },
    /// A volume began to answer I/O errors.
    VolumeUnavailable {
        /// The volume.
        volume: VolumeId,
        /// Why.
        reason: IoFailure,
    },
    /// A power cut took writes that were acknowledged and not flushed, and no member has them.
    UnflushedLost {
        /// The volume.
        volume: VolumeId,
        /// How much at most: all rows that may have changed.
        most: Bytes,
    },
    /// A volume serves again.
    VolumeAvailable {
        /// The volume.
        volume: VolumeId,
    },
    /// Copying began.
    ResyncStarted {
        /// Whose data.
        volume: VolumeId,
        /// Why.
        reason: ResyncReason,
        /// How much.
        bytes: Bytes,
    },
    /// Copying ended: everything asked for is in its place.
    ResyncFinished {
        /// Whose data.
        volume: VolumeId,
        /// Why it was copied.
        reason: ResyncReason,
    },
    /// Copying was given up.
    ResyncAbandoned {
        /// Whose data.
        volume: VolumeId,
        /// Why it was copied.
        reason: ResyncReason,
    },
    /// A component that must be rebuilt cannot be placed.
    RepairBlocked {
        /// Whose component.
        volume: VolumeId,
        /// What is missing.
        reason: String,
    },
    /// A host stopped or began to be reachable.
    Host {
        /// The host.
        host: HostId,
        /// Whether it can be reached now.
        reachability: Reachability,
    },
    /// A device counts as failed.
    DeviceFailed {
        /// The device.
        device: DeviceId,
    },
    /// A device is as its profile says again.
    DeviceReturned {
        /// The device.
        device: DeviceId,
        /// What was wrong with it until now.
        was: PriorFault,
    },
    /// A fault was injected, in words.
    Fault {
        /// What.
        description: String,
    },
}

/// The fault of a device that works again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorFault {
    /// Nothing.
    None,
    /// It was out of use: failed, gone, or exchanged for an empty one.
    OutOfUse,
    /// It was in use, and slower than it should be.
    Slow,
    /// It was in use, and answered nothing.
    Stuck,
    /// It was in use, and answered with errors.
    Erroring,
}

/// Whether a host can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// It answers.
    Reachable,
    /// It does not.
    Unreachable,
}
