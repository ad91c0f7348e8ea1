//! What a killed supervisor leaves behind: a server, block devices and mounts without supervision, which programs may still
//! use.
//!
//! They are taken down as by a running supervisor: not while a volume is in use, and through the supervisor's own teardown
//! stack. The caller holds the datastore's lock.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use underlay_host::{Orphan, Resource, StateDir, is_mount_point, mounted_below};

use super::client::Forced;
use super::data_directory::DataDirectory;
use super::description::VolumeDescription;
use super::volumes::{check_free, unmount_free};
use crate::error::DatastoreError;

/// Whether a server of the datastore lives, so that volumes are served.
pub(super) fn is_served(data_directory: &DataDirectory) -> bool {
    UnixStream::connect(data_directory.control_socket()).is_ok()
}

/// Takes down what is left, if anything is. Unless forced, refused while volumes are in use; what a dead server leaves can be used by
/// nobody. The data stays, and is on the host's disk afterwards.
pub(super) fn take_down(
    data_directory: &DataDirectory,
    forced: Forced,
) -> Result<(), DatastoreError> {
    let run = data_directory.run();
    if !run.exists() {
        return Ok(());
    }
    let state = StateDir::open()?;
    match Orphan::find(&state, &Resource::Directory { path: run.clone() })? {
        Some(orphan) => {
            if forced == Forced::No && is_served(data_directory) {
                release_all(data_directory, &orphan)?;
            }
            let failed = orphan.unwind().failed;
            if !failed.is_empty() {
                let directory = data_directory.directory().to_path_buf();
                return Err(DatastoreError::NotTakenDown { directory, failed });
            }
        }
        // Nothing may be removed of which is not known what it is.
        None if is_served(data_directory) || !mounted_below(&run)?.is_empty() => {
            return Err(DatastoreError::NoOrphan {
                directory: data_directory.directory().to_path_buf(),
                state: state.root().to_path_buf(),
            });
        }
        None => {}
    }
    match fs::remove_dir_all(&run) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(DatastoreError::file("remove", &run)(error));
        }
        _ => {}
    }
    data_directory.synchronise()
}

/// Unmounts all volumes, unless one is in use: then all stay as they are.
fn release_all(data_directory: &DataDirectory, orphan: &Orphan) -> Result<(), DatastoreError> {
    let description = data_directory.description()?;
    let mut left = Vec::new();
    for volume in &description.volumes {
        // Without a block device it is only reached over NBD, whose clients no supervisor waits for.
        if let Ok(device) = fs::read_link(data_directory.device_link(&volume.name)) {
            left.push((volume.name.as_str(), mount_of(data_directory, volume, orphan)?, device));
        }
    }
    let all = |step: fn(&str, Option<&Path>, &Path) -> Result<(), String>| {
        let mut each = left.iter();
        each.try_for_each(|(name, mount, device)| step(name, mount.as_deref(), device))
            .map_err(DatastoreError::SupervisorRefused)
    };
    all(check_free)?;
    all(|name, mount, _| unmount_free(name, mount))?;
    // Who has it mounted elsewhere, as another mount namespace may, is only seen now.
    all(|name, _, device| check_free(name, None, device))
}

/// Where the supervisor had mounted a volume, if it still is.
fn mount_of(
    data_directory: &DataDirectory,
    volume: &VolumeDescription,
    orphan: &Orphan,
) -> Result<Option<PathBuf>, DatastoreError> {
    if volume.file_system.is_none() {
        return Ok(None);
    }
    let target = volume.mount.clone().unwrap_or_else(|| data_directory.mount_point(&volume.name));
    let Ok(target) = target.canonicalize() else { return Ok(None) };
    let ours = Resource::Mount { target: target.clone() };
    let is_ours = orphan.resources().any(|resource| *resource == ours);
    Ok((is_ours && is_mount_point(&target)?).then_some(target))
}
