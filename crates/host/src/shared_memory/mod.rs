//! Shared memory that a killed process could not remove.
//!
//! POSIX segments are files in `/dev/shm`, System V segments are objects of the kernel; both outlive
//! the processes that use them. A server that is killed leaves its own behind, and no other process ever
//! removes them. The server draws their names, so they cannot be registered before they exist: they
//! are known by being mapped by a process of ours while it lives ([`mapped_by`]), and what only its
//! children map is found through those ([`postgresql`]).
//!
//! What a PostgreSQL server leaves before it was seen to map anything is found by its data directory, which it writes into
//! its memory ([`remove_postgresql`]).
//!
//! A segment is removed when no process maps it any more and it is still the one that was seen: same
//! inode and owner, or same identifier, owner and time of creation. All others are left alone.

mod postgresql;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use underlay_core::SystemError;

use crate::error::HostError;
use crate::teardown::Removal;

const POSIX_DIR: &str = "/dev/shm";
/// How the kernel names a System V segment in a memory map; the key follows.
const SYSTEM_V_NAME: &str = "/SYSV";
/// Children of a server that was killed need a moment to notice and to end.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);
const RELEASE_PAUSE: Duration = Duration::from_millis(20);

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Segment {
    /// A file in `/dev/shm`.
    Posix {
        /// Absolute.
        path: PathBuf,
        /// The file's inode number.
        inode: u64,
        /// The user number of the process that maps it, who must own it.
        owner: u32,
    },
    /// An object of the kernel.
    SystemV {
        /// Its identifier (`shmid`).
        id: i32,
        /// The user number of the process that maps it, who must own it.
        owner: u32,
        /// When it was created, seconds since 1970.
        created_seconds: i64,
    },
}

/// What became of an attempt.
enum Attempt {
    Done(Removal),
    /// A process maps it.
    InUse,
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segment::Posix { path, .. } => write!(f, "shared memory {}", path.display()),
            Segment::SystemV { id, .. } => write!(f, "shared memory {id} (System V)"),
        }
    }
}

/// The segments that a process maps, or has opened and is about to map.
pub(crate) fn mapped_by(pid: u32) -> BTreeSet<Segment> {
    let Some(owner) = owner_of(pid) else { return BTreeSet::new() };
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mapped = maps.lines().filter_map(Entry::parse).filter_map(|entry| match entry {
        Entry::Posix { path, inode } => Some(Segment::Posix { path, inode, owner }),
        Entry::SystemV { id } => {
            let facts = system_v_facts(id)?;
            Some(Segment::SystemV { id, owner, created_seconds: facts.created_seconds })
        }
    });
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let opened = descriptors.filter_map(|entry| {
        let path = fs::read_link(entry.path()).ok().filter(|path| is_posix_name(path))?;
        let inode = path.symlink_metadata().ok()?.ino();
        Some(Segment::Posix { path, inode, owner })
    });
    mapped.chain(opened).collect()
}

/// Removes a segment with those that it lists, waiting a moment for processes that map it to end.
pub(crate) fn remove(segment: &Segment) -> Result<Removal, HostError> {
    let deadline = Instant::now() + RELEASE_LIMIT;
    loop {
        match attempt(segment)? {
            Attempt::Done(removal) => return Ok(removal),
            Attempt::InUse if Instant::now() >= deadline => {
                let path = match segment {
                    Segment::Posix { path, .. } => Some(path.clone()),
                    Segment::SystemV { .. } => None,
                };
                let source = io::ErrorKind::ResourceBusy.into();
                return Err(SystemError { action: "remove shared memory", path, source }.into());
            }
            Attempt::InUse => thread::sleep(RELEASE_PAUSE),
        }
    }
}

