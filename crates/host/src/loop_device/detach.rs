//! Loop devices by their backing file: finding and detaching them.
//!
//! It deliberately knows no teardown stack: the stack asks for it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::control::{SETTLE_LIMIT, control, device_name};
use crate::error::HostError;
use crate::facts::line;
use crate::teardown::{Removal, counted};

// linux/loop.h
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;

/// The loop devices (`/dev/loopN`) whose backing file is exactly this path.
pub fn loop_devices(backing: &Path) -> Result<Vec<PathBuf>, HostError> {
    let dir = Path::new("/sys/block");
    let entries = fs::read_dir(dir).map_err(HostError::file("list", dir))?;
    let mut devices: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| serves(&entry.path(), backing))
        .map(|entry| Path::new("/dev").join(entry.file_name()))
        .collect();
    devices.sort();
    Ok(devices)
}

/// Detaches the loop devices of a backing file and waits until they are free.
pub(crate) fn detach_all(backing: &Path) -> Result<Removal, HostError> {
    let devices = loop_devices(backing)?;
    for device in &devices {
        detach(device, backing)?;
    }
    Ok(counted(devices.len()))
}

fn detach(device: &Path, backing: &Path) -> Result<(), HostError> {
    let block = Path::new("/sys/block").join(device_name(device));
    let deadline = Instant::now() + SETTLE_LIMIT;
    while serves(&block, backing) {
        {
            // While a process has it open the kernel detaches it at the last close, so our own
            // descriptor must be closed before we look again.
            let file = File::open(device).map_err(HostError::file("open", device))?;
            match control(&file, LOOP_CLR_FD, 0) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {}
                Err(error) => return Err(HostError::file("detach", device)(error)),
            }
        }
        if !serves(&block, backing) {
            break;
        }
        if Instant::now() >= deadline {
            // Some other program has a file on it open. The kernel detaches it when that is closed.
            if line(&block.join("loop/autoclear").to_string_lossy()).as_deref() == Some("1") {
                tracing::warn!(device = %device.display(), "still in use, detaches at last close");
                return Ok(());
            }
            let busy = io::Error::from_raw_os_error(libc::EBUSY);
            return Err(HostError::file("detach (it is still in use)", device)(busy));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The kernel appends ` (deleted)` to the name of an unlinked file.
fn serves(block: &Path, backing: &Path) -> bool {
    fs::read_to_string(block.join("loop/backing_file")).is_ok_and(|text| {
        let text = text.trim_end_matches('\n');
        let name = text.strip_suffix(" (deleted)").unwrap_or(text);
        Path::new(name) == backing || Path::new(text) == backing
    })
}
