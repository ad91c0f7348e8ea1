//! Database engines: managed servers and sessions.
//!
//! A *managed server* is created by Underlay on volumes it is given, from the server programs found
//! on the host, and removed afterwards. A *session* runs the transactions of a workload against any
//! server, managed or not. One module per engine.
//!
//! What is deliberately not here: when to do what (the lab decides), how fast (the driver), what the
//! transactions are (the `workload` crate), samples over time (the `telemetry` crate).
//!
//! **Invariant:** no cluster that Underlay did not create is ever stopped, changed or removed here;
//! a given URL is only connected to.

mod connection;
pub mod connection_limit;
mod denial;
mod dispatch;
pub mod engine;
pub mod error;
pub mod load_report;
mod loading;
mod parallel;
pub mod password_file;
mod percent;
pub mod rights;
pub mod run_lock;
pub mod schema_ownership;
mod server_task;
pub mod session;
pub mod stop;
pub mod target;
mod target_url;
pub mod tls;
mod transport;

pub mod managed;

pub mod mariadb;
pub mod postgres;

pub mod dvdstore;
pub mod sysbench;
pub mod tpcc;

pub mod batch;

pub mod warehouse;

pub mod transaction_counter;

pub use engine::Engine;
pub use error::{CommitState, ErrorClass, SessionError, TargetError};
pub use server_task::is_server_task;
pub use session::{Commits, Connector, Session};
pub use target::{Address, Secret, Target};
