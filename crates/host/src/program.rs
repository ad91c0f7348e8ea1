//! Short programs that are waited for: mkfs, initdb, ...

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::HostError;
use crate::user::User;

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct ProgramSpec<'a> {
    /// Path, or a name looked up with [`find_program`].
    pub program: &'a Path,
    /// Without the program itself.
    pub args: Vec<OsString>,
    /// The whole environment, but for `PATH` (kept) and `LC_ALL=C` (added).
    pub env: Vec<(OsString, OsString)>,
    /// `None` is ourselves.
    pub run_as: Option<&'a User>,
    /// `/` is always possible.
    pub working_dir: &'a Path,
}

/// The path of a program on `PATH` or in the system folders.
pub fn find_program(_name: &str) -> Option<PathBuf> {
    None
}

/// Runs a program to its end and returns its standard output; the error carries its standard error.
pub fn run_program<A: AsRef<OsStr>>(
    program: impl AsRef<Path>,
    args: &[A],
    run_as: Option<&User>,
) -> Result<String, HostError> {
    run_program_with(&ProgramSpec {
        program: program.as_ref(),
        args: args.iter().map(|arg| arg.as_ref().to_os_string()).collect(),
        env: Vec::new(),
        run_as,
        working_dir: Path::new("/"),
    })
}

/// [`run_program`] with everything said.
pub fn run_program_with(spec: &ProgramSpec<'_>) -> Result<String, HostError> {
    Err(HostError::ProgramNotFound {
        program: spec.program.display().to_string(),
        remedy: "not built yet".to_string(),
    })
}
