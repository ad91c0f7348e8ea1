//! Block workloads, and studies of databases, against a storage design in virtual time.
//!
//! The meeting of two pure parts: `workload::block` says what is asked, `model` says how long it takes, and
//! the loop in [`run`] lets a virtual clock jump from event to event. What comes out are distributions
//! and seconds, as from a real run, and they are *simulated* evidence: they say what the model does. The
//! [`experiments`] compares them with published results. [`block_study`] and [`databases`] carry out plans of studies.
//!
//! Pure: no I/O, no clock, no thread; equal arguments give equal results. Deliberately not here: the
//! model of a database (`engine`), the real I/O generator (it shares the descriptions), printing, records.

// Pure: clippy.toml lists what is denied, and why.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod block_study;

pub mod client;

pub mod databases;

pub mod result;

mod rounds;

pub mod run;

pub mod curve;

pub mod experiments;

pub use client::ClientSpec;
pub use curve::{Curve, CurveSpec, MeasuredPoint, rate_curve};
pub use result::{Latencies, Second, SimulationResult, StreamResult};
pub use run::{Completed, RunSpec, Watch, simulate, simulate_watched};
pub use underlay_model::target::{
    ClusterTarget, ClusterTargetError, StoreTarget, Target, TargetFinished, TargetOutcome,
    WriteBuffers,
};
