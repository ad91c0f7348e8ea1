//! A database engine as a deterministic simulation: what transactions cost on hosts and storage in
//! virtual time.
//!
//! The users are the real state machines of `workload`; the storage is `model`, through its
//! targets. Between the two is a model of the engine: what a transaction demands ([`demand`],
//! [`layout`]), the buffer pool and the page cache of the operating system, the log with group
//! commit, checkpoints and page writers, row locks, processors. Results are *simulated* evidence.
//!
//! Reading order: [`spec`] says what is simulated, [`demand`] what a transaction costs, [`layout`]
//! where the rows lie, [`Simulation`] runs it, [`result`] is what comes out.
//!
//! Pure: no I/O, no clock, no thread; equal arguments give equal results. Deliberately not here:
//! SQL, data, study files, records, published numbers.

// Pure: clippy.toml lists what is denied, and why.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod demand;

pub mod spec;

mod settings;

mod engine_spec;

mod volume_use;

mod job_spec;

mod background_spec;
mod warehouse_spec;

pub mod layout;

pub mod page;

pub mod pool;

pub mod cpu;

pub mod station;

pub mod result;

mod background_result;

mod draw;

mod hashing;

mod locks;

mod read_ahead;
mod redo_log;

mod script;

mod sources;

mod timers;

mod core_state;

mod session;

mod database;

mod cache_warm_up;

mod skipped_time;

mod window_result;

mod write_throttle;

mod writers;

mod autoanalyze;
mod autoanalyze_work;
mod background;
mod page_cleaning;

mod adaptive_flushing;
mod cleaner;
mod redo_limits;

mod engine;

mod simulation;

mod users;

mod transfer;

mod job;

mod job_work;

mod next_request;

mod block_loads;
mod copying;

mod background_work;

mod warehouse_query;

mod warehouse_job;

mod warehouse_work;

pub use background_result::{BackgroundIo, BackgroundPart, BackgroundResult};
pub use background_spec::{BackgroundSpec, CopySpec, LoadSpec, VolumeWork};
pub use demand::{DemandProfile, TypeDemand};
pub use job_spec::{BackupSpec, BatchSpec};
pub use result::{DatabaseResult, EngineRun, HostResult, JobOperation, JobResult};
pub use settings::{InnodbSettings, PostgresqlSettings};
pub use simulation::{Simulation, Window};
pub use skipped_time::Skip;
pub use spec::{
    ClientSpec, DatabaseSpec, EngineSpec, HostSpec, Load, Scenario, ScenarioProblem, VolumeUse,
    WorkloadSpec,
};
pub use warehouse_spec::WarehouseSpec;
