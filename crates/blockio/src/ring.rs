//! A ring of requests to one target: submit, wait, take what completed.
//!
//! The ring owns the buffers, one per place in the queue, and lends none of them while requests are in flight, so
//! that the kernel never writes into memory that is used otherwise. On drop it waits for what is in flight:
//! the kernel may write into the buffers until then.

use crate::buffer::Buffers;
use crate::error::BlockIoError;
use crate::target::Target;
use io_uring::{IoUring, opcode, types};
use rand_pcg::Pcg64;
use std::io;
use underlay_workload::block::{Access, BlockRequest};

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    /// Its place in the queue.
    pub(crate) slot: u32,
}

/// Requests to one target.
pub(crate) struct Ring<'t> {
    target: &'t Target,
    ring: IoUring,
    buffers: Buffers,
    /// What each place in the queue asked for.
    asked: Vec<(u64, u32)>,
    in_flight: u32,
}

impl<'t> Ring<'t> {
    /// A ring with `depth` places for requests of up to `bytes_max` bytes.
    pub(crate) fn new(
        target: &'t Target,
        depth: u32,
        bytes_max: u32,
        random: &mut Pcg64,
    ) -> Result<Ring<'t>, BlockIoError> {
        let ring = IoUring::new(depth.next_power_of_two().max(2))
            .map_err(|source| BlockIoError::NoRing { source })?;
        let buffers = Buffers::new(depth, bytes_max, random)?;
        Ok(Ring { target, ring, buffers, asked: vec![(0, 0); depth as usize], in_flight: 0 })
    }

    /// Puts a request into a place of the queue that is free. The kernel sees it with the next wait.
    pub(crate) fn push(&mut self, slot: u32, request: &BlockRequest) -> Result<(), BlockIoError> {
        let descriptor = types::Fd(self.target.raw_fd());
        let (offset, length) = (request.offset_bytes, request.length_bytes);
        let address = self.buffers.bytes(slot, length).as_mut_ptr();
        let entry = match request.access {
            Access::Read => opcode::Read::new(descriptor, address, length).offset(offset).build(),
            Access::Write => {
                self.target.require_writable()?;
                opcode::Write::new(descriptor, address, length).offset(offset).build()
            }
        };
        let entry = entry.user_data(u64::from(slot));
        // SAFETY: the buffer belongs to this place of the queue alone, is long enough, and outlives the
        // request, as `drop` waits for everything in flight; the descriptor lives as long as the target,
        // which the ring borrows.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the ring has a place for every request that can be in flight");
        self.asked[slot as usize] = (offset, length);
        self.in_flight += 1;
        Ok(())
    }

    /// Hands what was pushed to the kernel and waits until at least one request has completed.
    pub(crate) fn wait(&mut self, completed: &mut Vec<Completed>) -> Result<(), BlockIoError> {
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => break,
                // A signal ended the wait: the caller of the loop handles it.
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => break,
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(source) => {
                    return Err(BlockIoError::Wait {
                        path: self.target.path().to_path_buf(),
                        source,
                    });
                }
            }
        }
        loop {
            // The completion queue is not held while an entry is looked at.
            let Some(entry) = self.ring.completion().next() else { return Ok(()) };
            self.in_flight -= 1;
            // Slots have 32 bits and were widened by `push`.
            let slot = entry.user_data() as u32;
            self.check(slot, entry.result())?;
            completed.push(Completed { slot });
        }
    }

    /// Requests that the kernel has not finished.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn check(&self, slot: u32, result: i32) -> Result<(), BlockIoError> {
        let (offset, asked) = self.asked[slot as usize];
        let path = self.target.path().to_path_buf();
        if result < 0 {
            let source = io::Error::from_raw_os_error(-result);
            return Err(BlockIoError::Target { action: "carry out a request to", path, source });
        }
        // Not negative, as was just checked.
        let moved = result as u32;
        if moved == asked {
            return Ok(());
        }
        Err(BlockIoError::Short { path, offset, asked, moved })
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        while self.in_flight > 0 {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                // Without the kernel's word the buffers must stay: better to lose memory than to let it be
                // written to after it was freed.
                Err(_) => std::process::abort(),
            }
            self.in_flight -= self.ring.completion().count() as u32;
        }
    }
}
