//! The volumes of a running datastore on this host: block devices, mounts, links.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use underlay_host::{FileSystem, LoopDevice, Mount, Teardown, make_file_system};

use super::description::VolumeDescription;
use super::home::Home;
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

/// A volume with a block device.
pub(super) struct Attached {
    device: LoopDevice,
    mount: Option<Mount>,
    link: PathBuf,
}

impl Places {
    pub(super) fn create(home: &Home, exported: PathBuf) -> Result<Places, DatastoreError> {
        let places =
            Places { exported, links: home.run().join("dev"), mounts: home.run().join("mnt") };
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
        let device = LoopDevice::attach(teardown, &self.exported.join(&volume.name), SECTOR_BYTES)?;
        let link = self.links.join(&volume.name);
        symlink(device.device(), &link).map_err(DatastoreError::file("create link", &link))?;
        Ok(Attached { device, mount: None, link })
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
            None => self.own_mount_point(&volume.name)?,
        };
        attached.mount = Some(mount(teardown, device, &target, file_system)?);
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

    /// Unmounts it, unless somebody uses it. What uses it is named in the error.
    pub(super) fn release(&mut self, name: &str) -> Result<(), String> {
        if let Some(mount) = &self.mount {
            match unmount(mount.target(), UnmountFlags::empty()) {
                Ok(()) | Err(Errno::INVAL) => {}
                Err(Errno::BUSY) => {
                    return Err(format!(
                        "volume `{name}` is in use on `{}`; stop what uses it (`fuser -vm {}` shows it)",
                        mount.target().display(),
                        mount.target().display(),
                    ));
                }
                Err(error) => return Err(format!("volume `{name}` does not unmount: {error}")),
            }
        }
        if let Some(mount) = self.mount.take() {
            // It is unmounted; this takes it off the teardown stack.
            mount.unmount().map_err(|error| error.to_string())?;
        }
        // Opening exclusively fails while somebody else has it mounted or holds it that way.
        let device = self.device.device();
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device);
        match opened {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                Err(format!("the block device {} of volume `{name}` is in use", device.display()))
            }
            _ => Ok(()),
        }
    }

    /// Unmounts and detaches it, whoever uses it.
    pub(super) fn detach(self) -> Result<(), DatastoreError> {
        if let Some(mount) = self.mount {
            mount.unmount()?;
        }
        self.device.detach()?;
        fs::remove_file(&self.link).map_err(DatastoreError::file("remove", &self.link))
    }
}

/// What a sparse file takes on the host.
pub(super) fn stored_bytes(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.blocks() * 512)
}
