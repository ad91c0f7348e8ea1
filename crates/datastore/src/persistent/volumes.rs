//! The volumes of a running datastore on this host: block devices, mounts, links.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use underlay_host::{FileSystem, LoopDevice, Mount, Teardown, is_in_use, make_file_system};

use super::data_directory::DataDirectory;
use super::description::VolumeDescription;
use crate::emulated::{MOUNT_OPTIONS, SECTOR_BYTES};
use crate::error::DatastoreError;

/// Whether an attached volume is to be formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// It holds nothing yet.
    New,
    /// It holds data.
    Kept,
}

/// Where things are while a datastore runs.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) exported: PathBuf,
    links: PathBuf,
    mounts: PathBuf,
}

/// How long a program that has ended may still hold files: an io_uring closes them a moment after its process's end.
const FREE_LIMIT: Duration = Duration::from_secs(2);

/// A volume with a block device.
pub(super) struct Attached {
    device: LoopDevice,
    mount: Option<Mount>,
    /// The folder that was made to mount it on. It is there only while it is mounted, otherwise data written into it would
    /// lie on the host's disk and be removed with the folder.
    own_folder: Option<PathBuf>,
    link: PathBuf,
}

impl Places {
    pub(super) fn create(
        data_directory: &DataDirectory,
        exported: PathBuf,
    ) -> Result<Places, DatastoreError> {
        let places = Places {
            exported,
            links: data_directory.run().join("dev"),
            mounts: data_directory.run().join("mnt"),
        };
        for directory in [&places.links, &places.mounts] {
            fs::create_dir(directory)
                .map_err(DatastoreError::file("create directory", directory))?;
            crate::path::allow_traversal(directory)?;
        }
        Ok(places)
    }

    /// Gives a volume its block device, without mounting it.
    pub(super) fn attach(
        &self,
        teardown: &Teardown,
        volume: &VolumeDescription,
    ) -> Result<Attached, DatastoreError> {
        let exported = self.exported.join(&volume.name);
        let device = LoopDevice::attach(teardown, &exported, SECTOR_BYTES)?;
        let link = self.links.join(&volume.name);
        // Of a device that did not come off in order.
        match fs::remove_file(&link) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(DatastoreError::file("remove", &link)(error));
            }
            _ => {}
        }
        symlink(device.device(), &link).map_err(DatastoreError::file("create link", &link))?;
        Ok(Attached { device, mount: None, own_folder: None, link })
    }

    /// Formats a new volume that wants it, and mounts it.
    pub(super) fn mount(
        &self,
        teardown: &Teardown,
        volume: &VolumeDescription,
        attached: &mut Attached,
        contents: Contents,
    ) -> Result<(), DatastoreError> {
        let Some(file_system) = volume.file_system else { return Ok(()) };
        let device = attached.device.device();
        if contents == Contents::New {
            make_file_system(device, file_system)?;
        }
        let target = match &volume.mount {
            Some(chosen) => chosen.clone(),
            None => {
                let own = self.own_mount_point(&volume.name)?;
                attached.own_folder.insert(own).clone()
            }
        };
        match mount(teardown, device, &target, file_system) {
            Ok(mount) => attached.mount = Some(mount),
            Err(error) => {
                attached.remove_own_folder();
                return Err(error);
            }
        }
        Ok(())
    }

    fn own_mount_point(&self, name: &str) -> Result<PathBuf, DatastoreError> {
        let target = self.mounts.join(name);
        match fs::create_dir(&target) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(DatastoreError::file("create directory", &target)(error))
            }
            _ => Ok(target),
        }
    }
}

fn mount(
    teardown: &Teardown,
    device: &Path,
    target: &Path,
    file_system: FileSystem,
) -> Result<Mount, DatastoreError> {
    Ok(Mount::make(teardown, device, target, file_system, MOUNT_OPTIONS)?)
}

impl Attached {
    pub(super) fn block_device(&self) -> &Path {
        self.device.device()
    }

    /// The key in `/proc/diskstats`.
    pub(super) fn device_name(&self) -> &str {
        self.device.name()
    }

    pub(super) fn link(&self) -> &Path {
        &self.link
    }

