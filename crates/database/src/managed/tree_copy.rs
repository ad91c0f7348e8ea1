//! Copying a tree of files: parallel, durable at the end, counted.
//!
//! Bytes are read and written through large buffers. `copy_file_range` would be less work, but on xfs
//! and btrfs it shares blocks instead of copying them: the first write to each would then pay for
//! the copy within the measured run.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise, syncfs};
use underlay_core::Bytes;
use underlay_host::User;

use crate::managed::ServerError;

const BUFFER_BYTES: usize = 1 << 20;
/// How much is written before write-back is started.
const WRITEBACK_BYTES: u64 = 8 << 20;
/// More writers only make a disk seek.
const MOST_THREADS: usize = 4;

/// A copy in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// Files copied.
    pub files: u64,
    /// Bytes copied.
    pub bytes: Bytes,
    /// Until all was durable.
    pub duration: Duration,
}

/// One copy: everything below `from` to below `to`, which exists.
pub(crate) struct TreeCopy<'a> {
    pub from: &'a Path,
    pub to: &'a Path,
    /// Owner of what is created; ourselves if `None`.
    pub owner: Option<&'a User>,
    /// Whether to copy the entry with this path below `from`. Symbolic links and other special files
    /// never are.
    pub wanted: &'a (dyn Fn(&Path) -> bool + Sync),
}

struct FileEntry {
    relative: PathBuf,
    length: u64,
    mode: u32,
}

impl CopyReport {
    /// Throughput in bytes per second; what took less than a nanosecond counts as having taken one.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes.0 as f64 / self.duration.as_secs_f64().max(1e-9)
    }
}

/// Makes all copies and then makes them durable. What was written is dropped from the page cache,
/// where it would be charged to us and serve as a cache that the server's memory limit does not know.
pub(crate) fn copy_trees(copies: &[TreeCopy<'_>]) -> Result<CopyReport, ServerError> {
    let begin = Instant::now();
    let mut report = CopyReport { files: 0, bytes: Bytes::ZERO, duration: Duration::ZERO };
    for copy in copies {
        let mut files = Vec::new();
        make_directories(copy, Path::new(""), &mut files)?;
        // The largest first, so that no thread is left with a large one at the end.
        files.sort_by_key(|file| std::cmp::Reverse(file.length));
        report.bytes += copy_files(copy, &files)?;
        report.files += files.len() as u64;
    }
    sync_file_systems(copies.iter().map(|copy| copy.to))?;
    for copy in copies {
        uncache(copy.to)?;
    }
    report.duration = begin.elapsed();
    Ok(report)
}

/// Makes everything on the file systems of these directories durable.
pub(crate) fn sync_file_systems<'a>(
    dirs: impl Iterator<Item = &'a Path>,
) -> Result<(), ServerError> {
    let mut seen = BTreeSet::new();
    for dir in dirs {
        let handle = File::open(dir).map_err(ServerError::file("open", dir))?;
        let device = handle.metadata().map_err(ServerError::file("inspect", dir))?.dev();
        if seen.insert(device) {
            syncfs(&handle).map_err(ServerError::file("sync the file system of", dir))?;
        }
    }
    Ok(())
}

/// How many files are below a directory, and their sizes.
pub(crate) fn count(dir: &Path) -> Result<(u64, Bytes), ServerError> {
    let (mut files, mut bytes) = (0, Bytes::ZERO);
    for entry in fs::read_dir(dir).map_err(ServerError::file("list", dir))? {
        let entry = entry.map_err(ServerError::file("list", dir))?;
        let path = entry.path();
        let metadata = path.symlink_metadata().map_err(ServerError::file("inspect", &path))?;
        if metadata.is_dir() {
            let below = count(&path)?;
            files += below.0;
            bytes += below.1;
        } else if metadata.is_file() {
            files += 1;
            bytes += Bytes(metadata.len());
        }
    }
    Ok((files, bytes))
}

/// Removes everything inside a directory, but not the directory. A missing one is empty.
pub(crate) fn empty_directory(dir: &Path) -> Result<(), ServerError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(ServerError::file("list", dir)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(ServerError::file("list", dir))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(ServerError::file("inspect", &path))?;
        let removed =
            if kind.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(ServerError::file("remove", &path))?;
    }
    Ok(())
}

/// Whether a directory is missing or holds nothing; the `lost+found` of a file system's root counts
/// as nothing.
pub(crate) fn is_empty(dir: &Path) -> Result<bool, ServerError> {
    match fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries
            .all(|entry| entry.is_ok_and(|entry| entry.file_name() == OsStr::new("lost+found")))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(ServerError::file("list", dir)(error)),
    }
}

fn make_directories(
    copy: &TreeCopy<'_>,
    relative: &Path,
    files: &mut Vec<FileEntry>,
) -> Result<(), ServerError> {
    let dir = copy.from.join(relative);
    for entry in fs::read_dir(&dir).map_err(ServerError::file("list", &dir))? {
        let entry = entry.map_err(ServerError::file("list", &dir))?;
        let relative = relative.join(entry.file_name());
        let path = entry.path();
        let metadata = path.symlink_metadata().map_err(ServerError::file("inspect", &path))?;
        if !(copy.wanted)(&relative) {
            continue;
        }
        let mode = metadata.mode() & 0o777;
        if metadata.is_dir() {
            make_directory(&copy.to.join(&relative), mode, copy.owner)?;
            make_directories(copy, &relative, files)?;
        } else if metadata.is_file() {
            files.push(FileEntry { relative, length: metadata.len(), mode });
        }
    }
    Ok(())
}

fn make_directory(path: &Path, mode: u32, owner: Option<&User>) -> Result<(), ServerError> {
    DirBuilder::new().mode(mode).create(path).map_err(ServerError::file("create", path))?;
    owner.map_or(Ok(()), |user| user.own(path)).map_err(ServerError::from)
}

