//! What can be on a teardown stack, and how it is written in a stack's file.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::shared_memory::Segment;

/// Something that exists on the host because of us.
///
/// These are also the file's format: one JSON object per line, externally tagged. A field may be
/// added with a default; nothing may be renamed, because a newer version cleans up after an older.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
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
    /// A loop device, found through `/sys/block/loop*/loop/backing_file`.
    Loop {
        /// Absolute.
        backing_file: PathBuf,
    },
    /// A process and its descendants, found through the process's environment.
    Process {
        /// The value of the variable `UNDERLAY_RESOURCE`, unique on this host.
        marker: String,
        /// For messages.
        name: String,
    },
    /// Shared memory that a process of ours was seen to map.
    SharedMemory {
        /// Which.
        segment: Segment,
    },
    /// Shared memory of whatever PostgreSQL server runs in a data directory, found through what the server writes into
    /// it: registered before there is any.
    PostgresqlMemory {
        /// For messages.
        data: PathBuf,
        /// The device that the data directory is on.
        device: u64,
        /// The data directory's inode number.
        inode: u64,
        /// The user number of the server.
        owner: u32,
    },
    /// A control group in one or several hierarchies.
    Cgroup {
        /// One directory per hierarchy.
        paths: Vec<PathBuf>,
    },
}

impl Resource {
    /// The shared memory of a server that will run in a data directory, which exists, as the user of this number.
    pub fn postgresql_memory(data: &Path, owner: u32) -> Result<Resource, HostError> {
        let facts = data.metadata().map_err(HostError::file("inspect", data))?;
        let (device, inode) = (facts.dev(), facts.ino());
        Ok(Resource::PostgresqlMemory { data: data.to_path_buf(), device, inode, owner })
    }

    /// Whether it survives a reboot of the host.
    pub(crate) fn survives_reboot(&self) -> bool {
        matches!(self, Resource::Directory { .. } | Resource::File { .. })
    }

    /// All paths that name it.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        match self {
            Resource::Directory { path } | Resource::File { path } => vec![path],
            Resource::Mount { target } => vec![target],
            Resource::Loop { backing_file } => vec![backing_file],
            Resource::Process { .. }
            | Resource::SharedMemory { .. }
            | Resource::PostgresqlMemory { .. } => Vec::new(),
            Resource::Cgroup { paths } => paths.iter().map(PathBuf::as_path).collect(),
        }
    }
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
            Resource::SharedMemory { segment } => write!(f, "{segment}"),
            Resource::PostgresqlMemory { data, .. } => {
                write!(f, "shared memory of the server in {}", data.display())
            }
            Resource::Cgroup { paths } => {
                f.write_str("control group")?;
                paths.iter().try_for_each(|path| write!(f, " {}", path.display()))
            }
        }
    }
}
