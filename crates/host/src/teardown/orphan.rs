//! The stack of one killed owner, looked at before it is unwound.
//!
//! [`super::clean`] unwinds every such stack, even if its resources are in use. A caller that knows the purpose of a
//! resource can be more careful with its own: find the stack, ask for users, then unwind it alone.

use std::fs;

use super::clean::{CleanReport, unwind_orphan};
use super::resource::Resource;
use super::stack_file::{Contents, EXTENSION, StackFile, Takeover};
use crate::error::HostError;
use crate::state_dir::StateDir;

/// A stack whose owner is dead. No other process unwinds it as long as this exists.
#[derive(Debug)]
pub struct Orphan {
    file: StackFile,
    contents: Contents,
}

impl Orphan {
    /// The stack of a dead owner that holds this resource, if there is one.
    pub fn find(state: &StateDir, resource: &Resource) -> Result<Option<Orphan>, HostError> {
        let directory = state.teardown_dir();
        let entries = fs::read_dir(&directory).map_err(HostError::file("list", &directory))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_none_or(|extension| extension != EXTENSION) {
                continue;
            }
            // The owner of an unreadable one is unknown: `clean` lists it.
            let Ok(Takeover::Orphan(file, mut contents)) = StackFile::take_over(&path) else {
                continue;
            };
            if contents.header.before_reboot() {
                contents.pending.retain(|(_, resource)| resource.survives_reboot());
            }
            if contents.pending.iter().any(|(_, pending)| pending == resource) {
                return Ok(Some(Orphan { file, contents }));
            }
        }
        Ok(None)
    }

    /// What is still on it, in the order of registration.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.contents.pending.iter().map(|(_, resource)| resource)
    }

    /// Removes everything on it, last first, even if it is in use.
    pub fn unwind(self) -> CleanReport {
        let mut report = CleanReport::default();
        unwind_orphan(self.file, self.contents, &mut report);
        report
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Orphan;
    use crate::state_dir::StateDir;
    use crate::teardown::resource::Resource;
    use crate::teardown::stack_file::{Header, StackFile};

    #[test]
    fn the_one_with_the_resource_is_found_and_unwound_alone() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let state = StateDir::at(root.join("state")).unwrap();
        let place = |name: &str| Resource::Directory { path: root.join(name) };
        let header = |pid: u32| Header { pid, ..Header::own("test") };
        for (name, pid) in [("ours", u32::MAX), ("other", u32::MAX), ("living", std::process::id())]
        {
            let mut stack = StackFile::create(&state.teardown_dir(), name, &header(pid)).unwrap();
            stack.add(1, &place(name)).unwrap();
            fs::create_dir(root.join(name)).unwrap();
        }
        assert!(Orphan::find(&state, &place("nobodys")).unwrap().is_none());
        assert!(Orphan::find(&state, &place("living")).unwrap().is_none());
        let orphan = Orphan::find(&state, &place("ours")).unwrap().expect("an orphan");
        assert_eq!(orphan.resources().collect::<Vec<_>>(), [&place("ours")]);
        let report = orphan.unwind();
        assert_eq!((report.removed.len(), report.failed.len()), (1, 0), "{report:?}");
        assert!(!root.join("ours").exists());
        assert!(root.join("other").exists() && root.join("living").exists());
        assert!(Orphan::find(&state, &place("ours")).unwrap().is_none());
    }
}
