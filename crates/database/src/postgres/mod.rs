//! PostgreSQL 13 to 18: servers that Underlay creates itself, and what it runs on them.
//!
//! In reading order: [`install`] finds the server programs, [`settings`] decides and checks the
//! configuration, [`server`] is the life of one cluster, `backup` and [`template`] are its two
//! kinds of copies; [`tpcc`], [`sysbench`] and [`dvdstore`] are workloads on any server.

pub mod install;
pub mod settings;

mod cluster;
mod configuration;
mod log;
mod query;
pub mod server;

mod backup;
mod control_data;
pub mod template;

mod connection;
mod direct;
mod loader;
mod numeric;
pub(crate) mod ownership;
pub(crate) mod parallel;
pub(crate) mod settling;
pub mod tls;
pub(crate) mod url;

pub use crate::managed::{
    CopyReport, Listen, Liveness, LogCause, LogTail, RestoreOptions, ServerError, SettingInForce,
    SettingProblem, StartReport, StopMode, TemplateManifest,
};
pub(crate) use connection::PostgresConnection;
pub use install::{Install, SUPPORTED_MAJORS, capability, find_installs};
pub use server::{Server, ServerSpec};
pub use settings::check_settings;
pub use template::Template;
