//! One ublk device: added and described here, served by somebody else, then started; removed in any case.
//!
//! ```text
//! register -> ADD_DEV -> SET_PARAMS -> (its server opens /dev/ublkcN and fetches requests) -> START_DEV -> /dev/ublkbN
//! ```
//!
//! The number of a device may be given to another one as soon as it is free. A random token that the driver keeps for us
//! tells whether the device of that number is still ours.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::process::geteuid;

use super::protocol::{
    ControlCommand, DeviceInfo, INFO_BYTES, Operation, PARAMETER_BYTES, Parameters,
};
use crate::error::HostError;
use crate::teardown::{Removal, Resource, Teardown, Ticket};

const CONTROL: &str = "/dev/ublk-control";
/// Why there may be no ublk here, and what would help.
pub const MISSING: &str = "there is no /dev/ublk-control; load the driver (modprobe ublk_drv) on a kernel from 6.4 on that was built \
                      with CONFIG_BLK_DEV_UBLK, or leave the block devices to FUSE and loop, which need neither";
/// Numbers that are tried for a new device.
const DEVICES_MAX: u32 = 64;
/// How long device nodes may take to show.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

/// What a new device is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UblkSpec {
    /// Its size, a multiple of the sectors.
    pub capacity_bytes: u64,
    /// Sectors of the block device: 512 to 4096, a power of two.
    pub sector_bytes: u32,
    /// Requests under way, 1 to 4096.
    pub depth: u16,
    /// The largest request.
    pub request_bytes_max: u32,
}

/// A device that was added. It stays when this is dropped: the teardown stack removes it.
#[derive(Debug)]
pub struct UblkDevice {
    teardown: Teardown,
    ticket: Ticket,
    number: u32,
}

/// Whether the kernel of this host has the driver.
pub fn is_available() -> bool {
    Path::new(CONTROL).exists()
}

impl UblkDevice {
    /// Adds a device that nobody serves yet.
    ///
    /// # Errors
    /// With what to do about it, where the kernel has no such driver.
    pub fn add(teardown: &Teardown, spec: &UblkSpec) -> Result<UblkDevice, HostError> {
        let mut control = Control::open()?;
        let token = RandomState::new().hash_one(std::process::id());
        for number in 0..DEVICES_MAX {
            if character_device(number).exists() {
                continue;
            }
            let ticket = teardown.register(Resource::Ublk { number, token })?;
            match control.add(number, token, spec) {
                Ok(()) => {
                    let device = UblkDevice { teardown: teardown.clone(), ticket, number };
                    return match control.describe(number, spec) {
                        Ok(()) => Ok(device),
                        Err(error) => {
                            device.remove()?;
                            Err(failed(Operation::SetParameters)(error))
                        }
                    };
                }
                // Somebody else was faster.
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                    teardown.release(ticket)?;
                }
                Err(error) => {
                    teardown.release(ticket)?;
                    return Err(failed(Operation::Add)(error));
                }
            }
        }
        Err(HostError::Unavailable {
            what: "another ublk device",
            reason: format!("there are {DEVICES_MAX} already; remove some"),
        })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Where its server fetches requests.
    pub fn character_device(&self) -> PathBuf {
        character_device(self.number)
    }

    /// The block device, once it is started.
    pub fn device(&self) -> PathBuf {
        PathBuf::from(format!("/dev/ublkb{}", self.number))
    }

    /// `ublkbN`, as in `/proc/diskstats` and `/sys/block`.
    pub fn name(&self) -> String {
        format!("ublkb{}", self.number)
    }

    /// Makes it a block device. The process `server` must be fetching requests on all its queue's places, and go on while
    /// this waits: the kernel reads the partition table.
    pub fn start(&self, server: u32) -> Result<(), HostError> {
        Control::open()?
            .run(Operation::Start, self.number, 0, 0, u64::from(server))
            .map_err(failed(Operation::Start))?;
        wait_for(&self.device())
    }

    /// Stops and removes it.
    pub fn remove(self) -> Result<(), HostError> {
        self.teardown.release(self.ticket)
    }
}

/// Removes the device of that number, if it still is the one with that token.
pub(crate) fn remove(number: u32, token: u64) -> Result<Removal, HostError> {
    if !is_available() || !character_device(number).exists() {
        return Ok(Removal::WasGone);
    }
    let mut control = Control::open()?;
    match control.information(number) {
        Ok(info) if info.token == token => {}
        Ok(_) => return Ok(Removal::WasGone),
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(Removal::WasGone),
        Err(error) => return Err(failed(Operation::Describe)(error)),
    }
    for operation in [Operation::Stop, Operation::Delete] {
        match control.run(operation, number, 0, 0, 0) {
            Ok(()) => {}
            // It was never started, or its server's end has stopped it.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EBUSY))
                    && operation == Operation::Stop => {}
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => return Err(failed(operation)(error)),
        }
    }
    Ok(Removal::Removed)
}