/// Removes what a PostgreSQL server left whose data directory had this device and inode number, and which ran as `owner`:
/// System V segments that say so and that no process uses, with the POSIX segments that belong to them. A process that was
/// killed loses its memory map before it lets go of what was in it: for that moment it waits.
pub(crate) fn remove_postgresql(device: u64, inode: u64, owner: u32) -> Result<Removal, HostError> {
    let deadline = Instant::now() + RELEASE_LIMIT;
    let mut removed = Removal::WasGone;
    loop {
        let mut is_awaited = false;
        for id in system_v_ids() {
            let Some(facts) = system_v_facts(id).filter(|facts| facts.owner == owner) else {
                continue;
            };
            let created_seconds = facts.created_seconds;
            let segment = Segment::SystemV { id, owner, created_seconds };
            if facts.users > 0 {
                is_awaited |= is_let_go(&segment);
                continue;
            }
            let header = beginning(id, facts.bytes);
            let Some(server) = header.and_then(|header| postgresql::server(&header)) else {
                continue;
            };
            if (server.device, server.inode) != (device, inode) {
                continue;
            }
            if is_running(server.creator) {
                is_awaited = true;
                continue;
            }
            // The segment that leads to the others goes last: after an interruption the others can be
            // found again.
            let control = Path::new(POSIX_DIR).join(postgresql::file_name(server.control));
            if let Some(inode) = control.symlink_metadata().ok().map(|facts| facts.ino()) {
                remove(&Segment::Posix { path: control, inode, owner })?;
            }
            if remove(&segment)? == Removal::Removed {
                removed = Removal::Removed;
            }
        }
        if !is_awaited || Instant::now() >= deadline {
            return Ok(removed);
        }
        thread::sleep(RELEASE_PAUSE);
    }
}

/// Identifiers of all System V segments of this host.
fn system_v_ids() -> Vec<i32> {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    // The first line names the columns, the second of which is the identifier.
    let id = |line: &str| line.split_ascii_whitespace().nth(1)?.parse().ok();
    text.lines().skip(1).filter_map(id).collect()
}

/// The first bytes of a System V segment; `None` if it is shorter, or we may not read it.
fn beginning(id: i32, bytes: u64) -> Option<[u8; postgresql::SERVER_BYTES]> {
    if bytes < postgresql::SERVER_BYTES as u64 {
        return None;
    }
    // SAFETY: attached for reading at an address of the kernel's choice; -1 says that it was not.
    let address = unsafe { libc::shmat(id, std::ptr::null(), libc::SHM_RDONLY) };
    if address.addr() == usize::MAX {
        return None;
    }
    let mut header = [0; postgresql::SERVER_BYTES];
    // SAFETY: the segment has at least so many bytes, as was looked up; segments do not shrink. It is detached right
    // afterwards, and nothing refers to it then.
    unsafe {
        std::ptr::copy_nonoverlapping(address.cast::<u8>(), header.as_mut_ptr(), header.len());
        libc::shmdt(address);
    }
    Some(header)
}

/// Whether a process has not ended. One that was killed stays in the process table until its parent, perhaps a busy `init`,
/// has taken note; it uses nothing any more.
fn is_running(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // proc(5): the state follows the name, which may itself have parentheses.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// Removes those segments that no process maps any more.
pub(crate) fn remove_unused(segments: &BTreeSet<Segment>) {
    let deadline = Instant::now() + RELEASE_LIMIT;
    for segment in segments {
        // A segment that is still mapped is kept; a failure means that another process removed it.
        while matches!(attempt(segment), Ok(Attempt::InUse))
            && is_let_go(segment)
            && Instant::now() < deadline
        {
            thread::sleep(RELEASE_PAUSE);
        }
    }
}

/// Whether a segment is in use only because a process still reads the memory map of a process that has ended: the kernel
/// keeps a System V segment attached until that reader is done.
fn is_let_go(segment: &Segment) -> bool {
    match segment {
        Segment::Posix { .. } => false,
        Segment::SystemV { id, .. } => !mapped_by_any().contains(&Entry::SystemV { id: *id }),
    }
}

fn attempt(segment: &Segment) -> Result<Attempt, HostError> {
    match segment {
        Segment::Posix { path, inode, owner } => remove_posix(path, *inode, *owner),
        Segment::SystemV { id, owner, created_seconds } => {
            remove_system_v(*id, *owner, *created_seconds)
        }
    }
}

fn remove_posix(path: &Path, inode: u64, owner: u32) -> Result<Attempt, HostError> {
    let Some(file) = open_same(path, inode, owner) else {
        return Ok(Attempt::Done(Removal::WasGone));
    };
    let mapped: BTreeSet<PathBuf> = mapped_by_any()
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Posix { path, .. } => Some(path),
            Entry::SystemV { .. } => None,
        })
        .collect();
    if mapped.contains(path) {
        return Ok(Attempt::InUse);
    }
    // The list goes last: after an interruption it can be found again.
    let listed = postgresql::listed(path, &contents(file));
    for other in listed.iter().filter(|other| is_owned(other, owner)) {
        if mapped.contains(other) {
            return Ok(Attempt::InUse);
        }
        remove_file(other)?;
    }
    Ok(Attempt::Done(remove_file(path)?))
}

