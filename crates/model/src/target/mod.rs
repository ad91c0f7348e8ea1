//! What a simulation drives: volumes that take requests and give completions, by a virtual clock.
//!
//! Devices of a [`Store`](crate::Store), or a cluster. What asks (block loads, a database engine) and the loop
//! over virtual time are the simulations' own.

#[expect(clippy::module_inception, reason = "the file is named by its concept")]
mod target;

mod store;

mod cluster;

pub use cluster::{ClusterTarget, ClusterTargetError, WriteBuffers};
pub use store::StoreTarget;
pub use target::{Target, TargetFinished, TargetOutcome};
