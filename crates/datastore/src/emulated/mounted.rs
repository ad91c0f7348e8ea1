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
        make_file_system(device.device(), self.file_system)?;
        let mount = self.mount(teardown, device.device())?;
        if let Some(owner) = owner {
            owner.own(mount.target())?;
        }
        Ok(MountedFile { device, mount })
    }

    /// Mounts the volume again, letting its file system recover.
    pub(crate) fn reopen(&self, teardown: &Teardown) -> Result<MountedFile, DatastoreError> {
        let device = LoopDevice::attach(teardown, &self.exported_file, SECTOR_BYTES)?;
        let mount = self.mount(teardown, device.device())?;
        Ok(MountedFile { device, mount })
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