fn character_device(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkc{number}"))
}

fn wait_for(path: &Path) -> Result<(), HostError> {
    let deadline = Instant::now() + SETTLE_LIMIT;
    while fs::metadata(path).is_err() {
        if Instant::now() >= deadline {
            let late = io::Error::new(io::ErrorKind::TimedOut, "it did not appear");
            return Err(HostError::file("open", path)(late));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn failed(operation: Operation) -> impl FnOnce(io::Error) -> HostError {
    move |source| HostError::System { action: phrase(operation), source }
}

fn phrase(operation: Operation) -> &'static str {
    match operation {
        Operation::Describe => "look at a ublk device",
        Operation::Add => "add a ublk device (Linux 6.4 or later?)",
        Operation::Delete => "remove a ublk device",
        Operation::Start => "start a ublk device",
        Operation::Stop => "stop a ublk device",
        Operation::SetParameters => "describe a ublk device to the kernel",
    }
}

/// The control device. Its commands are io_uring commands of 80 bytes.
struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
}

impl Control {
    fn open() -> Result<Control, HostError> {
        if !geteuid().is_root() {
            return Err(HostError::NeedsRoot { action: "make a ublk device" });
        }
        let path = Path::new(CONTROL);
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let reason = MISSING.to_string();
                return Err(HostError::Unavailable { what: "ublk", reason });
            }
            opened => opened.map_err(HostError::file("open", path))?,
        };
        let ring = IoUring::builder().build(4).map_err(HostError::system("set up an io_uring"))?;
        Ok(Control { file, ring })
    }

    fn add(&mut self, number: u32, token: u64, spec: &UblkSpec) -> io::Result<()> {
        let info = DeviceInfo {
            device: number,
            queues: 1,
            depth: spec.depth,
            io_buffer_bytes: spec.request_bytes_max,
            token,
        };
        let mut bytes = info.encode();
        self.run(Operation::Add, number, bytes.as_mut_ptr() as u64, INFO_BYTES as u16, 0)?;
        let added = DeviceInfo::decode(&bytes);
        if added.depth == spec.depth && added.io_buffer_bytes >= spec.request_bytes_max {
            return Ok(());
        }
        Err(io::Error::other(format!("the driver offers only {added:?}")))
    }

    fn describe(&mut self, number: u32, spec: &UblkSpec) -> io::Result<()> {
        let parameters = Parameters {
            capacity_bytes: spec.capacity_bytes,
            sector_bytes: spec.sector_bytes,
            request_bytes_max: spec.request_bytes_max,
        };
        let mut bytes = parameters.encode();
        let (address, length) = (bytes.as_mut_ptr() as u64, PARAMETER_BYTES as u16);
        self.run(Operation::SetParameters, number, address, length, 0)
    }

    fn information(&mut self, number: u32) -> io::Result<DeviceInfo> {
        let mut bytes = [0u8; INFO_BYTES];
        let (address, length) = (bytes.as_mut_ptr() as u64, INFO_BYTES as u16);
        self.run(Operation::Describe, number, address, length, 0)?;
        Ok(DeviceInfo::decode(&bytes))
    }

    /// Has a command carried out and waits for it. The buffer at `address` must live until then, which it does because
    /// this waits.
    fn run(
        &mut self,
        operation: Operation,
        device: u32,
        address: u64,
        length: u16,
        data: u64,
    ) -> io::Result<()> {
        let command = ControlCommand { device, address, length, data };
        let entry = opcode::UringCmd80::new(types::Fd(self.file.as_raw_fd()), operation.code())
            .cmd(command.encode())
            .build();
        // SAFETY: the entry refers to the open control device and to a buffer of the caller, both of which live until the
        // completion below has been taken.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        self.ring.submit_and_wait(1)?;
        let completion = self.ring.completion().next();
        let result = completion.ok_or_else(|| io::Error::other("no answer"))?.result();
        if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{MISSING, UblkDevice, UblkSpec, is_available, remove};
    use crate::teardown::Removal;
    use crate::{HostError, StateDir, Teardown};

    #[test]
    fn where_the_kernel_has_no_driver_the_remedy_is_named_and_nothing_is_left() {
        if is_available() {
            crate::skip!("this kernel has ublk");
        }
        if !rustix::process::geteuid().is_root() {
            crate::skip!("needs root");
        }
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::at(folder.path().join("state")).unwrap();
        let teardown = Teardown::create(&state, "ublk test").unwrap();
        let spec = UblkSpec {
            capacity_bytes: 1 << 20,
            sector_bytes: 4096,
            depth: 32,
            request_bytes_max: 1 << 20,
        };
        match UblkDevice::add(&teardown, &spec) {
            Err(HostError::Unavailable { what: "ublk", reason }) => assert_eq!(reason, MISSING),
            other => panic!("{other:?}"),
        }
        assert_eq!(remove(0, 7).unwrap(), Removal::WasGone);
        assert!(teardown.unwind().is_empty());
    }
}
