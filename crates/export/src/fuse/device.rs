//! The connection to the kernel's FUSE: mounting, receiving requests, sending answers.

use std::ffi::CString;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use super::protocol::answer_header;

/// An open `/dev/fuse` with a file system mounted on it.
pub struct FuseDevice {
    descriptor: OwnedFd,
}

/// What receiving yields.
pub(crate) enum Received {
    /// A request of so many bytes.
    Request(usize),
    /// None is waiting.
    Nothing,
    /// The file system was unmounted.
    Unmounted,
}

impl FuseDevice {
    /// Mounts on an existing directory. Only root may; requests arrive from then on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn mount(target: &Path) -> io::Result<FuseDevice> {
        // Non-blocking: the one thread that reads also has deadlines to keep.
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let descriptor = rustix::fs::open("/dev/fuse", flags, Mode::empty())?;
        let options = format!(
            "fd={},rootmode=40000,user_id={},group_id={}",
            descriptor.as_raw_fd(),
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        let options = CString::new(options).expect("digits and commas");
        let flags =
            MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::NOATIME;
        mount("underlay", target, "fuse.underlay", flags, options.as_c_str())?;
        Ok(FuseDevice { descriptor })
    }

    /// Takes the next request, if one is waiting.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            return match rustix::io::read(&self.descriptor, &mut *buffer) {
                Ok(length) => Ok(Received::Request(length)),
                Err(Errno::AGAIN) => Ok(Received::Nothing),
                Err(Errno::NODEV) => Ok(Received::Unmounted),
                // Interrupted before it was ours: the kernel has forgotten the request.
                Err(Errno::INTR | Errno::NOENT) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Answers a request with success.
    pub(crate) fn answer(&self, unique: u64, body: &[u8]) {
        debug_assert_ne!(unique, 0, "the kernel takes an answer to 0 for a notification");
        let header = answer_header(unique, 0, body.len());
        self.send(&[IoSlice::new(&header), IoSlice::new(body)]);
    }

    /// Answers a request with an error.
    pub(crate) fn refuse(&self, unique: u64, errno: Errno) {
        debug_assert_ne!(unique, 0, "the kernel takes an answer to 0 for a notification");
        debug_assert!(errno.raw_os_error() > 0, "0 would be success");
        let header = answer_header(unique, errno.raw_os_error(), 0);
        self.send(&[IoSlice::new(&header)]);
    }

    /// Sends an answer, header first; any thread may.
    ///
    /// One that the kernel does not want any more (client killed, unmounted) is not our problem; any other refusal would leave
    /// a client waiting for ever, so it must be seen.
    pub(crate) fn send(&self, parts: &[IoSlice<'_>]) {
        match rustix::io::writev(&self.descriptor, parts) {
            Ok(_) | Err(Errno::NOENT | Errno::NODEV) => {}
            Err(error) => tracing::error!("the kernel did not take an answer: {error}"),
        }
    }
}

impl AsFd for FuseDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
