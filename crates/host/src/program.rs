//! Short programs that are waited for: mkfs, initdb, ...
//!
//! They die with us: the kernel kills them when the thread that waits for them dies, so that no
//! half-finished `mkfs` keeps writing while its directory is being removed. The kernel does not kill
//! what they started themselves, as `initdb` starts servers: [`crate::run_program_tree`] is for those.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::child_setup::{ChildSetup, Lifetime, clean_command};
use crate::error::HostError;
use crate::user::User;

/// Where distributions keep what only root uses, which `PATH` often leaves out.
const SYSTEM_FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// How much of a failed program's standard error is kept.
const ERROR_LINES: usize = 12;

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct ProgramSpec<'a> {
    /// Absolute path, or a name looked up with [`find_program`].
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
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .chain(SYSTEM_FOLDERS.iter().map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|candidate| is_executable(candidate))
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

/// [`run_program`] with all options.
pub fn run_program_with(spec: &ProgramSpec<'_>) -> Result<String, HostError> {
    let name = spec.program.file_name().unwrap_or(spec.program.as_os_str()).to_string_lossy();
    let path = resolve(spec.program, &name)?;
    let mut command = command(&path, spec);
    let output = command.output().map_err(HostError::file("run", &path))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    // Some programs explain themselves on standard output only.
    let explained = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    Err(HostError::ProgramFailed {
        program: name.into_owned(),
        status: describe(output.status),
        stderr: last_lines(&String::from_utf8_lossy(explained)),
    })
}

fn command(path: &Path, spec: &ProgramSpec<'_>) -> Command {
    let mut command = clean_command(path, &spec.args, &spec.env);
    command.env("LC_ALL", "C").stdin(Stdio::null());
    let setup = ChildSetup {
        run_as: spec.run_as.map(|user| (user.uid, user.gid)),
        join: Vec::new(),
        working_dir: spec.working_dir.to_path_buf(),
        lifetime: Lifetime::OfParentThread,
    };
    let mut setup = setup.prepared();
    // SAFETY: `apply` only makes system calls; it allocates nothing and takes no lock, as is required
    // between fork and exec of a process with threads.
    unsafe { command.pre_exec(move || setup.apply()) };
    command
}

fn resolve(program: &Path, name: &str) -> Result<PathBuf, HostError> {
    let found = if program.is_absolute() {
        is_executable(program).then(|| program.to_path_buf())
    } else {
        find_program(name)
    };
    found.ok_or_else(|| HostError::ProgramNotFound {
        program: program.display().to_string(),
        remedy: remedy(name),
    })
}

/// What to install for a program; the names are those of Debian and Ubuntu.
fn remedy(name: &str) -> String {
    let package = match name {
        "mkfs.ext4" | "tune2fs" | "e2fsck" => "e2fsprogs",
        "mkfs.xfs" => "xfsprogs",
        "fusermount3" => "fuse3",
        "initdb" | "postgres" | "pg_basebackup" | "pg_controldata" => "postgresql",
        other => other,
    };
    format!("install the package {package}")
}

pub(crate) fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_string(),
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(ERROR_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ProgramSpec, find_program, run_program, run_program_with};
    use crate::error::HostError;
    use crate::user::unprivileged_user;

    #[test]
    fn returns_the_output_and_carries_the_error() {
        assert_eq!(run_program("echo", &["a", "b"], None).unwrap(), "a b\n");
        let error = run_program("sh", &["-c", "echo why >&2; exit 3"], None).unwrap_err();
        assert_eq!(error.to_string(), "`sh` failed (exit code 3): why");
        let error = run_program("sh", &["-c", "kill -9 $$"], None).unwrap_err();
        assert!(error.to_string().contains("killed by signal 9"), "{error}");
    }

    #[test]
    fn says_what_to_install() {
        let error = run_program("/no/such/mkfs.xfs", &["-V"], None).unwrap_err();
        assert!(matches!(error, HostError::ProgramNotFound { .. }));
        assert!(error.to_string().contains("install the package xfsprogs"), "{error}");
        assert_eq!(find_program("no-such-program"), None);
    }

    #[test]
    fn inherits_no_environment_but_the_path() {
        let text = run_program_with(&ProgramSpec {
            program: Path::new("env"),
            args: Vec::new(),
            env: vec![("GIVEN".into(), "1".into())],
            run_as: None,
            working_dir: Path::new("/"),
        })
        .unwrap();
        let mut names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["GIVEN", "LC_ALL", "PATH"]);
    }

    #[test]
    fn runs_as_another_user_without_groups() {
        let Some(user) = unprivileged_user().unwrap() else {
            crate::skip!("needs root to become another user");
        };
        let identity = run_program("id", &["-u"], Some(&user)).unwrap();
        assert_eq!(identity.trim(), user.uid.to_string());
        let groups = run_program("id", &["-G"], Some(&user)).unwrap();
        assert_eq!(groups.trim(), user.gid.to_string());
    }
}
