//! Real block I/O: what a file or a block device of this host does.
//!
//! Direct I/O through io_uring, requests from `workload::block`, latencies in histograms. In reading order: what
//! is asked ([`Target`]), memory that the kernel accepts ([`buffer`]), the ring ([`ring`]), a closed loop at a
//! queue depth ([`closed_loop`]), and everything a calibration needs ([`measure`]). The load generator of
//! `underlay io` is [`load`]; [`copy`] reads a device in large blocks while other loads run; [`verify`] tracks what was written, and [`signature`] identifies what a
//! device contains.
//!
//! **Invariant:** nothing is written unless the target was opened for writing, which only [`Target::create`],
//! [`Target::open_for_overwriting`] and [`Target::open_to_write`] do. Deliberately not here: fitting (the `model`
//! crate), profiles and their files (`workload`, `study`). Linux only.

pub mod error;

pub mod target;
mod target_kind;

mod buffer;

mod ring;

pub mod closed_loop;

pub mod measure;

mod gauge;

pub mod load;

pub mod copy;

pub mod verify;

pub mod signature;

pub use closed_loop::{Job, JobResult, run};
pub use error::BlockIoError;
pub use gauge::IoGauge;
pub use measure::{MeasureSpec, Measured, Phase, fill, measure};
pub use target::{Caching, Existing, SIZE_MIN, Target, kind_of};
pub use target_kind::TargetKind;
