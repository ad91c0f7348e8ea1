//! The block load generator: many workloads on many targets, closed or open loop, every request accounted.
//!
//! In reading order: what to do ([`LoadSpec`]), what came out ([`LoadResult`], [`SecondTick`]), one worker
//! thread with a ring of its own (`worker`), and the threads together ([`run_load`]).
//!
//! **Response time** counts from when a request was meant to start: in an open loop from its arrival by the
//! clock, whatever the target did to those before it. **Service time** counts from when it was handed to the
//! kernel. Both end when the completion is taken. Deliberately not here: choosing targets, curves, printing.

mod outcome;

mod spec;

mod lateness;

mod ring;

mod slot;

mod tally;

mod worker;

mod run;

mod write_all;

pub use outcome::{KindKey, KindResult, LoadResult, Operation, Part, SecondTick, WorkerCost};
pub use run::run_load;
pub use spec::{LoadJob, LoadSpec, OnError};
pub use write_all::{Written, write_all};
