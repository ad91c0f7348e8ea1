//! Where the bytes of emulated volumes are stored.
//!
//! By default in memory if there is enough: on the host's disk, write-back and journal commits of the disk's file
//! system would sometimes stop the server for milliseconds.

use std::path::{Path, PathBuf};

use underlay_core::Bytes;
use underlay_host::{available_memory_bytes, free_space};

use crate::error::DatastoreError;

/// A directory that is memory on every Linux.
const MEMORY: &str = "/dev/shm";
/// Volumes may take this share of the available memory if they were filled; the database needs the rest.
const MEMORY_SHARE_MAX: f64 = 0.5;

/// Where backing files go: an existing directory outside the scratch directory, or inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    Elsewhere(PathBuf),
    Scratch,
}

/// Chooses the place and refuses volumes that would not fit there if they were filled.
pub(crate) fn choose(
    asked: Option<&Path>,
    scratch: &Path,
    needed: Bytes,
) -> Result<Backing, DatastoreError> {
    let backing = match asked {
        Some(directory) => Backing::Elsewhere(
            directory.canonicalize().map_err(DatastoreError::file("resolve", directory))?,
        ),
        None if fits_in_memory(needed) => Backing::Elsewhere(PathBuf::from(MEMORY)),
        None => Backing::Scratch,
    };
    let directory = match &backing {
        Backing::Elsewhere(directory) => directory,
        Backing::Scratch => scratch,
    };
    check_space(directory, needed)?;
    Ok(backing)
}

/// Refuses what would not fit if it were filled.
pub(crate) fn check_space(directory: &Path, needed: Bytes) -> Result<(), DatastoreError> {
    let free = free_space(directory)?;
    if needed > free {
        return Err(DatastoreError::NoSpace { path: directory.to_path_buf(), needed, free });
    }
    Ok(())
}

fn fits_in_memory(needed: Bytes) -> bool {
    let available = available_memory_bytes().unwrap_or(0) as f64;
    let is_memory = std::fs::read_to_string("/proc/mounts")
        .is_ok_and(|mounts| mounts.lines().any(|line| is_tmpfs(line, MEMORY)));
    is_memory
        && needed.0 as f64 <= MEMORY_SHARE_MAX * available
        && free_space(Path::new(MEMORY)).is_ok_and(|free| needed <= free)
}

/// Whether a line of `/proc/mounts` says that a tmpfs is mounted there.
fn is_tmpfs(line: &str, target: &str) -> bool {
    let mut fields = line.split_whitespace().skip(1);
    fields.next() == Some(target) && fields.next() == Some("tmpfs")
}

#[cfg(test)]
mod tests {
    use super::{Backing, check_space, choose, fits_in_memory, is_tmpfs};
    use crate::error::DatastoreError;
    use underlay_core::Bytes;

    #[test]
    fn volumes_larger_than_the_free_space_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let refused = choose(Some(directory.path()), directory.path(), Bytes(1 << 55));
        assert!(matches!(refused, Err(DatastoreError::NoSpace { .. })));
        assert!(matches!(
            choose(None, directory.path(), Bytes(1 << 55)),
            Err(DatastoreError::NoSpace { .. })
        ));
        assert!(check_space(directory.path(), Bytes::from_mib(1)).is_ok());
    }

    #[test]
    fn the_asked_place_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let chosen = choose(Some(directory.path()), directory.path(), Bytes(1));
        assert_eq!(chosen.unwrap(), Backing::Elsewhere(directory.path().canonicalize().unwrap()));
    }

    #[test]
    fn memory_is_recognised_and_never_overcommitted() {
        assert!(is_tmpfs("tmpfs /dev/shm tmpfs rw,nosuid 0 0", "/dev/shm"));
        assert!(!is_tmpfs("/dev/vda /dev/shm ext4 rw 0 0", "/dev/shm"));
        assert!(!is_tmpfs("tmpfs /dev/shm/other tmpfs rw 0 0", "/dev/shm"));
        assert!(!fits_in_memory(Bytes(1 << 55)));
    }
}
