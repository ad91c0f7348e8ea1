//! How a course ends when block I/O fails. Which failures there are is decided in `underlay_blockio`.

use underlay_blockio::BlockIoError;

use crate::stop::{Stop, chain};

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
