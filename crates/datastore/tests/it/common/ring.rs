//! The host's setting for FUSE over io_uring, switched for one test at a time and restored by its teardown stack.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use underlay_host::{FUSE_OVER_IO_URING, KernelSetting};

use super::{Site, cannot_emulate};

/// The setting as a test wants it, for as long as this lives.
pub struct Ring {
    /// Restores it; before the lock is given up.
    _site: Site,
    _lock: File,
}

impl Ring {
    /// Switches it on, or off. An error says why it cannot be.
    pub fn switch(on: bool) -> Result<Ring, String> {
        if let Some(reason) = cannot_emulate() {
            return Err(reason.to_string());
        }
        let setting = Path::new(FUSE_OVER_IO_URING);
        if !setting.exists() {
            return Err("this kernel has no FUSE over io_uring".to_string());
        }
        // Tests of one program run side by side, and so do test programs.
        let lock = std::env::temp_dir().join("underlay-test-fuse-io-uring.lock");
        let lock = File::create(lock).map_err(|error| error.to_string())?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
        let site = Site::new();
        let value = if on { "Y" } else { "N" };
        KernelSetting::change(&site.teardown, setting, value).map_err(|error| error.to_string())?;
        Ok(Ring { _site: site, _lock: lock })
    }
}
