//! What can go wrong on a host, each with what, where, and a remedy.

use std::io;
use std::path::{Path, PathBuf};

use underlay_core::{Bytes, SystemError};

/// Why something could not be created, started, inspected or removed on this host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A system call.
    #[error(transparent)]
    System(#[from] SystemError),
    /// Only root may do this.
    #[error("could not {action}: this needs root; run with sudo, or use a `path` datastore")]
    NeedsRoot {
        /// The verb phrase.
        action: &'static str,
    },
    /// The resource was there before, so it is not ours to create and later remove.
    #[error(
        "`{}` already exists and was not created by this run; choose another path or remove it",
        .0.display()
    )]
    AlreadyExists(PathBuf),
    /// Something is mounted on the target already.
    #[error("something is already mounted on `{}`; unmount it or choose another directory", .0.display())]
    AlreadyMounted(PathBuf),
    /// A loop device serves the file already.
    #[error("a loop device already uses `{}`; detach it with `losetup -d`", .0.display())]
    AlreadyAttached(PathBuf),
    /// A backing file that is not a whole number of sectors.
    #[error(
        "`{}` has {length_bytes} bytes, which is not a positive multiple of the {sector_bytes} byte \
         sectors of its block device",
        path.display()
    )]
    BadBackingSize {
        /// The file.
        path: PathBuf,
        /// Its length.
        length_bytes: u64,
        /// The sector size asked for.
        sector_bytes: u32,
    },
    /// Relative paths mean something else to the process that cleans up.
    #[error("`{}` is not an absolute path", .0.display())]
    NotAbsolute(PathBuf),
    /// The stack was unwound; what would be registered now would never be removed.
    #[error("the run is being torn down; nothing new can be created")]
    TornDown,
    /// A teardown stack whose header cannot be read.
    #[error("`{}` is not a readable teardown stack: {reason}; inspect and delete it", path.display())]
    BadStack {
        /// The stack file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No place for the state of a user without home.
    #[error("no directory for state: HOME is not set; set UNDERLAY_STATE_DIR to a directory")]
    NoStateDir,
    /// Another process holds the lock.
    #[error("`{}` is locked by another process; wait for it to finish", .0.display())]
    Locked(PathBuf),
    /// A program is not installed.
    #[error("program `{program}` was not found on PATH or in the system folders; {remedy}")]
    ProgramNotFound {
        /// Its name.
        program: String,
        /// What to install.
        remedy: String,
    },
    /// A program ended with an error.
    #[error("`{program}` failed ({status}): {stderr}")]
    ProgramFailed {
        /// Its name.
        program: String,
        /// Its exit status in words.
        status: String,
        /// The last lines it wrote to its standard error.
        stderr: String,
    },
    /// A user of the system that does not exist.
    #[error("there is no user `{0}` on this host; create it or name another one")]
    NoSuchUser(String),
    /// A limit that makes no sense.
    #[error("{limit} of {value} is out of range: {accepted}")]
    LimitOutOfRange {
        /// Which limit.
        limit: &'static str,
        /// What was asked.
        value: String,
        /// What would have been accepted.
        accepted: &'static str,
    },
    /// A volume that the file system cannot be made on.
    #[error("`{}` is too small for {file_system}: {size} of at least {minimum}", device.display())]
    TooSmall {
        /// The device.
        device: PathBuf,
        /// `ext4` or `xfs`.
        file_system: &'static str,
        /// Its size.
        size: Bytes,
        /// The smallest that works.
        minimum: Bytes,
    },
    /// The process did not end in time, although it was killed.
    #[error(
        "process {pid} (`{name}`) still exists {waited_secs} s after it was killed; it hangs in the kernel"
    )]
    Unkillable {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
        /// How long it was waited for.
        waited_secs: u64,
    },
    /// The kernel of this host does not offer it.
    #[error("{what} is not available on this host: {reason}")]
    Unavailable {
        /// What was wanted.
        what: &'static str,
        /// Why not, and what would help.
        reason: String,
    },
}

impl HostError {
    /// A closure for `map_err` on a file operation.
    pub(crate) fn file<'a, E: Into<io::Error>>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> HostError + 'a {
        move |source| SystemError::of_file(action, path, source).into()
    }

    /// A closure for `map_err` on a system call without a path.
    pub(crate) fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> HostError {
        move |source| SystemError::of_call(action, source).into()
    }
}
