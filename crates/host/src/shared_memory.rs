//! Shared memory that a killed process could not remove.
//!
//! POSIX segments are files in `/dev/shm`, System V segments are objects of the kernel; both outlive
//! the processes that use them. A server that is killed leaves its own behind, and nobody else ever
//! removes them. They are known by being mapped by the processes that are about to be killed; they
//! are removed afterwards, when no process maps them any more and they belong to the same user.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const POSIX_DIR: &str = "/dev/shm/";
/// How the kernel names a System V segment in a memory map; the key follows.
const SYSTEM_V_NAME: &str = "/SYSV";

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Segment {
    /// A file, with its inode number and owner.
    Posix { path: PathBuf, inode: u64, owner: u32 },
    /// A System V identifier, with the owner of the process that maps it.
    SystemV { id: i32, owner: u32 },
}

/// The segments that a process maps.
pub(crate) fn mapped_by(pid: u32) -> BTreeSet<Segment> {
    let Some(owner) = owner_of(pid) else { return BTreeSet::new() };
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().filter_map(|line| parse(line, owner)).collect()
}

/// Removes those segments that nobody maps any more.
pub(crate) fn remove_unused(segments: &BTreeSet<Segment>) {
    for segment in segments {
        match segment {
            Segment::Posix { path, inode, owner } => {
                if is_same(path, *inode, *owner) && !mapped_by_any(path) {
                    // Failing means that somebody else removed it.
                    let _ = fs::remove_file(path);
                }
            }
            Segment::SystemV { id, owner } => remove_system_v(*id, *owner),
        }
    }
}

/// proc(5): `address perms offset device inode path`. The inode of a System V segment is its number.
fn parse(line: &str, owner: u32) -> Option<Segment> {
    let mut fields = line.split_ascii_whitespace();
    let inode = fields.nth(4)?;
    let name = fields.next()?;
    // A deleted POSIX segment is gone already; a System V segment always reads as deleted.
    let deleted = fields.next().is_some();
    if name.starts_with(SYSTEM_V_NAME) {
        return Some(Segment::SystemV { id: inode.parse().ok()?, owner });
    }
    (name.starts_with(POSIX_DIR) && !deleted).then_some(())?;
    Some(Segment::Posix { path: PathBuf::from(name), inode: inode.parse().ok()?, owner })
}

fn owner_of(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|metadata| metadata.uid())
}

fn is_same(path: &Path, inode: u64, owner: u32) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.ino() == inode && found.uid() == owner)
}

/// Whoever cannot be asked counts as not mapping it: those are strangers to the owner's segments.
fn mapped_by_any(path: &Path) -> bool {
    let Some(name) = path.to_str() else { return true };
    let Ok(entries) = fs::read_dir("/proc") else { return true };
    entries.flatten().any(|entry| {
        fs::read_to_string(entry.path().join("maps")).is_ok_and(|maps| maps.contains(name))
    })
}

fn remove_system_v(id: i32, owner: u32) {
    // SAFETY: an all-zero shmid_ds is a valid value of this plain structure; shmctl fills it, and
    // IPC_RMID takes none. A segment that does not exist any more is reported as an error.
    unsafe {
        let mut facts: libc::shmid_ds = std::mem::zeroed();
        let known = libc::shmctl(id, libc::IPC_STAT, &raw mut facts) == 0;
        if known && facts.shm_nattch == 0 && facts.shm_perm.uid == owner {
            libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Segment, parse};

    #[test]
    fn reads_memory_maps() {
        assert_eq!(
            parse("7f00-7f01 rw-s 00000000 00:01 42 /SYSV0052e2c1 (deleted)", 101),
            Some(Segment::SystemV { id: 42, owner: 101 })
        );
        assert_eq!(
            parse("7f00-7f01 rw-s 00000000 00:18 43   /dev/shm/PostgreSQL.1", 101),
            Some(Segment::Posix {
                path: PathBuf::from("/dev/shm/PostgreSQL.1"),
                inode: 43,
                owner: 101
            })
        );
        assert_eq!(parse("7f00-7f01 rw-s 0 00:18 43 /dev/shm/x (deleted)", 101), None);
        assert_eq!(parse("7f00-7f01 r-xp 0 fe:00 44 /usr/bin/cat", 101), None);
        assert_eq!(parse("7f00-7f01 rw-p 0 00:00 0", 101), None);
    }
}
