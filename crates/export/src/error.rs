//! Why volumes cannot be exported.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use underlay_core::SystemError;

/// Why an export could not be set up, each with what, where, and a remedy where there is one.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A system call.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A socket address that others could reach.
    #[error("NBD clients cannot be accepted on {0}, which is not a loopback address")]
    NotLoopback(SocketAddr),
    /// A socket address that cannot be used.
    #[error("could not listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
}

impl ExportError {
    /// A closure for `map_err` on a file operation.
    pub(crate) fn file<'a, E: Into<io::Error>>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> ExportError + 'a {
        move |source| SystemError::of_file(action, path, source).into()
    }

    /// A closure for `map_err` on a system call without a path.
    pub(crate) fn system<E: Into<io::Error>>(
        action: &'static str,
    ) -> impl FnOnce(E) -> ExportError {
        move |source| SystemError::of_call(action, source).into()
    }
}
