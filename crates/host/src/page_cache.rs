//! The page cache: drops the cached pages of a tree, and counts them.
//!
//! After copying a database into place, its pages are in the page cache, charged to the copying
//! process. A server with a memory limit would find its files there and read nothing from storage.
//! So copies end with a drop, and the count proves it.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;

use rustix::fs::{Advice, fadvise};
use underlay_core::Bytes;

use crate::error::HostError;

/// Writes back and drops the cached pages of a file, or of all files below a directory. Pages that
/// another process has mapped stay. Symbolic links are not followed.
pub fn drop_cached(path: &Path) -> Result<(), HostError> {
    for_each_file(path, &mut |path, file| {
        // Only clean pages can be dropped.
        file.sync_data().map_err(HostError::file("sync", path))?;
        fadvise(file, 0, None, Advice::DontNeed).map_err(HostError::file("uncache", path))
    })
}

/// How much of a file, or of all files below a directory, is in the page cache.
pub fn cached(path: &Path) -> Result<Bytes, HostError> {
    let mut total = Bytes::ZERO;
    for_each_file(path, &mut |path, file| {
        total += cached_of(file).map_err(HostError::file("ask for the cached pages of", path))?;
        Ok(())
    })?;
    Ok(total)
}

fn for_each_file(
    path: &Path,
    action: &mut dyn FnMut(&Path, &File) -> Result<(), HostError>,
) -> Result<(), HostError> {
    let metadata = path.symlink_metadata().map_err(HostError::file("inspect", path))?;
    if metadata.is_file() {
        let file = File::open(path).map_err(HostError::file("open", path))?;
        return action(path, &file);
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path).map_err(HostError::file("list", path))? {
            let entry = entry.map_err(HostError::file("list", path))?;
            for_each_file(&entry.path(), action)?;
        }
    }
    Ok(())
}

fn cached_of(file: &File) -> std::io::Result<Bytes> {
    let length = usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?;
    if length == 0 {
        return Ok(Bytes::ZERO);
    }
    let mut resident = vec![0u8; length.div_ceil(page_size())];
    // SAFETY: a new shared, read-only mapping that is never read through; mincore writes one byte
    // per page of it into `resident`, which has that many; it is unmapped before we return.
    let outcome = unsafe {
        let start = libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let outcome = libc::mincore(start, length, resident.as_mut_ptr());
        let error = std::io::Error::last_os_error();
        libc::munmap(start, length);
        if outcome < 0 { Err(error) } else { Ok(()) }
    };
    outcome?;
    let pages = resident.iter().filter(|page| **page & 1 != 0).count();
    Ok(Bytes(pages as u64 * page_size() as u64))
}

/// Bytes of a page of memory.
pub(crate) fn page_size() -> usize {
    // SAFETY: sysconf takes a number; the page size is always known.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use underlay_core::Bytes;

    use super::{cached, drop_cached};

    #[test]
    fn drops_what_it_counts() {
        // Not in a temporary directory: that may be a tmpfs, which is nothing but page cache.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/a"), vec![1u8; 1 << 20]).unwrap();
        fs::write(dir.path().join("empty"), b"").unwrap();
        assert_eq!(cached(dir.path()).unwrap(), Bytes::from_mib(1));
        drop_cached(dir.path()).unwrap();
        assert_eq!(cached(dir.path()).unwrap(), Bytes::ZERO);
        fs::read(dir.path().join("sub/a")).unwrap();
        assert_eq!(cached(&dir.path().join("sub/a")).unwrap(), Bytes::from_mib(1));
    }
}
