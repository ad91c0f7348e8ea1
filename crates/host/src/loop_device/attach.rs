//! Attaching a file: registered first, then configured in one step.
//!
//! It deliberately detaches nothing: the teardown stack does.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use crate::error::HostError;
use crate::teardown::{Resource, Teardown, Ticket};

use super::control::{SETTLE_LIMIT, control, device_name};

const CONTROL: &str = "/dev/loop-control";

// linux/loop.h
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LO_FLAGS_DIRECT_IO: u32 = 16;
// linux/fs.h
const BLKRASET: libc::c_ulong = 0x1262;

/// What the kernel reads ahead at most through a device, in sectors of 512 bytes: 128 KiB, as of any SSD. The kernel
/// never lowers the value of a loop device, and one whose file once was on a rotational disk has 20 times as much. So
/// without this, what a database reads would depend on the number of its loop device.
const READ_AHEAD_SECTORS: usize = (128 << 10) / 512;

/// Others may take the free device between our question and our use of it.
const ATTEMPTS: u32 = 64;

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
struct LoopInfo64 {
    lo_device: u64,
    lo_inode: u64,
    lo_rdevice: u64,
    lo_offset: u64,
    lo_sizelimit: u64,
    lo_number: u32,
    lo_encrypt_type: u32,
    lo_encrypt_key_size: u32,
    lo_flags: u32,
    lo_file_name: [u8; 64],
    lo_crypt_name: [u8; 64],
    lo_encrypt_key: [u8; 32],
    lo_init: [u64; 2],
}

/// `struct loop_config` of linux/loop.h.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

/// An attached loop device. It stays attached when this is dropped: the teardown stack detaches it.
#[derive(Debug)]
pub struct LoopDevice {
    teardown: Teardown,
    ticket: Ticket,
    device: PathBuf,
}

impl LoopDevice {
    /// Attaches a free loop device to the file `backing`, with direct I/O and this logical sector
    /// size in bytes (512 to 4096, a power of two). Direct I/O keeps a second copy of every page out
    /// of the page cache; it is an error when the backing file cannot do it.
    pub fn attach(
        teardown: &Teardown,
        backing: &Path,
        sector_bytes: u32,
    ) -> Result<LoopDevice, HostError> {
        if !geteuid().is_root() {
            return Err(HostError::NeedsRoot { action: "attach a loop device" });
        }
        let backing = backing.canonicalize().map_err(HostError::file("resolve", backing))?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&backing)
            .map_err(HostError::file("open", &backing))?;
        check_length(&file, &backing, sector_bytes)?;
        let ticket = teardown.register(Resource::Loop { backing_file: backing.clone() })?;
        let attached = attach_free(&file, &backing, sector_bytes)
            .and_then(|device| require_direct_io(&device, &backing).map(|()| device));
        match attached {
            Ok(device) => Ok(LoopDevice { teardown: teardown.clone(), ticket, device }),
            Err(error) => {
                // Removes the device too, in case it was attached without direct I/O.
                teardown.release(ticket)?;
                Err(error)
            }
        }
    }

    /// `/dev/loopN`.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// `loopN`, as in `/proc/diskstats` and `/sys/block`.
    pub fn name(&self) -> &str {
        device_name(&self.device)
    }

    /// Detaches it.
    pub fn detach(self) -> Result<(), HostError> {
        self.teardown.release(self.ticket)
    }
}

/// The kernel would cut off the rest silently.
fn check_length(file: &File, backing: &Path, sector_bytes: u32) -> Result<(), HostError> {
    let metadata = file.metadata().map_err(HostError::file("inspect", backing))?;
    let length = metadata.len();
    if metadata.is_file() && (length == 0 || length % u64::from(sector_bytes) != 0) {
        return Err(HostError::BadBackingSize {
            path: backing.to_path_buf(),
            length_bytes: length,
            sector_bytes,
        });
    }
    Ok(())
}

