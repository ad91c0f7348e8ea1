//! Why a file or device could not be measured.

use crate::target_kind::TargetKind;
use std::io;
use std::path::PathBuf;
use underlay_core::Bytes;

/// Anything that can go wrong with real block I/O.
#[derive(Debug, thiserror::Error)]
pub enum BlockIoError {
    /// A system call on the target failed.
    #[error("could not {action} {}", path.display())]
    Target {
        /// What was tried: "open", "read".
        action: &'static str,
        /// The target.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The file system refuses direct I/O.
    #[error(
        "{} does not support direct I/O, so only memory would be measured; choose a file on another file \
         system, or the block device below it",
        path.display()
    )]
    NoDirectIo {
        /// The target.
        path: PathBuf,
    },
    /// Neither a file nor a block device.
    #[error("{} is neither a regular file nor a block device", path.display())]
    WrongKind {
        /// The target.
        path: PathBuf,
    },
    /// Not of the kind that may be overwritten.
    #[error("{} is {found}, not {wanted}", path.display())]
    OtherKind {
        /// The target.
        path: PathBuf,
        /// What it is.
        found: TargetKind,
        /// What it should be.
        wanted: TargetKind,
    },
    /// A file with holes: reading them costs nothing.
    #[error(
        "{} is {size} long but only {stored} of it are stored; reading holes measures nothing: write the \
         file fully, or let a file be created",
        path.display()
    )]
    Sparse {
        /// The target.
        path: PathBuf,
        /// Its length.
        size: Bytes,
        /// What is stored.
        stored: Bytes,
    },
    /// Too small to be measured.
    #[error("{} has {size}; {least} or more are needed", path.display())]
    TooSmall {
        /// The target.
        path: PathBuf,
        /// Its size.
        size: Bytes,
        /// What is needed.
        least: Bytes,
    },
    /// A request moved less than it was asked to.
    #[error("a request of {asked} bytes at {offset} of {} moved only {moved}", path.display())]
    Short {
        /// The target.
        path: PathBuf,
        /// First byte of the request.
        offset: u64,
        /// Its length.
        asked: u32,
        /// What was moved.
        moved: u32,
    },
    /// No ring.
    #[error(
        "io_uring is not available on this host; it needs Linux 5.6 or later, kernel.io_uring_disabled = 0, and a \
         container that allows it"
    )]
    NoRing {
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Waiting for completions failed.
    #[error("could not wait for completions of {}", path.display())]
    Wait {
        /// The target.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// No memory for the requests.
    #[error("no memory for {bytes} of request buffers")]
    NoMemory {
        /// How much was wanted.
        bytes: Bytes,
    },
    /// Nothing completed in the measured time.
    #[error("nothing completed within {seconds} s of {phase}; measure for longer")]
    Nothing {
        /// The phase.
        phase: &'static str,
        /// How long it was.
        seconds: f64,
    },
    /// Writing was asked of a target that was opened for reading.
    #[error("{} was opened for reading only", path.display())]
    ReadOnly {
        /// The target.
        path: PathBuf,
    },
    /// The journal of verified writes could not be written.
    #[error(transparent)]
    Journal(#[from] crate::verify::JournalError),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}
