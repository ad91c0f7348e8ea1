//! The scheduler of a device: whether virtual machines, resynchronisation, metadata or the
//! namespace are served next.
//!
//! Four queues, one per class of I/O, stand in front of every device of a disk group, and a fifth for the
//! elevator that destages the write buffer. [`Policy::Adaptive`] serves virtual machines first and guarantees the
//! others a floor: each byte that others send while a class waits earns that class a credit, and a class whose
//! credit covers its next piece goes first. Credits are bounded, so an idle class cannot accumulate them, and a
//! class that is alone gets the whole device. The other policies are those of earlier releases: no order at all,
//! a fixed limit for resynchronisation, and one that follows the latency of the virtual machines.
//!
//! Facts: knowledge of the three generations of resynchronisation control in vSAN 6.0 to 6.7. The
//! floor of 20 % is a recalled figure, slices of 64 KiB come from a simulation of our own: the time one
//! slice occupies the device is what a virtual machine waits for, so it matters more than the floor.
//!
//! What is not here: how many resynchronisations run at once, and what they copy. That is the cluster's.

mod spec;

mod lanes;

mod regulator;

pub(crate) use lanes::{LANES, Lane, Lanes, Order, Waiting};
pub(crate) use regulator::Regulator;
pub use spec::{IoClass, Policy, SchedulerProblem, SchedulerSpec};
