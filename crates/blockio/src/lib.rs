//! Real block I/O: what a file or a block device of this host does.
//!
//! Direct I/O through io_uring, requests from `workload::block`, latencies in histograms. In reading order: what
//! is asked ([`Target`]), memory that the kernel accepts ([`buffer`]), the ring ([`ring`]), a closed loop at a
//! queue depth ([`closed_loop`]), and everything a calibration needs ([`measure`]).
//!
//! **Invariant:** nothing is written unless the target was opened for writing, which only [`Target::create`] and
//! [`Target::open_for_overwriting`] do. Deliberately not here: fitting (the `model` crate), open loops, verifying
//! what was written. Linux only.

pub mod error;

pub mod target;

mod buffer;

mod ring;

pub mod closed_loop;

pub mod measure;

pub use closed_loop::{Job, JobResult, run};
pub use error::BlockIoError;
pub use measure::{MeasureSpec, Measured, Phase, fill, measure};
pub use target::{Existing, Target, TargetKind};
