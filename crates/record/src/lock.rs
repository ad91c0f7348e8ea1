//! One writer per record: an advisory lock on a file next to it.
//!
//! The lock is not taken on the record itself because closing a second descriptor of a file drops the
//! POSIX locks that SQLite holds on it in this process. The lock file is removed with the lock; one that a
//! killed writer left behind is taken over, since the kernel released its lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::OpenError;
use crate::format::beside;

/// Held while a record is being written.
#[derive(Debug)]
pub(crate) struct WriterLock {
    path: PathBuf,
    _file: File,
}

impl WriterLock {
    /// Takes the lock of `record`; fails with [`OpenError::Busy`] if another writer has it.
    pub(crate) fn take(record: &Path) -> Result<WriterLock, OpenError> {
        let path = beside(record, ".lock");
        // Closing a descriptor of the record itself would drop SQLite's locks.
        assert_ne!(path, record, "the lock is a file of its own");
        let directory = |source| OpenError::Directory { path: record.to_path_buf(), source };
        loop {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .map_err(directory)?;
            match file.try_lock() {
                // A lock on a file that its previous holder has just removed protects nothing.
                Ok(()) if !is_at(&file, &path) => {}
                Ok(()) => return Ok(WriterLock { path, _file: file }),
                Err(TryLockError::WouldBlock) => {
                    return Err(OpenError::Busy { path: record.to_path_buf() });
                }
                Err(TryLockError::Error(source)) => return Err(directory(source)),
            }
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(held), Ok(named)) => held.ino() == named.ino() && held.dev() == named.dev(),
        _ => false,
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "lock file not removed");
        }
    }
}
