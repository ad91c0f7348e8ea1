//! The kernel's request interface for loop devices, and what attaching and detaching both need.
//!
//! It deliberately changes nothing by itself.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

/// How long the device node and the end of a detachment may take to show.
pub(super) const SETTLE_LIMIT: Duration = Duration::from_secs(3);

pub(super) fn control(file: &File, request: libc::c_ulong, argument: usize) -> io::Result<i32> {
    // SAFETY: the requests of this module take no argument, a number, or a pointer to a LoopConfig
    // that lives across the call; its layout is the kernel's. The descriptor is open.
    let outcome = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome) }
}

pub(super) fn device_name(device: &Path) -> &str {
    device.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
