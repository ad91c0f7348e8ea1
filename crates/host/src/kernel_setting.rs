//! A setting of the running kernel, changed for a while: a file below `/sys` or `/proc/sys` with one line.
//!
//! Such settings are the host's. Underlay itself changes none; benchmarks and tests that compare both sides of one may, and
//! what it was before is on the teardown stack before it is changed. Two that change the same setting at the same time undo each
//! other's change in the wrong order: whoever changes one makes sure that nobody else does.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::error::HostError;
use crate::teardown::{Removal, Resource, Teardown, Ticket};

/// Whether requests of FUSE may come through an io_uring (Linux 6.14): `Y` or `N`. Looked at when a file system is mounted.
pub const FUSE_OVER_IO_URING: &str = "/sys/module/fuse/parameters/enable_uring";

/// A changed setting. It stays changed when this is dropped: the teardown stack restores it.
#[derive(Debug)]
pub struct KernelSetting {
    teardown: Teardown,
    ticket: Ticket,
}

impl KernelSetting {
    /// Changes it; `None` if it has this value already, as the kernel shows it.
    ///
    /// # Errors
    /// When the kernel has no such setting, or does not let it be changed.
    pub fn change(
        teardown: &Teardown,
        path: &Path,
        value: &str,
    ) -> Result<Option<KernelSetting>, HostError> {
        let before = fs::read_to_string(path).map_err(HostError::file("read", path))?;
        let before = before.trim().to_string();
        if before == value {
            return Ok(None);
        }
        let resource = Resource::KernelSetting { path: path.to_path_buf(), before };
        let ticket = teardown.register(resource)?;
        if let Err(error) = write(path, value) {
            teardown.release(ticket)?;
            return Err(HostError::file("change", path)(error));
        }
        Ok(Some(KernelSetting { teardown: teardown.clone(), ticket }))
    }

    /// Gives it the value back that it had.
    pub fn restore(self) -> Result<(), HostError> {
        self.teardown.release(self.ticket)
    }
}

/// Gives a setting a value back, if it has another.
pub(crate) fn restore(path: &Path, before: &str) -> Result<Removal, HostError> {
    if fs::read_to_string(path).is_ok_and(|now| now.trim() == before) {
        return Ok(Removal::WasGone);
    }
    match write(path, before) {
        Ok(()) => Ok(Removal::Removed),
        // A module that is not loaded any more has no settings.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Removal::WasGone),
        Err(error) => Err(HostError::file("restore", path)(error)),
    }
}

/// Never makes a file: a setting is there or not.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{KernelSetting, restore};
    use crate::state_dir::StateDir;
    use crate::teardown::{Removal, Teardown};

    #[test]
    fn what_was_changed_is_restored() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().join("state")).unwrap();
        let file = dir.path().canonicalize().unwrap().join("setting");
        let is = |value: &str| fs::read_to_string(&file).unwrap().trim() == value;
        fs::write(&file, "N\n").unwrap();
        let teardown = Teardown::create(&state, "test").unwrap();
        assert!(KernelSetting::change(&teardown, &file, "N").unwrap().is_none());
        assert!(teardown.registered().is_empty());
        let changed = KernelSetting::change(&teardown, &file, "Y").unwrap().unwrap();
        assert!(is("Y"));
        changed.restore().unwrap();
        assert!(is("N") && teardown.registered().is_empty());
        // Forgotten by its owner, it is restored by the stack.
        KernelSetting::change(&teardown, &file, "Y").unwrap();
        assert!(teardown.unwind().is_empty());
        assert!(is("N"));
    }

    #[test]
    fn what_there_is_not_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().join("state")).unwrap();
        let teardown = Teardown::create(&state, "test").unwrap();
        let missing = dir.path().join("setting");
        assert!(KernelSetting::change(&teardown, &missing, "Y").is_err());
        assert!(teardown.registered().is_empty() && !missing.exists());
        let nowhere = Path::new("/sys/module/no-such-module/parameters/setting");
        assert_eq!(restore(nowhere, "N").unwrap(), Removal::WasGone);
    }
}
