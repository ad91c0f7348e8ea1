//! One disk group: a cache device that takes the writes, capacity devices that keep the data, and what
//! happens between them.
//!
//! This module says what a group is made of, what it is asked and what it answers.

mod spec;

mod request;

pub use request::{GroupFinished, GroupIo, GroupOutcome, GroupRequestId, MemberState};
pub use spec::{
    CongestionSpec, DiskGroupProblem, DiskGroupSpec, Reduction, ReductionCosts, WriteBufferSpec,
};
