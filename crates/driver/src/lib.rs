//! The load generator: virtual users, schedules, latency from the intended start, the commit ledger.
//!
//! Users are spread over worker threads. Each thread runs its users, their sessions and their
//! timers on a single-threaded runtime, and counts for itself; nothing is shared on the way of a
//! transaction, and no timer is set for one that need not wait. A tick swaps the counts out and
//! merges them exactly.
//!
//! A closed loop starts a transaction when the previous one is completed, after keying and think
//! times; an open loop starts it when a schedule says so, whatever the system under test does. In
//! both, `response` counts from the intended start and `service` only the last attempt.
//!
//! Users survive outages: errors are classified, contention is retried with the same inputs, lost
//! sessions are opened again with growing waits, and a commit of unknown outcome is neither repeated nor
//! counted, but entered in the ledger as unknown.
//!
//! The generator is generic over the workload (`underlay_workload::transactional`) and the sessions that
//! carry it out (`underlay_database::session`), and compiled for each pair: it knows neither TPC-C nor an
//! engine.
//!
//! What it deliberately does not do: ramp (the caller changes the number of users), judge steadiness,
//! check data, or start a database.

mod backlog;
mod cpu_cost;
mod permits;
mod slot;
mod thread_tick;
mod timers;
mod user;
mod worker;
mod worker_thread;

#[cfg(test)]
mod rehearsal;

pub mod activity;
pub mod ceiling;
mod cpu_debt;
pub mod driver;
pub mod error;
pub mod errors;
mod followed_session;
pub mod network;
pub mod noop;
pub mod objective;
pub mod outage;
pub mod process;
pub mod reaction;
pub mod saturation;
mod server_task;
pub mod spec;
pub mod summary;
pub mod tick;

pub use underlay_workload::arrivals;
pub use underlay_workload::transactional::{Mix, Weights};

pub use activity::Span;
pub use arrivals::{ArrivalSchedule, Arrivals};
pub use ceiling::{Ceiling, noop_ceiling};
pub use driver::Driver;
pub use error::DriveError;
pub use errors::{ErrorCounts, ErrorSample, ErrorSamples};
pub use network::{ClientNetwork, NetworkCounts, NetworkGauge, NetworkSpec};
pub use objective::{Judgement, Objective, ObjectiveError, Verdict, judge};
pub use outage::Outage;
pub use process::{DriverProcess, LostDriver};
pub use saturation::{Saturation, SaturationVerdict};
pub use spec::{DriveSpec, Pacing, Slowdown};
pub use summary::{Delivery, DeliveryVerdict, DriveSummary};
pub use tick::{ArrivalTick, ConnectTick, DriveTick, ServerCpu, ThreadLoad, TypeTick, Users};
pub use underlay_database::session::{Commits, Connector, Session};
pub use underlay_workload::rate_search::{Found, Purpose, RateSearch, SearchSpec, Step, StepTaken};
