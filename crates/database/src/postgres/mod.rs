//! PostgreSQL 13 to 18: servers that Underlay creates itself, and what it runs on them.
//!
//! In reading order: [`install`] finds the server programs, [`settings`] decides and checks the
//! configuration, [`server`] is the life of one cluster, [`backup`] and [`template`] are its two
//! kinds of copies; [`tpcc`] is a workload on any server.

pub mod install;
pub mod settings;

mod cluster;
pub mod log;
mod query;
pub mod server;

pub mod backup;
mod control_data;
pub mod template;
mod tree_copy;

pub mod tpcc;

mod error;

pub use backup::{BackupFormat, BackupReport};
pub use error::ServerError;
pub use install::{Install, SUPPORTED_MAJORS, capability, find_installs};
pub use log::{LogCause, LogTail};
pub use server::{Listen, Liveness, Server, ServerSpec, StartReport, StopMode};
pub use settings::{SettingInForce, SettingProblem, check_settings};
pub use template::{RestoreOptions, Template, TemplateManifest};
pub use tree_copy::CopyReport;
