//! Directories for tests of what lies in files: checksums are reached differently where these are memory.

use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

/// A directory in memory; none, said aloud, where there is no such place.
pub(super) fn in_memory() -> Option<TempDir> {
    let memory = Path::new("/dev/shm");
    let made = memory.is_dir().then(|| tempfile::tempdir_in(memory).ok()).flatten();
    if made.is_none() {
        println!("skip: there is no memory at {}", memory.display());
    }
    made
}

/// A directory on a disk and one in memory, as far as they are there.
pub(super) fn on_disk_and_in_memory() -> Vec<TempDir> {
    std::iter::once(tempfile::tempdir().expect("a directory")).chain(in_memory()).collect()
}

/// A small file system in memory of its own.
pub(super) struct SmallDisk(TempDir);

impl SmallDisk {
    /// With room for so much, as in `8k`; none, said aloud, where nothing may be mounted.
    pub(super) fn mount(size: &str) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().expect("a directory");
        let options = std::ffi::CString::new(format!("size={size}")).expect("a number");
        match mount("tmpfs", directory.path(), "tmpfs", MountFlags::empty(), options.as_c_str()) {
            Ok(()) => Some(SmallDisk(directory)),
            Err(error) => {
                println!("skip: nothing can be mounted: {error}");
                None
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room that is left, until the file is removed that it returns.
    pub(super) fn fill(&self) -> std::path::PathBuf {
        let path = self.0.path().join("filler");
        let mut file = std::fs::File::create(&path).expect("a file");
        while std::io::Write::write(&mut file, &[1; 4096]).is_ok_and(|written| written == 4096) {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Err(error) = unmount(self.0.path(), UnmountFlags::DETACH) {
            println!("{} stays mounted: {error}", self.0.path().display());
        }
    }
}
