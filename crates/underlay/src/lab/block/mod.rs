//! Block loads: the courses that `underlay io` and studies share, and the runs of a study whose workload they are.
//!
//! In reading order: targets and results ([`Place`], [`Outcome`]), a course ([`Session`]), its record ([`recording`]), and one run of
//! a study ([`run`]). The load generator itself is `underlay_blockio`; no database server is involved.

mod outcome;
pub mod recording;
pub mod run;
mod session;

pub use outcome::{LastLook, Medium, Outcome, Phase, Place, Second, TargetFacts};
pub use session::{Course, Session, Settings, Watch, run_identity, verifiers};

use crate::stop::{Stop, chain};
use underlay_blockio::BlockIoError;

/// The stop that an error of block I/O means.
pub fn stop(error: &BlockIoError) -> Stop {
    let text = chain(error);
    match error {
        BlockIoError::Interrupted => Stop::interrupted(text),
        BlockIoError::NoRing { .. }
        | BlockIoError::NoDirectIo { .. }
        | BlockIoError::NoMemory { .. } => Stop::host(text),
        BlockIoError::Target { action: "open", source, path }
            if source.raw_os_error() == Some(libc::EBUSY) =>
        {
            Stop::bad_input(format!(
                "{} is in use: it is mounted, or part of another device",
                path.display()
            ))
            .with_hint(
                "unmount it, or use another device; Underlay never writes to a device in use",
            )
        }
        BlockIoError::WrongKind { .. }
        | BlockIoError::OtherKind { .. }
        | BlockIoError::Sparse { .. }
        | BlockIoError::TooSmall { .. }
        | BlockIoError::ReadOnly { .. }
        | BlockIoError::Journal(_)
        | BlockIoError::Target { action: "open" | "create" | "look at", .. } => {
            Stop::bad_input(text)
        }
        _ => Stop::run_failed(text),
    }
}
