//! How storage behaves: device service times without I/O and without a clock.
//!
//! Time is a value that callers pass in: nanoseconds since the start of a run, which may be wall time (the
//! emulator), virtual time (simulation) or a test's own numbers. Randomness comes from a seed. Equal
//! inputs give equal outputs, always.
//!
//! What is here, in reading order: what is asked ([`request`]) and what it means to a database
//! ([`io_class`]), the description of a device ([`profile`]) and the built-in ones ([`builtin`]), the behaviour of one [`Device`] and its parts,
//! volumes on devices ([`Store`]), a closed loop to see what a device shows ([`closed_loop`]), the way back
//! from measurements to a profile ([`calibration`]), who goes next to a device ([`scheduler`]), the disk
//! group ([`disk_group`]), and hosts with disk groups under one datastore ([`cluster`]).
//!
//! What is deliberately not here: data (only addresses and lengths), threads, sleeping, files. The
//! `datastore` crate moves real bytes and waits for real deadlines.

// Pure: clippy.toml lists what is denied, and why.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod request;

pub mod io_class;

pub mod profile;

pub mod builtin;

mod stripe_set;

mod mirror;

mod agenda;

mod service_factor;

mod service_time;

mod stage;

mod flash;

mod disk;

mod link;

pub mod host_link;

mod write_run;

mod write_buffer;

pub mod device;

pub mod device_condition;

mod store_outcome;

mod copies;

pub mod store;

pub mod closed_loop;

pub mod calibration;

pub mod scheduler;

pub mod disk_group;

pub mod reduction;

pub mod cluster;

pub mod performance;

pub mod target;

pub use copies::{CopyState, device_names};
pub use device::{Completion, Device};
pub use device_condition::DeviceCondition;
pub use disk_group::{
    ClassCounters, CongestionSpec, DiskGroup, DiskGroupProblem, DiskGroupSpec, GroupCounters,
    GroupFinished, GroupIo, GroupOutcome, GroupRequestId, LatencyOf, LogAccount, MemberCounters,
    MemberState, QueueCounters, Reduction, ReductionCosts, ReductionCounters, WriteBufferCounters,
    WriteBufferSpec,
};
pub use host_link::{HostLink, LinkUse};
pub use mirror::mirror;
pub use profile::{
    Basis, DeviceProfile, Disk, Duplex, Flash, FlashDatasheet, Link, Medium, ProfileProblem,
    WriteBuffer,
};
pub use reduction::{Observed, Space};
pub use request::{Operation, Request};
pub use scheduler::{IoClass, Policy, SchedulerProblem, SchedulerSpec};
pub use service_factor::{ServiceFactor, ServiceFactors};
pub use store::{
    EXTENT_ALIGNMENT_BYTES, Finished, RequestId, Store, StoreDevice, StoreOutcome, StoreVolume,
};
pub use stripe_set::{MEMBERS_MAX as STRIPE_MEMBERS_MAX, stripe_set};