fn remove_file(path: &Path) -> Result<Removal, HostError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(Removal::Removed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Removal::WasGone),
        Err(error) => Err(HostError::file("remove", path)(error)),
    }
}

/// The file, if it is still the one that was seen; an open file cannot be exchanged.
fn open_same(path: &Path, inode: u64, owner: u32) -> Option<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let facts = file.metadata().ok()?;
    (facts.is_file() && facts.ino() == inode && facts.uid() == owner).then_some(file)
}

fn is_owned(path: &Path, owner: u32) -> bool {
    path.symlink_metadata().is_ok_and(|facts| facts.is_file() && facts.uid() == owner)
}

/// The beginning of a segment; a list is short.
fn contents(file: File) -> Vec<u8> {
    const LIST_BYTES_MAX: u64 = 16 << 20;
    let mut bytes = Vec::new();
    // What cannot be read lists nothing.
    let _ = file.take(LIST_BYTES_MAX).read_to_end(&mut bytes);
    bytes
}

/// What is mapped by any process. A process that cannot be inspected counts as mapping nothing: those are
/// strangers to the owner's segments.
fn mapped_by_any() -> Vec<Entry> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("maps")).ok())
        .flat_map(|maps| {
            let entries: Vec<Entry> = maps.lines().filter_map(Entry::parse).collect();
            entries
        })
        .collect()
}

fn owner_of(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|metadata| metadata.uid())
}

/// A line of a memory map that is of shared memory.
#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Posix { path: PathBuf, inode: u64 },
    SystemV { id: i32 },
}

impl Entry {
    /// proc(5): `address perms offset device inode path`. The inode of a System V segment is its number.
    fn parse(line: &str) -> Option<Entry> {
        // Most lines have neither: skip them without parsing.
        if !line.contains(POSIX_DIR) && !line.contains(SYSTEM_V_NAME) {
            return None;
        }
        let mut fields = line.split_ascii_whitespace();
        let inode = fields.nth(4)?;
        let name = fields.next()?;
        // A deleted POSIX segment is gone already; a System V segment always reads as deleted.
        let deleted = fields.next().is_some();
        if name.starts_with(SYSTEM_V_NAME) {
            return Some(Entry::SystemV { id: inode.parse().ok()? });
        }
        let path = PathBuf::from(name);
        (is_posix_name(&path) && !deleted).then_some(())?;
        Some(Entry::Posix { path, inode: inode.parse().ok()? })
    }
}

/// Segments have no folders. A file in a folder below `/dev/shm` is a file, perhaps of the very database whose
/// server was killed: InnoDB maps its log where it takes the file system for memory.
fn is_posix_name(path: &Path) -> bool {
    path.parent() == Some(Path::new(POSIX_DIR))
}

/// What the kernel knows about a System V segment.
struct SystemVFacts {
    owner: u32,
    created_seconds: i64,
    users: u64,
    bytes: u64,
}

