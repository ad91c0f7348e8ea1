//! Mounted file systems.

use std::path::{Path, PathBuf};

use crate::error::HostError;
use crate::file_system::FileSystem;
use crate::teardown::Teardown;

/// A mounted file system.
#[derive(Debug)]
pub struct Mount {
    target: PathBuf,
}

impl Mount {
    /// Mounts the block device `source` on the existing directory `target`. `options` is a comma
    /// separated list as for mount(8); `nosuid` and `nodev` are always added.
    pub fn make(
        _teardown: &Teardown,
        _source: &Path,
        _target: &Path,
        _system: FileSystem,
        _options: &str,
    ) -> Result<Mount, HostError> {
        Err(HostError::NeedsRoot { action: "mount" })
    }

    /// Where it is mounted.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Unmounts it.
    pub fn unmount(self) -> Result<(), HostError> {
        Ok(())
    }
}

/// Whether something is mounted on exactly this path. Never touches the path itself, so it cannot
/// hang on a dead file system.
pub fn is_mount_point(_path: &Path) -> Result<bool, HostError> {
    Ok(false)
}
