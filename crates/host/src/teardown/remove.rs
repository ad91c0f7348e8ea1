//! Removing one resource, whether or not it is there: every removal is idempotent.
//!
//! It deliberately keeps no list: which resources there are, and in which order they go, is the stack's business.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::cgroup;
use crate::error::HostError;
use crate::loop_device;
use crate::mount_point;
use crate::mount_table::mounted_below;
use crate::process_table::kill_marked;
use crate::shared_memory;
use crate::teardown::removal::{Removal, counted};
use crate::teardown::resource::Resource;

/// How long unmounting may take before the stack continues: a file system on a frozen device only
/// comes loose when the process that serves it, further down the stack, is killed.
const UNMOUNT_LIMIT: Duration = Duration::from_secs(20);

/// Removes a resource.
pub(crate) fn remove(resource: &Resource) -> Result<Removal, HostError> {
    match resource {
        Resource::Directory { path } => remove_directory(path),
        Resource::File { path } => ignore_missing("remove", path, fs::remove_file(path)),
        Resource::Mount { target } => unmount_in_time(target),
        Resource::Loop { backing_file } => loop_device::detach_all(backing_file),
        Resource::Process { marker, name } => kill_marked(marker, name).map(counted),
        Resource::SharedMemory { segment } => shared_memory::remove(segment),
        Resource::PostgresqlMemory { device, inode, owner, .. } => {
            shared_memory::remove_postgresql(*device, *inode, *owner)
        }
        Resource::Cgroup { paths } => cgroup::remove(paths),
    }
}

/// Never descends into a mounted file system: its contents may not be ours.
fn remove_directory(path: &Path) -> Result<Removal, HostError> {
    if let Some(target) = mounted_below(path)?.pop() {
        return Err(HostError::AlreadyMounted(target));
    }
    // A process that was just killed, or a server that is ending, may still create files.
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        match fs::remove_dir_all(path) {
            Err(error)
                if error.kind() == io::ErrorKind::DirectoryNotEmpty
                    && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(20));
            }
            outcome => return ignore_missing("remove", path, outcome),
        }
    }
}

fn ignore_missing(
    action: &'static str,
    path: &Path,
    outcome: io::Result<()>,
) -> Result<Removal, HostError> {
    match outcome {
        Ok(()) => Ok(Removal::Removed),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(Removal::WasGone)
        }
        Err(error) => Err(HostError::file(action, path)(error)),
    }
}

/// Unmounts on another thread, which is left behind when the kernel does not answer in time.
fn unmount_in_time(target: &Path) -> Result<Removal, HostError> {
    let (sender, receiver) = mpsc::channel();
    let owned = target.to_path_buf();
    thread::Builder::new()
        .name("unmount".to_string())
        .spawn(move || {
            // The receiver is gone after the timeout; the answer is then dropped.
            let _ = sender.send(mount_point::unmount_if_mounted(&owned));
        })
        .map_err(HostError::system("start a thread"))?;
    receiver.recv_timeout(UNMOUNT_LIMIT).unwrap_or_else(|_| {
        Err(HostError::file("unmount in time", target)(io::ErrorKind::TimedOut))
    })
}