/// `None` when there is none of this number, or we may not ask.
fn system_v_facts(id: i32) -> Option<SystemVFacts> {
    // SAFETY: an all-zero shmid_ds is a valid value of this plain structure, which shmctl fills. A segment
    // that does not exist is reported as an error.
    let (answer, facts) = unsafe {
        let mut facts: libc::shmid_ds = std::mem::zeroed();
        (libc::shmctl(id, libc::IPC_STAT, &raw mut facts), facts)
    };
    (answer == 0).then_some(SystemVFacts {
        owner: facts.shm_perm.uid,
        created_seconds: facts.shm_ctime,
        users: facts.shm_nattch,
        bytes: facts.shm_segsz as u64,
    })
}

fn remove_system_v(id: i32, owner: u32, created_seconds: i64) -> Result<Attempt, HostError> {
    let is_same =
        |facts: &SystemVFacts| facts.owner == owner && facts.created_seconds == created_seconds;
    match system_v_facts(id).filter(is_same) {
        None => Ok(Attempt::Done(Removal::WasGone)),
        Some(facts) if facts.users > 0 => Ok(Attempt::InUse),
        Some(_) => {
            // SAFETY: IPC_RMID takes no structure.
            match unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) } {
                0 => Ok(Attempt::Done(Removal::Removed)),
                _ => Err(HostError::system("remove shared memory")(io::Error::last_os_error())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;
    use std::process::Command;
    use std::time::Duration;

    use super::{Entry, postgresql, remove_postgresql, system_v_facts};
    use crate::teardown::Removal;

    /// A System V segment of ours with this beginning; its identifier.
    fn segment(beginning: &[u8; postgresql::SERVER_BYTES]) -> i32 {
        // SAFETY: a new segment of that size is attached at an address of the kernel's choice, filled to its end, and
        // detached; nothing refers to it then.
        unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, beginning.len(), libc::IPC_CREAT | 0o600);
            assert!(id >= 0, "{}", std::io::Error::last_os_error());
            let address = libc::shmat(id, std::ptr::null(), 0);
            assert_ne!(address.addr(), usize::MAX, "{}", std::io::Error::last_os_error());
            std::ptr::copy_nonoverlapping(beginning.as_ptr(), address.cast(), beginning.len());
            libc::shmdt(address);
            id
        }
    }

    #[test]
    fn memory_of_a_killed_server_is_removed_although_nobody_took_note_of_its_end() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let facts = folder.path().metadata().expect("its facts");
        let mut server = Command::new("sleep").arg("60").spawn().expect("a process");
        let id = segment(&postgresql::beginning(server.id(), facts.dev(), facts.ino()));
        let owner = system_v_facts(id).expect("it is there").owner;
        let remove = || remove_postgresql(facts.dev(), facts.ino(), owner).expect("looked");
        assert_eq!(remove(), Removal::WasGone, "its creator may be about to use it");
        // While it is looked for, as when a busy host is slow to end a process.
        let removed = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                server.kill().expect("killed");
            });
            remove()
        });
        server.wait().expect("ended");
        assert_eq!(removed, Removal::Removed);
        assert!(system_v_facts(id).is_none());
    }

    #[test]
    fn reads_memory_maps() {
        assert_eq!(
            Entry::parse("7f00-7f01 rw-s 00000000 00:01 42 /SYSV0052e2c1 (deleted)"),
            Some(Entry::SystemV { id: 42 })
        );
        assert_eq!(
            Entry::parse("7f00-7f01 rw-s 00000000 00:18 43   /dev/shm/PostgreSQL.1"),
            Some(Entry::Posix { path: PathBuf::from("/dev/shm/PostgreSQL.1"), inode: 43 })
        );
        assert_eq!(Entry::parse("7f00-7f01 rw-s 0 00:18 43 /dev/shm/x (deleted)"), None);
        assert_eq!(Entry::parse("7f00-7f01 r-xp 0 fe:00 44 /usr/bin/cat"), None);
        assert_eq!(Entry::parse("7f00-7f01 rw-p 0 00:00 0"), None);
    }

    #[test]
    fn a_database_in_memory_is_no_segment() {
        assert_eq!(
            Entry::parse("7f00-7f01 rw-s 0 00:18 43 /dev/shm/run/data/db/ib_logfile0"),
            None
        );
    }
}
