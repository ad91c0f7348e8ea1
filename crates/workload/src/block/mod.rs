//! Block workloads: streams of reads and writes on volumes, described once for virtual and real time.
//!
//! A [`BlockWorkload`] says *what* is asked of one volume: a mix of streams, each with its share of the
//! requests, read share, sizes, order of addresses and region. A [`Pace`] says *how fast*: as fast as a
//! fixed number of requests in flight allows (closed), or by a clock (open). A [`RequestGenerator`]
//! turns workload, seed, volume and thread into a sequence of requests; the k-th request of a thread
//! is the same in every run of the same seed, whatever the storage does.
//!
//! An [`IoProfile`] combines several concurrent workloads and describes their bytes
//! ([`Content`]). The profiles that come with Underlay are files of the `study` crate.
//!
//! Deliberately not here: what a request costs, waiting, I/O.

pub mod description;

pub mod locality;

pub mod generator;

pub mod curve;

pub mod steady_state;

pub mod content;

pub mod profile;

mod shape;

#[cfg(test)]
mod samples;

pub use content::{Content, ContentProblem, ContentSpec};
pub use curve::{CurvePoint, curve_rate};
pub use description::{
    BlockStream, BlockWorkload, Concurrency, FlushPolicy, Pace, Region, Runs, SizeShare,
    WorkloadProblem,
};
pub use generator::{Access, BlockRequest, RequestGenerator, Worker};
pub use locality::{Locality, Zone};
pub use profile::{IoJob, IoProfile, Provenance};
pub use shape::SHAPE;
pub use steady_state::{SteadyState, steady_state};
