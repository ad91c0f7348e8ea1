//! A hyper-converged cluster: hosts with disk groups, one datastore over all of them, a policy per volume.
//!
//! In reading order: names ([`HostId`] and the others), what a cluster is made of ([`ClusterSpec`]) and what a volume asks of it
//! ([`Policy`]), the address map ([`Geometry`]), what can happen ([`Fault`]), the events for the driver ([`ClusterEvent`],
//! [`DataCommand`]), and the [`Cluster`] itself. It is a facade over three parts:
//!
//! * `storage`: what is stored where. It owns the `inventory` (hosts, disk groups, network), the `membership` (which
//!   hosts are there, in truth and as seen), the `objects` (volumes and their components), the `clock` and the `outbox` of events and state changes.
//! * `requests`: the path of a request.
//! * `repair`: what follows from membership, resynchronisation, replacement, policy changes and rebalancing.
//!
//! Requests and repair change the storage and call each other; each gets the others as arguments.
//!
//! ```text
//! submit -> limit, congestion -> parts (one per row) -> I/Os on components -> disk groups
//!                                      |                       network
//!                                      v
//!                     data command at the moment it takes effect, then `Finished`
//! ```
//!
//! What is deliberately not here: bytes. The cluster decides when and where; the data plane carries out
//! [`DataCommand`]s on real bytes, in the order in which they come.
//!
//! **Promises**, each checked by the simulation in `tests/it/cluster_simulation`: with `n` failures to tolerate any `n` failed
//! devices or hosts lose nothing that was acknowledged, and the volume serves; beyond that it answers errors within the
//! detection time, never wrong data, and serves again when enough came back. What a member missed is known exactly (its stale
//! regions), and only that is copied.

mod ids;

mod regions;

mod row_copy;

mod volatile;

mod spec;

mod geometry;

mod policy;

mod fault;

mod data_command;

mod event;

mod volume_counters;

mod slab;

mod timers;

mod clock;

mod outbox;

mod inventory;

mod membership;

mod objects;

mod storage;

mod component_lifecycle;

mod requests;

mod repair;

mod wakeups;

mod topology;

mod network;

mod stack;

mod object;

mod policy_change;

mod volume;

mod component_place;

mod placement;

mod operation;

mod iops_limit;

#[expect(clippy::module_inception, reason = "the file is named by its concept")]
mod cluster;

mod growth;

mod fill;

mod volumes;

mod owner;

mod regular_look;

mod row_plan;

mod cached_set;

mod whole_set;

mod row_members;

mod wants;

mod space;

mod fault_injection;

mod status;

mod reduction;

mod readings;

mod state;

mod policy_record;

mod survey;

mod state_saving;

mod state_checking;

mod state_restoring;

#[cfg(test)]
mod tests;

pub use cluster::Cluster;
pub use data_command::{Content, DataCommand, DurabilityPoint, MEMBERS_MAX, Piece, PieceMember};
pub use event::{
    ClusterEvent, ComponentState, IoFailure, Notice, Outcome, PriorFault, Reachability,
    ResyncReason, VolumeFinished,
};
pub use fault::{Fault, FaultProblem, ReturnedContent};
pub use geometry::{Geometry, Role, RowRange, Rows, SetKind};
pub use ids::{ComponentId, DeviceId, GroupId, HostId, VolumeId};
pub use owner::{OwnerProblem, host_of_machine};
pub use placement::PlacementRefusal;
pub use policy::{Checksum, Method, Policy, PolicyProblem};
pub use reduction::Leaving;
pub use regions::RegionSet;
pub use spec::{ClusterProblem, ClusterSettings, ClusterSpec, HostSpec, NetworkSpec};
pub use stack::{REQUESTS_AT_ONCE, Stack};
pub use state::{
    ClusterState, ComponentRecord, HostCondition, HostRecord, LayoutRecord, PolicyRecord, Restart,
    RestoreProblem, VolumeRecord,
};
pub use status::{
    ComponentRole, ComponentStatus, DeviceStatus, HostUse, ResyncStatus, VolumeStatus,
};
pub use survey::Found;
pub use volume_counters::VolumeCounters;
