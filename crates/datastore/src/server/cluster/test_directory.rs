//! Directories for tests of what lies in files: checksums are reached differently where these are memory.

use std::path::Path;

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
