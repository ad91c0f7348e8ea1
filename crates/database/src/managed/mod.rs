//! What the managed servers of all engines have in common: their directories, starting and stopping
//! them, errors, and the folder form of a template.
//!
//! What is specific to an engine (its programs, its configuration, its log, the files of a stopped
//! database) is in that engine's module. [`Server`], [`Install`] and [`Template`] are enums over the
//! engines, for callers that do not depend on the engine.

mod backup;
mod directory;
mod engine;
mod error;
mod instance;
mod log;
mod query;
mod setting;
mod spec;
mod template_folder;
mod tree_copy;

pub use backup::{BackupFormat, BackupOptions, BackupReport, RestoredCopy, Watch};
pub use engine::{BackupTools, Install, Server, Template, capability, find_installs};
pub use error::ServerError;
pub use log::{LogCause, LogTail};
pub use setting::{SettingInForce, SettingProblem};
pub use spec::{Listen, Liveness, ServerSpec, StartReport, StopMode};
pub use template_folder::{RestoreOptions, TemplateManifest};
pub use tree_copy::CopyReport;

pub(crate) use backup::{Tools, in_new_directory};
pub(crate) use directory::{
    CLAIM, check_places, claim, clear, expand, free_port, is_ours, make_private, make_runtime_dir,
    make_socket_dir, password_file, random_password, require_reachable, write_private,
};
pub(crate) use instance::{Instance, StartCommand};
pub(crate) use log::{Reader, Severity, is_recovering, read_since};
pub(crate) use query::block_on;
pub(crate) use setting::{merged, own_checks, problem};
pub(crate) use template_folder::TemplateFolder;
pub(crate) use tree_copy::{
    TreeCopy, copy_trees, count, empty_directory, is_empty, start_writeback, sync_file_systems,
    uncache,
};
