//! Making file systems and asking for their free space.

use std::fmt;
use std::path::Path;

use underlay_core::Bytes;

use crate::error::HostError;

/// The file systems that volumes can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

impl FileSystem {
    /// The word used in study files and by `mount`.
    pub const fn as_str(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
        }
    }

    /// The file system named by [`FileSystem::as_str`].
    pub fn from_word(word: &str) -> Option<FileSystem> {
        [FileSystem::Ext4, FileSystem::Xfs].into_iter().find(|system| system.as_str() == word)
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Makes a file system on a block device, destroying what is on it.
pub fn make_file_system(_device: &Path, _system: FileSystem) -> Result<(), HostError> {
    Err(HostError::NeedsRoot { action: "make a file system" })
}

/// The space that an unprivileged user may still fill below `path`, which need not exist yet.
pub fn free_space(_path: &Path) -> Result<Bytes, HostError> {
    Ok(Bytes::ZERO)
}
