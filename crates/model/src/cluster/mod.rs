//! A hyper-converged cluster: hosts with disk groups, one datastore over all of them, a policy per volume.
//!
//! In reading order: names ([`HostId`] and the others), what a cluster is made of ([`ClusterSpec`]) and what a volume asks of it
//! ([`Policy`]), the address map ([`Geometry`]), what can happen ([`Fault`]), and what the cluster tells its driver
//! ([`ClusterEvent`], [`DataCommand`]).
//!
//! What is deliberately not here: bytes. The cluster decides when and where; the data plane carries out
//! [`DataCommand`]s on real bytes, in the order in which they come.

mod ids;

mod regions;

mod spec;

mod geometry;

mod policy;

mod fault;

mod data_command;

mod event;

pub use data_command::{Content, DataCommand, Durability, MEMBERS_MAX, Piece, PieceMember};
pub use event::{
    ClusterEvent, ComponentState, IoFailure, Notice, Outcome, Reachability, ResyncReason,
    VolumeFinished,
};
pub use fault::{Fault, FaultProblem, ReturnedContent};
pub use geometry::{Geometry, Role, RowRange, SetKind};
pub use ids::{ComponentId, DeviceId, GroupId, HostId, VolumeId};
pub use policy::{Checksum, Method, Policy, PolicyProblem};
pub use regions::RegionSet;
pub use spec::{ClusterProblem, ClusterSettings, ClusterSpec, HostSpec, NetworkSpec};
