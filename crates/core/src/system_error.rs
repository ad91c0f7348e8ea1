//! A call to the operating system that failed: one form of it for every crate that makes such calls.
//!
//! A value: making the call, and naming a remedy, is up to the crates that do. Their error types have it as one variant.

use std::io;
use std::path::{Path, PathBuf};

/// What could not be done, on which path if it has one, and the system's reason.
#[derive(Debug, thiserror::Error)]
#[error("could not {action}{}: {source}", quoted(path.as_deref()))]
pub struct SystemError {
    /// The verb (`open`, `create directory`), without a path the verb phrase (`start a thread`).
    pub action: &'static str,
    /// On what.
    pub path: Option<PathBuf>,
    /// The system's reason.
    pub source: io::Error,
}

impl SystemError {
    /// An operation on a file.
    pub fn of_file(action: &'static str, path: &Path, source: impl Into<io::Error>) -> SystemError {
        SystemError { action, path: Some(path.to_path_buf()), source: source.into() }
    }

    /// A system call that has no path.
    pub fn of_call(action: &'static str, source: impl Into<io::Error>) -> SystemError {
        SystemError { action, path: None, source: source.into() }
    }
}

fn quoted(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!(" `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::io::{self, ErrorKind};
    use std::path::Path;

    use super::SystemError;

    #[test]
    fn it_says_what_on_what_and_why() {
        let reason = || io::Error::new(ErrorKind::NotFound, "no such file");
        let error = SystemError::of_file("open", Path::new("/a/b"), reason());
        assert_eq!(error.to_string(), "could not open `/a/b`: no such file");
        assert_eq!(error.source().unwrap().to_string(), "no such file");
        let error = SystemError::of_call("start a thread", reason());
        assert_eq!(error.to_string(), "could not start a thread: no such file");
    }
}
