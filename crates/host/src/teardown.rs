//! The teardown stack (signatures; see the methods).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::state_dir::StateDir;

/// Something that exists on the host because of us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// A directory with all that is inside.
    Directory {
        /// Absolute.
        path: PathBuf,
    },
    /// A file.
    File {
        /// Absolute.
        path: PathBuf,
    },
    /// A mounted file system.
    Mount {
        /// Where it is mounted.
        target: PathBuf,
    },
    /// A loop device, found through its backing file.
    Loop {
        /// Absolute.
        backing_file: PathBuf,
    },
    /// A process and its descendants, found through their environment.
    Process {
        /// The value of the variable `UNDERLAY_RESOURCE`, unique on this host.
        marker: String,
        /// For messages.
        name: String,
    },
    /// A control group in one or several hierarchies.
    Cgroup {
        /// One directory per hierarchy.
        paths: Vec<PathBuf>,
    },
}

/// Names one registered resource of one stack.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

/// A resource that could not be removed.
#[derive(Clone, Debug)]
pub struct Leftover {
    /// What it is.
    pub resource: Resource,
    /// Why it is still there, and what to do.
    pub reason: String,
}

/// What [`clean`] did.
#[derive(Clone, Debug, Default)]
pub struct CleanReport {
    /// Resources removed, one line each.
    pub removed: Vec<String>,
    /// Stacks left alone because their owner is alive, one line each.
    pub skipped_alive: Vec<String>,
    /// Resources and stacks that could not be removed, with reason, one line each.
    pub failed: Vec<String>,
}

/// The stack. Clones share it.
#[derive(Clone, Debug)]
pub struct Teardown {
    _inner: Arc<()>,
}

impl Teardown {
    /// Starts a stack owned by this process.
    pub fn create(_state: &StateDir, _purpose: &str) -> Result<Teardown, HostError> {
        Err(unavailable())
    }

    /// Writes down, durably, that the resource is about to be created.
    pub fn register(&self, _resource: Resource) -> Result<Ticket, HostError> {
        Err(unavailable())
    }

    /// Registers a directory and creates it.
    pub fn create_directory(&self, _path: &std::path::Path) -> Result<Ticket, HostError> {
        Err(unavailable())
    }

    /// Removes the resource now.
    pub fn release(&self, _ticket: Ticket) -> Result<(), HostError> {
        Err(unavailable())
    }

    /// Notes that the resource is gone already.
    pub fn forget(&self, _ticket: Ticket) {}

    /// Removes everything registered, last first.
    pub fn unwind(&self) -> Vec<Leftover> {
        Vec::new()
    }
}

/// Unwinds all stacks whose owner is dead.
pub fn clean(_state: &StateDir) -> Result<CleanReport, HostError> {
    Err(unavailable())
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Directory { path } => write!(f, "directory {}", path.display()),
            Resource::File { path } => write!(f, "file {}", path.display()),
            Resource::Mount { target } => write!(f, "mount {}", target.display()),
            Resource::Loop { backing_file } => {
                write!(f, "loop device of {}", backing_file.display())
            }
            Resource::Process { name, .. } => write!(f, "process {name}"),
            Resource::Cgroup { paths } => {
                write!(f, "control group")?;
                paths.iter().try_for_each(|path| write!(f, " {}", path.display()))
            }
        }
    }
}

fn unavailable() -> HostError {
    HostError::Unavailable { what: "the teardown stack", reason: "not built yet".to_string() }
}
