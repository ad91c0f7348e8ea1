//! One volume's way from the exported file to a mounted file system: loop device, file system, mount.

use std::path::{Path, PathBuf};

use underlay_host::{FileSystem, LoopDevice, Mount, Teardown, User, make_file_system};

use crate::error::DatastoreError;

/// Sectors of the block device: what flash devices and databases work with.
pub(crate) const SECTOR_BYTES: u32 = 4096;
/// Access times would add writes that no workload asked for.
pub(crate) const MOUNT_OPTIONS: &str = "noatime";

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
        Ok(Mount::make(teardown, device, &self.target, self.file_system, MOUNT_OPTIONS)?)
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