fn attach_free(file: &File, backing: &Path, sector_bytes: u32) -> Result<PathBuf, HostError> {
    let control_path = Path::new(CONTROL);
    let loop_control = OpenOptions::new().read(true).write(true).open(control_path);
    let loop_control = loop_control.map_err(HostError::file("open", control_path))?;
    for _ in 0..ATTEMPTS {
        let number = control(&loop_control, LOOP_CTL_GET_FREE, 0)
            .map_err(HostError::file("ask for a free loop device from", control_path))?;
        let device = PathBuf::from(format!("/dev/loop{number}"));
        let node = open_node(&device)?;
        match configure(&node, file, backing, sector_bytes) {
            Ok(()) => {
                control(&node, BLKRASET, READ_AHEAD_SECTORS)
                    .map_err(HostError::file("set the read-ahead of", &device))?;
                return Ok(device);
            }
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                return Err(HostError::Unavailable {
                    what: "a loop device with direct I/O",
                    reason: format!(
                        "the kernel refuses `{}` with {sector_bytes} byte sectors; Linux 5.8 or \
                         newer is needed",
                        backing.display()
                    ),
                });
            }
            Err(error) => return Err(HostError::file("attach a loop device to", backing)(error)),
        }
    }
    Err(HostError::Unavailable {
        what: "a free loop device",
        reason: format!("other processes took {ATTEMPTS} of them first; try again"),
    })
}

/// The node of a device that was just added appears a moment later.
fn open_node(device: &Path) -> Result<File, HostError> {
    let deadline = Instant::now() + SETTLE_LIMIT;
    loop {
        match OpenOptions::new().read(true).write(true).open(device) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(10));
            }
            outcome => return outcome.map_err(HostError::file("open", device)),
        }
    }
}

fn configure(device: &File, file: &File, backing: &Path, sector_bytes: u32) -> io::Result<()> {
    let mut config = LoopConfig {
        fd: file.as_raw_fd().unsigned_abs(),
        block_size: sector_bytes,
        info: LoopInfo64 {
            lo_device: 0,
            lo_inode: 0,
            lo_rdevice: 0,
            lo_offset: 0,
            lo_sizelimit: 0,
            lo_number: 0,
            lo_encrypt_type: 0,
            lo_encrypt_key_size: 0,
            lo_flags: LO_FLAGS_DIRECT_IO,
            lo_file_name: [0; 64],
            lo_crypt_name: [0; 64],
            lo_encrypt_key: [0; 32],
            lo_init: [0; 2],
        },
        reserved: [0; 8],
    };
    // Only shown by losetup; the last byte stays zero.
    let name = backing.as_os_str().as_encoded_bytes();
    let shown = name.len().min(config.info.lo_file_name.len() - 1);
    config.info.lo_file_name[..shown].copy_from_slice(&name[..shown]);
    control(device, LOOP_CONFIGURE, &raw const config as usize).map(|_| ())
}

fn require_direct_io(device: &Path, backing: &Path) -> Result<(), HostError> {
    let flag = Path::new("/sys/block").join(device_name(device)).join("loop/dio");
    let text = fs::read_to_string(&flag).map_err(HostError::file("read", &flag))?;
    if text.trim() == "1" {
        return Ok(());
    }
    Err(HostError::Unavailable {
        what: "a loop device with direct I/O",
        reason: format!(
            "the file system of `{}` cannot do direct I/O; use a directory on ext4 or xfs",
            backing.display()
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::{LoopConfig, LoopInfo64};

    #[test]
    fn layouts_are_those_of_the_kernel() {
        // From linux/loop.h: 5 x 8 + 4 x 4 + 64 + 64 + 32 + 16, and 4 + 4 + that + 64.
        assert_eq!(size_of::<LoopInfo64>(), 232);
        assert_eq!(offset_of!(LoopInfo64, lo_flags), 52);
        assert_eq!(size_of::<LoopConfig>(), 304);
        assert_eq!(offset_of!(LoopConfig, info), 8);
    }
}
