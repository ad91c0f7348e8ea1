//! The volumes of a running datastore on this host: block devices, mounts, links.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use underlay_host::{
    FileSystem, LoopDevice, Mount, Teardown, UblkDevice, UblkSpec, make_file_system,
};

use super::description::{BlockDeviceKind, VolumeDescription};
use super::home::Home;
use crate::control::Command;
use crate::emulated::server_process::ServerProcess;
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

/// Requests under way through a ublk device, and the largest of them: 32 MiB of buffers, of which only what is used takes
/// memory.
const UBLK_DEPTH: u16 = 64;
const UBLK_REQUEST_BYTES: u32 = 512 << 10;

/// A block device of a volume.
enum BlockDevice {
    Loop(LoopDevice),
    Ublk { device: UblkDevice, path: PathBuf },
}

/// A volume with a block device.
pub(super) struct Attached {
    device: BlockDevice,
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
        server: &mut ServerProcess,
        volume: &VolumeDescription,
    ) -> Result<Attached, DatastoreError> {
        let device = match volume.block_device {
            BlockDeviceKind::Loop => {
                let exported = self.exported.join(&volume.name);
                BlockDevice::Loop(LoopDevice::attach(teardown, &exported, SECTOR_BYTES)?)
            }
            BlockDeviceKind::Ublk => ublk_device(teardown, server, volume)?,
        };
        let link = self.links.join(&volume.name);
        symlink(device.path(), &link).map_err(DatastoreError::file("create link", &link))?;
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
        let device = attached.device.path();
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

/// Adds a ublk device, has the server fetch its requests, and starts it.
fn ublk_device(
    teardown: &Teardown,
    server: &mut ServerProcess,
    volume: &VolumeDescription,
) -> Result<BlockDevice, DatastoreError> {
    let spec = UblkSpec {
        capacity_bytes: volume.capacity_bytes,
        sector_bytes: SECTOR_BYTES,
        depth: UBLK_DEPTH,
        request_bytes_max: UBLK_REQUEST_BYTES,
    };
    let device = UblkDevice::add(teardown, &spec)?;
    let served = server
        .done(&Command::ServeUblk {
            name: volume.name.clone(),
            device: device.character_device(),
            depth: UBLK_DEPTH,
            request_bytes_max: UBLK_REQUEST_BYTES,
        })
        .and_then(|()| Ok(device.start(server.pid())?));
    match served {
        Ok(()) => Ok(BlockDevice::Ublk { path: device.device(), device }),
        Err(error) => {
            device.remove()?;
            Err(error)
        }
    }
}

impl BlockDevice {
    fn path(&self) -> &Path {
        match self {
            BlockDevice::Loop(device) => device.device(),
            BlockDevice::Ublk { path, .. } => path,
        }
    }

    /// As in `/proc/diskstats`.
    fn name(&self) -> &str {
        match self {
            BlockDevice::Loop(device) => device.name(),
            BlockDevice::Ublk { path, .. } => {
                path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
            }
        }
    }

    fn detach(self) -> Result<(), DatastoreError> {
        match self {
            BlockDevice::Loop(device) => device.detach()?,
            BlockDevice::Ublk { device, .. } => device.remove()?,
        }
        Ok(())
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
        self.device.path()
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
        let device = self.device.path();
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
