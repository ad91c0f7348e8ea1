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

pub(crate) mod batch;
mod connection;
mod direct;
mod link;
mod loader;
mod numeric;
pub(crate) mod ownership;
mod parallel;
mod settling;
pub mod tls;
pub mod tpcc;
pub(crate) mod url;
pub(crate) mod warehouse;

pub use crate::managed::{
    CopyReport, Listen, Liveness, LogCause, LogTail, RestoreOptions, ServerError, SettingInForce,
    SettingProblem, StartReport, StopMode, TemplateManifest,
};
pub(crate) use connection::PostgresConnection;
pub use install::{Install, SUPPORTED_MAJORS, capability, find_installs};
pub use server::{Server, ServerSpec};
pub use settings::check_settings;
pub use template::Template;
