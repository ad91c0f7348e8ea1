//! PostgreSQL 13 to 18: servers that Underlay creates itself, and what it runs on them.
//!
//! In reading order: [`install`] finds the server programs, [`settings`] decides and checks the
//! configuration, [`server`] is the life of one cluster, [`backup`] and [`template`] are its two
//! kinds of copies.

pub mod backup;
pub mod install;
pub mod log;
pub mod server;
pub mod settings;
pub mod template;

pub mod tpcc;

mod error;

pub use backup::{BackupFormat, BackupReport};
pub use error::ServerError;
pub use install::{Install, find_installs};
pub use log::{LogCause, LogTail};
pub use server::{Listen, Liveness, Server, ServerSpec, StartReport, StopMode};
pub use settings::{SettingInForce, SettingProblem};
pub use template::{CopyReport, RestoreOptions, Template, TemplateManifest};