    pub(super) fn mount_point(&self) -> Option<&Path> {
        self.mount.as_ref().map(Mount::target)
    }

    /// Whether it is in use, as a refusal. Nothing is changed.
    pub(super) fn check_free(&self, name: &str) -> Result<(), String> {
        check_free(name, self.mount_point(), self.device.device())
    }

    /// Unmounts it, unless it is in use. The error names what uses it.
    pub(super) fn release(&mut self, name: &str) -> Result<(), String> {
        unmount_free(name, self.mount_point())?;
        if let Some(mount) = self.mount.take() {
            // It is unmounted; this takes it off the teardown stack.
            mount.unmount().map_err(|error| error.to_string())?;
            self.remove_own_folder();
        }
        check_free(name, None, self.device.device())
    }

    fn remove_own_folder(&mut self) {
        if let Some(folder) = self.own_folder.take()
            && let Err(error) = fs::remove_dir(&folder)
        {
            tracing::warn!("the folder {} stays: {error}", folder.display());
        }
    }

    /// Unmounts and detaches it, even if it is in use.
    pub(super) fn detach(mut self) -> Result<(), DatastoreError> {
        if let Some(mount) = self.mount.take() {
            mount.unmount()?;
            self.remove_own_folder();
        }
        self.device.detach()?;
        fs::remove_file(&self.link).map_err(DatastoreError::file("remove", &self.link))
    }
}

/// Refuses while a volume that is mounted there, or its block device, is in use. Changes nothing.
pub(super) fn check_free(name: &str, mount: Option<&Path>, device: &Path) -> Result<(), String> {
    match mount {
        Some(target) => once_free(|| match is_in_use(target) {
            Ok(true) => Err(NotFree::InUse(in_use_on(name, target))),
            Ok(false) => Ok(()),
            Err(error) => Err(NotFree::Failed(error.to_string())),
        }),
        // Opening exclusively fails while it is mounted or another process holds it that way. Whatever else an
        // attempt meets is no user.
        None => once_free(|| {
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device);
            match opened {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    let device = device.display();
                    let text = format!("the block device {device} of volume `{name}` is in use");
                    Err(NotFree::InUse(text))
                }
                _ => Ok(()),
            }
        }),
    }
}

/// Unmounts a volume that is mounted there, unless it is in use.
pub(super) fn unmount_free(name: &str, mount: Option<&Path>) -> Result<(), String> {
    let Some(target) = mount else { return Ok(()) };
    once_free(|| match unmount(target, UnmountFlags::empty()) {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(Errno::BUSY) => Err(NotFree::InUse(in_use_on(name, target))),
        Err(error) => Err(NotFree::Failed(format!("volume `{name}` does not unmount: {error}"))),
    })
}

fn in_use_on(name: &str, target: &Path) -> String {
    let target = target.display();
    format!(
        "volume `{name}` is in use on `{target}`; stop what uses it (`fuser -vm {target}` shows it)"
    )
}

/// Why a volume is not free.
pub(super) enum NotFree {
    /// It is in use, perhaps only for a moment.
    InUse(String),
    /// Waiting would not help.
    Failed(String),
}

/// Tries again as long as a program that has just ended may still hold files.
pub(super) fn once_free(mut attempt: impl FnMut() -> Result<(), NotFree>) -> Result<(), String> {
    let deadline = Instant::now() + FREE_LIMIT;
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(NotFree::InUse(_)) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(NotFree::InUse(text) | NotFree::Failed(text)) => return Err(text),
        }
    }
}

/// What a sparse file takes on the host.
pub(super) fn stored_bytes(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.blocks() * 512)
}

#[cfg(test)]
mod tests {
    use super::{NotFree, once_free};

    #[test]
    fn a_volume_about_to_be_free_is_waited_for() {
        let mut attempts = 0;
        let outcome = once_free(|| {
            attempts += 1;
            if attempts < 3 { Err(NotFree::InUse("in use".to_string())) } else { Ok(()) }
        });
        assert_eq!((outcome, attempts), (Ok(()), 3));
        let outcome = once_free(|| {
            attempts += 1;
            Err(NotFree::Failed("broken".to_string()))
        });
        assert_eq!((outcome, attempts), (Err("broken".to_string()), 4));
    }
}
