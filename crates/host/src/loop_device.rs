//! Loop devices: a file as a block device.

use std::path::{Path, PathBuf};

use crate::error::HostError;
use crate::teardown::Teardown;

/// An attached loop device with direct I/O.
#[derive(Debug)]
pub struct LoopDevice {
    device: PathBuf,
}

impl LoopDevice {
    /// Attaches a free loop device to `backing`, with direct I/O and this logical sector size in
    /// bytes (512 or 4096).
    pub fn attach(
        _teardown: &Teardown,
        _backing: &Path,
        _sector_bytes: u32,
    ) -> Result<LoopDevice, HostError> {
        Err(HostError::NeedsRoot { action: "attach a loop device" })
    }

    /// `/dev/loopN`.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// `loopN`, as in `/proc/diskstats`.
    pub fn name(&self) -> &str {
        self.device.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Detaches it.
    pub fn detach(self) -> Result<(), HostError> {
        Ok(())
    }
}
