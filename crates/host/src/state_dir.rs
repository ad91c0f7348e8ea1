//! The directory in which Underlay keeps what outlives a process: teardown stacks, the scratch
//! space of runs, templates.
//!
//! ```text
//! <root>/                 0711: server users may traverse it, not list it
//!   teardown/             0700: one file per teardown stack
//!   runs/<run id>/        0711: scratch of one run
//!   templates/            0700: loaded clusters kept for later runs, each with a lock beside it
//!   *.lock
//! ```
//!
//! It deliberately holds no records and no reports: those belong to the user.

use std::env;
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, set_permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf, absolute};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use crate::error::HostError;

/// Where the state of root is kept.
const SYSTEM_ROOT: &str = "/var/lib/underlay";
/// Overrides the place.
const OVERRIDE_VARIABLE: &str = "UNDERLAY_STATE_DIR";

const MODE_TRAVERSABLE: u32 = 0o711;
const MODE_PRIVATE: u32 = 0o700;

/// The state directory and its folders.
#[derive(Clone, Debug)]
pub struct StateDir {
    root: PathBuf,
}

/// Held while something must not happen twice at a time; freed on drop or death.
#[derive(Debug)]
pub struct ExclusiveLock {
    _file: File,
}

impl StateDir {
    /// Opens the usual place, creating it when missing.
    pub fn open() -> Result<StateDir, HostError> {
        StateDir::at(StateDir::usual_place()?)
    }

    /// Where [`StateDir::open`] opens it, whether or not it is there: `$UNDERLAY_STATE_DIR` if set, else
    /// `/var/lib/underlay` for root, else `$XDG_STATE_HOME/underlay` or `~/.local/state/underlay`.
    pub fn usual_place() -> Result<PathBuf, HostError> {
        usual_place(|name| env::var_os(name), geteuid().is_root())
    }

    /// Opens a given place, creating it when missing.
    pub fn at(path: PathBuf) -> Result<StateDir, HostError> {
        let root = absolute(&path).map_err(HostError::file("resolve", &path))?;
        make_dir(&root, MODE_TRAVERSABLE)?;
        // Canonical from here on, because mount points are compared by name.
        let root = root.canonicalize().map_err(HostError::file("resolve", &root))?;
        let state = StateDir { root };
        make_dir(&state.teardown_dir(), MODE_PRIVATE)?;
        make_dir(&state.root.join("runs"), MODE_TRAVERSABLE)?;
        make_dir(&state.templates_dir(), MODE_PRIVATE)?;
        Ok(state)
    }

    /// The directory itself, absolute and free of symbolic links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where teardown stacks are.
    pub fn teardown_dir(&self) -> PathBuf {
        self.root.join("teardown")
    }

    /// The scratch directory of a run. Not created: register it with a [`crate::Teardown`] first.
    pub fn scratch_dir(&self, run_id: &str) -> PathBuf {
        self.root.join("runs").join(run_id)
    }

    /// Where loaded clusters are kept.
    pub fn templates_dir(&self) -> PathBuf {
        self.root.join("templates")
    }

    /// Waits for the lock of a template. It lies beside the template: several state directories may share one folder of
    /// templates by a symbolic link.
    pub fn lock_template(&self, key: &str) -> Result<ExclusiveLock, HostError> {
        self.lock(&format!("templates/{key}"))
    }

    /// Takes the lock `name`, or says [`HostError::Locked`] when another process has it.
    pub fn try_lock(&self, name: &str) -> Result<ExclusiveLock, HostError> {
        let path = self.root.join(format!("{name}.lock"));
        let file = open_lock(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(ExclusiveLock { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(HostError::Locked(path)),
            Err(error) => Err(HostError::file("lock", &path)(error)),
        }
    }

    /// Takes the lock `name`, waiting for another process to free it.
    pub fn lock(&self, name: &str) -> Result<ExclusiveLock, HostError> {
        let path = self.root.join(format!("{name}.lock"));
        let file = open_lock(&path)?;
        flock(&file, FlockOperation::LockExclusive).map_err(HostError::file("lock", &path))?;
        Ok(ExclusiveLock { _file: file })
    }
}

fn usual_place(
    variable: impl Fn(&str) -> Option<OsString>,
    is_root: bool,
) -> Result<PathBuf, HostError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = set(OVERRIDE_VARIABLE) {
        return Ok(path);
    }
    if is_root {
        return Ok(PathBuf::from(SYSTEM_ROOT));
    }
    // The XDG base directory specification has relative values ignored.
    if let Some(base) = set("XDG_STATE_HOME").filter(|path| path.is_absolute()) {
        return Ok(base.join("underlay"));
    }
    set("HOME").map(|home| home.join(".local/state/underlay")).ok_or(HostError::NoStateDir)
}

/// Creates the directory with exactly this mode, whatever the umask; an existing one keeps its own.
fn make_dir(path: &Path, mode: u32) -> Result<(), HostError> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(HostError::file("create directory", path))?;
    set_permissions(path, Permissions::from_mode(mode))
        .map_err(HostError::file("set the permissions of", path))
}

fn open_lock(path: &Path) -> Result<File, HostError> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(HostError::file("open", path))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::ffi::OsString;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use super::{StateDir, usual_place};
    use crate::error::HostError;

    fn check(variables: &[(&str, &str)], is_root: bool, expected: Option<&str>) {
        let variables: HashMap<&str, &str> = variables.iter().copied().collect();
        let place = usual_place(|name| variables.get(name).map(OsString::from), is_root);
        assert_eq!(place.ok().as_deref(), expected.map(Path::new));
    }

    #[test]
    fn chooses_the_place() {
        check(&[("HOME", "/root")], true, Some("/var/lib/underlay"));
        check(&[("UNDERLAY_STATE_DIR", "/x")], true, Some("/x"));
        check(&[("HOME", "/home/a")], false, Some("/home/a/.local/state/underlay"));
        check(&[("HOME", "/home/a"), ("XDG_STATE_HOME", "/s")], false, Some("/s/underlay"));
        check(
            &[("HOME", "/home/a"), ("XDG_STATE_HOME", "relative")],
            false,
            Some("/home/a/.local/state/underlay"),
        );
        check(&[("HOME", "/home/a"), ("UNDERLAY_STATE_DIR", "/x")], false, Some("/x"));
        check(&[("UNDERLAY_STATE_DIR", "")], false, None);
    }

    #[test]
    fn folders_have_their_modes_and_reopen() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("a/state");
        let state = StateDir::at(root.clone()).unwrap();
        StateDir::at(root).unwrap();
        let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(state.root().to_path_buf()), 0o711);
        assert_eq!(mode(state.teardown_dir()), 0o700);
        assert_eq!(mode(state.templates_dir()), 0o700);
        assert!(!state.scratch_dir("r1").exists());
    }

    #[test]
    fn a_lock_is_held_once() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().to_path_buf()).unwrap();
        let held = state.try_lock("template").unwrap();
        assert!(matches!(state.try_lock("template"), Err(HostError::Locked(_))));
        assert!(state.try_lock("other").is_ok());
        drop(held);
        assert!(state.lock("template").is_ok());
    }
}
