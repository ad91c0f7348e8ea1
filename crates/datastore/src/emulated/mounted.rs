//! From the exported file of a volume to a mounted file system: loop device, file system, mount.

use std::path::{Path, PathBuf};

use underlay_core::Dilation;
use underlay_host::{FileSystem, LoopDevice, Mount, Teardown, User, make_file_system};

use crate::error::DatastoreError;

/// Sectors of the block device: what flash devices and databases work with.
pub(crate) const SECTOR_BYTES: u32 = 4096;
/// Access times would add writes that no workload asked for.
pub(crate) const MOUNT_OPTIONS: &str = "noatime";
/// How often ext4 writes its journal by default, seconds.
const EXT4_COMMIT_S: u32 = 5;

/// A volume that is attached and mounted.
pub(crate) struct MountedFile {
    device: LoopDevice,
    mount: Mount,
}

/// What it takes to mount one volume, again and again.
#[derive(Clone, Debug)]
pub(crate) struct VolumeSite {
    /// The file in the FUSE mount.
    pub(crate) exported_file: PathBuf,
    /// Where it is to be mounted; an existing directory.
    pub(crate) target: PathBuf,
    pub(crate) file_system: FileSystem,
    pub(crate) dilation: Dilation,
}

impl VolumeSite {
    /// Formats and mounts the volume for the first time.
    pub(crate) fn create(
        &self,
        teardown: &Teardown,
        owner: Option<&User>,
    ) -> Result<MountedFile, DatastoreError> {
        let device = LoopDevice::attach(teardown, &self.exported_file, SECTOR_BYTES)?;
        let formatted = make_file_system(device.device(), self.file_system);
        let mounted = self.mounted(teardown, device, formatted.map_err(Into::into))?;
        if let Some(owner) = owner {
            owner.own(mounted.mount.target())?;
        }
        Ok(mounted)
    }

    /// Mounts the volume again, letting its file system recover.
    pub(crate) fn reopen(&self, teardown: &Teardown) -> Result<MountedFile, DatastoreError> {
        let device = LoopDevice::attach(teardown, &self.exported_file, SECTOR_BYTES)?;
        self.mounted(teardown, device, Ok(()))
    }

    /// Mounts a device that is ready. A device that cannot be mounted is detached at once: it would keep the
    /// export busy, and could not be found any more once that is gone.
    fn mounted(
        &self,
        teardown: &Teardown,
        device: LoopDevice,
        ready: Result<(), DatastoreError>,
    ) -> Result<MountedFile, DatastoreError> {
        match ready.and_then(|()| self.mount(teardown, device.device())) {
            Ok(mount) => Ok(MountedFile { device, mount }),
            Err(error) => {
                if let Err(detaching) = device.detach() {
                    tracing::warn!("a block device stays behind: {detaching}");
                }
                Err(error)
            }
        }
    }

    fn mount(&self, teardown: &Teardown, device: &Path) -> Result<Mount, DatastoreError> {
        let options = self.mount_options();
        Ok(Mount::make(teardown, device, &self.target, self.file_system, &options)?)
    }

    /// The journal of ext4 is written every five seconds: under dilation of design time. XFS has no such option.
    fn mount_options(&self) -> String {
        match self.file_system {
            FileSystem::Ext4 if self.dilation.is_dilated() => {
                format!("{MOUNT_OPTIONS},commit={}", EXT4_COMMIT_S * self.dilation.factor())
            }
            _ => MOUNT_OPTIONS.to_string(),
        }
    }
}

impl MountedFile {
    /// The key in `/proc/diskstats`.
    pub(crate) fn block_device(&self) -> &str {
        self.device.name()
    }

    pub(crate) fn close(self) -> Result<(), DatastoreError> {
        self.mount.unmount()?;
        self.device.detach()?;
        Ok(())
    }
}
