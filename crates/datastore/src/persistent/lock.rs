//! The lock of a datastore's directory: its holder may start, run, take down or remove the
//! datastore.
//!
//! Whoever starts a datastore takes the lock and hands it to the supervisor as the supervisor's standard input, so the lock
//! is held without a gap: whoever finds it free knows that nothing is in progress. The kernel releases it when its last
//! holder ends, for whatever reason. The text in the file is only for people.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::DatastoreError;

/// What the holder of the lock is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// It comes up.
    Starting,
    /// It goes down.
    Stopping,
    /// One or the other: the file cannot be read, or does not say.
    Unknown,
}

impl Busy {
    /// As in the file, and for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Busy::Starting => "starting",
            Busy::Stopping => "stopping",
            Busy::Unknown => "starting or stopping",
        }
    }
}

/// The lock, held.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes it; `None` when another process has it.
    pub(super) fn try_take(path: &Path) -> Result<Option<Lock>, DatastoreError> {
        let failed = |error: io::Error| DatastoreError::file("lock", path)(error);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path)
            .map_err(DatastoreError::file("open", path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // A lock file that its holder has removed is no longer the lock: the next attempt creates a
            // new one.
            Ok(()) => Ok(is_at(&file, path).map_err(failed)?.then_some(Lock(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// The lock that the starting process has handed over, if it has.
    pub(super) fn handed_over(path: &Path) -> Result<Option<Lock>, DatastoreError> {
        let handed = || -> io::Result<Option<Lock>> {
            let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
            if !is_at(&file, path)? {
                return Ok(None);
            }
            // Already held, unless another process only has the file open.
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Ok(Some(Lock(file))),
                Err(_) => Ok(None),
            }
        };
        handed().map_err(DatastoreError::file("inspect", path))
    }

    /// Hands it to a child, as its standard input. It is held as long as one of the two lives.
    pub(super) fn into_stdin(self) -> Stdio {
        Stdio::from(self.0)
    }

    /// Tells others what its holder does. Only words, so it does not matter where they cannot be written.
    pub(super) fn say(&mut self, busy: Busy) {
        let mut write = || {
            self.0.set_len(0)?;
            self.0.rewind()?;
            writeln!(self.0, "{}", busy.as_str())
        };
        if let Err(error) = write() {
            tracing::debug!("the lock file does not show the current operation: {error}");
        }
    }
}

/// Whether another process has the lock, and what it says to be doing. Two that only look do not see each other, and who
/// may not look sees no holder.
pub(super) fn holder(path: &Path) -> Option<Busy> {
    let file = File::open(path).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => {}
        _ => return None,
    }
    let said = fs::read_to_string(path).unwrap_or_default();
    let known = [Busy::Starting, Busy::Stopping].into_iter();
    Some(known.into_iter().find(|busy| said.trim() == busy.as_str()).unwrap_or(Busy::Unknown))
}

/// Whether an open file is the one of that name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((own.dev(), own.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::{Busy, Lock, holder};
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn a_lock_says_what_its_holder_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert_eq!(holder(&path), None);
        let mut lock = Lock::try_take(&path).unwrap().unwrap();
        assert_eq!(holder(&path), Some(Busy::Unknown));
        for busy in [Busy::Starting, Busy::Stopping, Busy::Starting] {
            lock.say(busy);
            assert_eq!(holder(&path), Some(busy));
        }
        assert!(Lock::try_take(&path).unwrap().is_none());
        drop(lock);
        assert!(is_soon_free(&path));
    }

    /// A program that another test starts just now has all files of this process open, this lock too, until it is
    /// itself, which is soon but not at once.
    fn is_soon_free(path: &Path) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        while holder(path).is_some() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        holder(path).is_none()
    }

    #[test]
    fn a_child_has_the_lock_without_a_moment_in_between() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::try_take(&path).unwrap().unwrap();
        let mut child = Command::new("sleep").arg("60").stdin(lock.into_stdin()).spawn().unwrap();
        // Ours went with the command.
        assert_eq!(holder(&path), Some(Busy::Unknown));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_soon_free(&path));
        assert!(Lock::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn a_lock_that_was_removed_is_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = Lock::try_take(&path).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(holder(&path), None);
        let other = Lock::try_take(&path).unwrap();
        assert!(other.is_some());
        drop((held, other));
    }
}