fn copy_files(copy: &TreeCopy<'_>, files: &[FileEntry]) -> Result<Bytes, ServerError> {
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let outcome = Mutex::new(Ok(Bytes::ZERO));
    let work = || {
        let mut buffer = vec![0; BUFFER_BYTES];
        while !stop.load(Ordering::Relaxed) {
            let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            let copied = copy_file(copy, file, &mut buffer);
            let mut outcome = outcome.lock().expect("no copier panics while it adds a number");
            match copied {
                Ok(bytes) => {
                    if let Ok(total) = outcome.as_mut() {
                        *total += bytes;
                    }
                }
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    *outcome = Err(error);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(MOST_THREADS) {
            // Without a second thread the first does all the work.
            let _ = thread::Builder::new().name("copy".to_string()).spawn_scoped(scope, work);
        }
        work();
    });
    outcome.into_inner().expect("no copier panics while it adds a number")
}

fn copy_file(
    copy: &TreeCopy<'_>,
    entry: &FileEntry,
    buffer: &mut [u8],
) -> Result<Bytes, ServerError> {
    let (from, to) = (copy.from.join(&entry.relative), copy.to.join(&entry.relative));
    let mut source = File::open(&from).map_err(ServerError::file("open", &from))?;
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(entry.mode)
        .open(&to)
        .map_err(ServerError::file("create", &to))?;
    if let Some(user) = copy.owner {
        fchown(&target, Some(user.uid), Some(user.gid))
            .map_err(ServerError::file("change owner of", &to))?;
    }
    let (mut copied, mut started) = (0, 0);
    loop {
        let count = source.read(buffer).map_err(ServerError::file("read", &from))?;
        if count == 0 {
            return Ok(Bytes(copied));
        }
        target.write_all(&buffer[..count]).map_err(ServerError::file("write", &to))?;
        copied += count as u64;
        if copied - started >= WRITEBACK_BYTES {
            start_writeback(&target, started, &to)?;
            started = copied;
        }
    }
}

/// Has the kernel begin to write what is dirty from `offset_bytes` on, without waiting. Otherwise
/// nothing would reach the disk before the final sync, and the disk would idle while we copy.
pub(crate) fn start_writeback(
    file: &File,
    offset_bytes: u64,
    path: &Path,
) -> Result<(), ServerError> {
    let offset = i64::try_from(offset_bytes).map_err(io::Error::other);
    let offset = offset.map_err(ServerError::file("write", path))?;
    // SAFETY: takes numbers and an open descriptor; a length of zero means up to the end.
    let outcome =
        unsafe { libc::sync_file_range(file.as_raw_fd(), offset, 0, libc::SYNC_FILE_RANGE_WRITE) };
    if outcome < 0 {
        return Err(ServerError::file("write", path)(io::Error::last_os_error()));
    }
    Ok(())
}

/// Drops what is cached of the files below a directory, after a sync: only clean pages can be. What a running server removes
/// meanwhile is skipped.
pub(crate) fn uncache(dir: &Path) -> Result<(), ServerError> {
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if is_gone(&error) => return Ok(()),
        Err(error) => return Err(ServerError::file("list", dir)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(ServerError::file("list", dir))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(ServerError::file("inspect", &path))?;
        if kind.is_dir() {
            uncache(&path)?;
        } else if kind.is_file() {
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(ServerError::file("open", &path)(error)),
            };
            fadvise(&file, 0, None, Advice::DontNeed)
                .map_err(ServerError::file("uncache", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use underlay_core::Bytes;

    use super::{TreeCopy, copy_trees, count, empty_directory, is_empty};
    use crate::managed::ServerError;

    fn copy(from: &Path, to: &Path) -> Result<super::CopyReport, ServerError> {
        let wanted = |path: &Path| path != Path::new("skip");
        copy_trees(&[TreeCopy { from, to, owner: None, wanted: &wanted }])
    }

    #[test]
    fn copies_files_modes_and_empty_directories_and_nothing_else() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("a/empty")).unwrap();
        fs::create_dir_all(from.join("skip/x")).unwrap();
        fs::create_dir(&to).unwrap();
        let large: Vec<u8> = (0..3_000_001u32).map(|i| (i % 251) as u8).collect();
        fs::write(from.join("a/large"), &large).unwrap();
        fs::write(from.join("none"), b"").unwrap();
        fs::set_permissions(from.join("none"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("/etc/passwd", from.join("link")).unwrap();

        let report = copy(&from, &to).unwrap();
        assert_eq!((report.files, report.bytes), (2, Bytes(3_000_001)));
        // Before anything reads it.
        assert_eq!(underlay_host::page_cache::cached(&to).unwrap(), Bytes::ZERO);
        assert_eq!(count(&to).unwrap(), (2, Bytes(3_000_001)));
        assert_eq!(fs::read(to.join("a/large")).unwrap(), large);
        assert_eq!(to.join("none").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(to.join("a/empty").is_dir());
        assert!(!to.join("skip").exists() && to.join("link").symlink_metadata().is_err());
        // A second copy would overwrite.
        assert!(matches!(copy(&from, &to), Err(ServerError::System(_))));

        empty_directory(&to).unwrap();
        assert!(to.exists() && is_empty(&to).unwrap());
    }

    #[test]
    fn missing_and_fresh_directories_are_empty() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_empty(&dir.path().join("missing")).unwrap());
        fs::create_dir(dir.path().join("lost+found")).unwrap();
        assert!(is_empty(dir.path()).unwrap());
        fs::write(dir.path().join("file"), b"").unwrap();
        assert!(!is_empty(dir.path()).unwrap());
        empty_directory(&dir.path().join("missing")).unwrap();
    }
}
