//! The one queue of a ublk device: its shared memory, its buffers, and its io_uring.
//!
//! The thread that fetches requests must be the one that commits their results: the driver ties a queue to it. So all of
//! this is used by the serving thread alone, which looks at the ring's memory as often as it likes without asking the kernel.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use io_uring::{IoUring, opcode, types};
use tracing::{info, warn};

use super::protocol::{Arrival, DESCRIPTOR_BYTES, IoCommand, Tags, UblkRequest};
use crate::server::mapping::Mapping;

/// A queue that requests come from.
pub(crate) struct UblkQueue {
    /// The volume that it serves.
    pub(crate) volume: usize,
    device: File,
    ring: IoUring,
    tags: Tags,
    descriptors: Mapping,
    buffers: Arc<Buffers>,
    /// Commands that found no room in the ring yet.
    waiting: Vec<IoCommand>,
}

/// One buffer per tag.
pub(crate) struct Buffers {
    memory: Mapping,
    tags: u16,
    each_bytes: usize,
}

impl UblkQueue {
    /// Opens the character device of a device that was added with this depth and largest request, and asks for requests on
    /// every tag. `bell` becomes readable whenever one arrives.
    pub(crate) fn open(
        device: &Path,
        volume: usize,
        depth: u16,
        request_bytes_max: u32,
        bell: &OwnedFd,
    ) -> io::Result<UblkQueue> {
        let file = OpenOptions::new().read(true).write(true).open(device)?;
        let length = (usize::from(depth) * DESCRIPTOR_BYTES).next_multiple_of(page_bytes());
        let descriptors = Mapping::shared(&file, length)?;
        let each_bytes = request_bytes_max as usize;
        let memory = Mapping::anonymous(each_bytes * usize::from(depth))?;
        let buffers = Arc::new(Buffers { memory, tags: depth, each_bytes });
        let ring = IoUring::new(u32::from(depth).next_power_of_two())?;
        ring.submitter().register_eventfd(bell.as_raw_fd())?;
        let mut tags = Tags::new(depth);
        let waiting = tags.fetch_all(|tag| buffers.address(tag));
        let mut queue =
            UblkQueue { volume, device: file, ring, tags, descriptors, buffers, waiting };
        queue.submit()?;
        Ok(queue)
    }

    /// Appends the requests that have arrived, with their tags.
    pub(crate) fn arrived(&mut self, requests: &mut Vec<(u16, UblkRequest)>) {
        let UblkQueue { ring, tags, descriptors, .. } = self;
        for completion in ring.completion() {
            // The user data of each command is its tag.
            let tag = completion.user_data() as u16;
            match tags.completed(tag, completion.result()) {
                Arrival::Request => {
                    let descriptor = descriptor(descriptors, tag);
                    requests.push((tag, UblkRequest::decode(&descriptor)));
                }
                Arrival::Ended => {}
                Arrival::Refused(errno) => {
                    let error = io::Error::from_raw_os_error(errno);
                    warn!("the ublk driver refuses tag {tag}: {error}");
                }
            }
        }
    }

    /// The buffers, to be looked at while the queue is used otherwise.
    pub(crate) fn buffers(&self) -> Arc<Buffers> {
        Arc::clone(&self.buffers)
    }

    /// Ends the request under `tag` with so many bytes done, or a negative errno. It leaves with the next
    /// [`UblkQueue::submit`].
    pub(crate) fn answer(&mut self, tag: u16, result: i32) {
        let buffer = self.buffers.address(tag);
        self.waiting.extend(self.tags.served(tag, result, buffer));
    }

    /// Hands what waits to the driver.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            let mut submission = self.ring.submission();
            while let Some(command) = self.waiting.last() {
                let entry =
                    opcode::UringCmd16::new(types::Fd(self.device.as_raw_fd()), command.code)
                        .cmd(command.encode())
                        .build()
                        .user_data(u64::from(command.tag));
                // SAFETY: the entry refers to the open device and to a buffer of this queue, both of which live as long as
                // the ring does.
                if unsafe { submission.push(&entry) }.is_err() {
                    break;
                }
                self.waiting.pop();
            }
            drop(submission);
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Whether the device has gone, so that nothing more comes.
    pub(crate) fn has_ended(&self) -> bool {
        self.tags.have_ended()
    }
}

impl Drop for UblkQueue {
    fn drop(&mut self) {
        info!(volume = self.volume, "a ublk queue ends");
    }
}

impl Buffers {
    fn address(&self, tag: u16) -> u64 {
        let offset = usize::from(tag) * self.each_bytes;
        self.memory.at(offset..offset + self.each_bytes) as u64
    }

    /// The data that came with a write of so many bytes under `tag`; `None` when the request is longer than was agreed.
    pub(crate) fn written(&self, tag: u16, length: usize) -> Option<&[u8]> {
        let start = self.place(tag, length)?;
        // SAFETY: the range lies within the mapping, which lives as long as `self`. The driver has filled it before it
        // announced the request, and touches it again only after the request was answered, which happens later on the
        // thread that holds this slice.
        Some(unsafe { std::slice::from_raw_parts(start, length) })
    }

    /// Puts the data of a read into the buffer of `tag`, from where the driver takes it when the request is answered. Returns
    /// whether it fits.
    pub(crate) fn fill(&self, tag: u16, data: &[u8]) -> bool {
        let Some(start) = self.place(tag, data.len()) else { return false };
        // SAFETY: the range lies within the mapping; a read is being served under this tag, so that neither the driver nor
        // anybody else looks at the buffer; `data` is memory of ours elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), start, data.len()) };
        true
    }

    fn place(&self, tag: u16, length: usize) -> Option<*mut u8> {
        let offset = usize::from(tag) * self.each_bytes;
        let fits = length <= self.each_bytes && tag < self.tags;
        fits.then(|| self.memory.at(offset..offset + self.each_bytes))
    }
}

/// The request under `tag`, as the driver shows it.
fn descriptor(descriptors: &Mapping, tag: u16) -> [u8; DESCRIPTOR_BYTES] {
    let offset = usize::from(tag) * DESCRIPTOR_BYTES;
    let place = descriptors.at(offset..offset + DESCRIPTOR_BYTES);
    // SAFETY: the range lies within the mapping. The driver wrote it before it announced the request and leaves it
    // alone until the request is answered; volatile, because the compiler sees nobody write it.
    unsafe { place.cast::<[u8; DESCRIPTOR_BYTES]>().read_volatile() }
}

fn page_bytes() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::Buffers;
    use crate::server::mapping::Mapping;

    #[test]
    fn each_tag_has_a_buffer_of_its_own() {
        let memory = Mapping::anonymous(3 * 4096).unwrap();
        let buffers = Buffers { memory, tags: 3, each_bytes: 4096 };
        for tag in 0..3u16 {
            assert!(buffers.fill(tag, &[tag as u8 + 1; 4096]));
        }
        for tag in 0..3u16 {
            assert_eq!(buffers.written(tag, 4096), Some(&[tag as u8 + 1; 4096][..]));
        }
        assert_eq!(buffers.address(2) - buffers.address(0), 8192);
        // Longer than what was agreed, and beyond the last one.
        assert!(!buffers.fill(0, &[0; 4097]) && buffers.written(0, 8192).is_none());
        assert!(buffers.written(3, 1).is_none());
    }
}
