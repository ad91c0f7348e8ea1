//! What is mounted on a path, whoever mounted it: asking for it, and unmounting it.
//!
//! It deliberately knows no teardown stack: the stack asks it.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::geteuid;

use crate::error::HostError;
use crate::mount_table::mounts;
use crate::program::{find_program, run_program};
use crate::real_path::real_path;
use crate::teardown::Removal;

/// How long a busy file system may take to come loose before it is detached lazily: processes that
/// were just killed close their files a moment later.
const BUSY_LIMIT: Duration = Duration::from_secs(3);

/// Whether something is mounted on exactly this path. Never touches the path's last component, so
/// it cannot hang on a file system whose server is frozen.
pub fn is_mount_point(path: &Path) -> Result<bool, HostError> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => is_mounted(&real_path(parent).join(name)),
        _ => is_mounted(path),
    }
}

/// The same for a path without symbolic links, which is not touched at all.
fn is_mounted(path: &Path) -> Result<bool, HostError> {
    Ok(mounts()?.iter().any(|entry| entry.target == path))
}

/// Whether anybody has a file, a directory or another mount on what is mounted on exactly this path; not if nothing is.
/// Leaves it mounted, and never reads from it.
pub fn is_in_use(target: &Path) -> Result<bool, HostError> {
    if !is_mount_point(target)? {
        return Ok(false);
    }
    // What was marked by an earlier question would be unmounted by this one: being looked up takes the mark off.
    let unmark = || target.symlink_metadata();
    let _dead_file_systems_have_no_metadata = unmark();
    let outcome = unmount(target, UnmountFlags::EXPIRE | UnmountFlags::NOFOLLOW);
    let _dead_file_systems_have_no_metadata = unmark();
    match outcome {
        Err(Errno::BUSY) => Ok(true),
        // Marked as expired.
        Ok(()) | Err(Errno::AGAIN) => Ok(false),
        Err(error) => Err(HostError::file("ask for users of", target)(error)),
    }
}

/// Unmounts what is mounted on exactly this path, which is free of symbolic links; lazily when it
/// stays busy.
pub(crate) fn unmount_if_mounted(target: &Path) -> Result<Removal, HostError> {
    let deadline = Instant::now() + BUSY_LIMIT;
    let mut removal = Removal::WasGone;
    while is_mounted(target)? {
        let lazily = Instant::now() >= deadline;
        match unmount_once(target, lazily) {
            Ok(()) => removal = Removal::Removed,
            Err(HostError::System(error))
                if error.source.raw_os_error() == Some(Errno::BUSY.raw_os_error()) && !lazily =>
            {
                thread::sleep(Duration::from_millis(20));
            }
            // Another process was faster; the loop's condition checks it.
            Err(HostError::System(error))
                if error.source.raw_os_error() == Some(Errno::INVAL.raw_os_error()) && !lazily =>
            {
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(removal)
}

/// An unprivileged user can only have mounted through FUSE's own helper, which also unmounts.
fn unmount_once(target: &Path, lazily: bool) -> Result<(), HostError> {
    if !geteuid().is_root() {
        let helper =
            ["fusermount3", "fusermount"].into_iter().find_map(find_program).ok_or_else(|| {
                HostError::ProgramNotFound {
                    program: "fusermount3".to_string(),
                    remedy: "install the package fuse3".to_string(),
                }
            })?;
        let mode = if lazily { "-uz" } else { "-u" };
        return run_program(helper, &[mode.as_ref(), target.as_os_str()], None).map(|_| ());
    }
    let mut flags = UnmountFlags::NOFOLLOW;
    if lazily {
        tracing::warn!(target = %target.display(), "still busy, detaching lazily");
        flags |= UnmountFlags::DETACH;
    }
    unmount(target, flags).map_err(HostError::file("unmount", target))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

    use super::{is_in_use, is_mount_point};

    #[test]
    fn knows_mount_points() {
        assert!(is_mount_point(Path::new("/proc")).unwrap());
        assert!(!is_mount_point(Path::new("/proc/self")).unwrap());
        assert!(!is_mount_point(Path::new("/no/such/place")).unwrap());
    }

    #[test]
    fn users_are_seen_without_unmounting() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().canonicalize().unwrap();
        assert!(!is_in_use(&target).unwrap(), "nothing is mounted");
        if mount("none", &target, "tmpfs", MountFlags::empty(), c"").is_err() {
            eprintln!("skip: nothing can be mounted here");
            return;
        }
        let held = File::create(target.join("held")).unwrap();
        let seen = is_in_use(&target);
        drop(held);
        // Asked twice, because the question marks the mount and a marked one would go.
        let free = [is_in_use(&target), is_in_use(&target)];
        let is_mounted = is_mount_point(&target);
        unmount(&target, UnmountFlags::DETACH).unwrap();
        assert!(seen.unwrap());
        assert!(free.into_iter().all(|in_use| !in_use.unwrap()));
        assert!(is_mounted.unwrap());
    }
}
