//! Memory that direct I/O accepts: aligned to pages, touched before it is used.

use crate::error::BlockIoError;
use rand::Rng;
use rand_pcg::Pcg64;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use underlay_core::Bytes;

const ALIGNMENT: usize = 4096;

// SAFETY: the memory belongs to this value alone, like that of a `Vec`.
unsafe impl Send for Buffers {}

/// As many buffers of one size as requests can be in flight.
#[derive(Debug)]
pub(crate) struct Buffers {
    memory: NonNull<u8>,
    layout: Layout,
    each: usize,
}

impl Buffers {
    /// `count` buffers of `each` bytes, filled with random bytes: what a device compresses or
    /// deduplicates would look faster than it is.
    pub(crate) fn new(count: u32, each: u32, random: &mut Pcg64) -> Result<Buffers, BlockIoError> {
        let each = (each as usize).next_multiple_of(ALIGNMENT);
        let bytes = each * count.max(1) as usize;
        let refused = || BlockIoError::NoMemory { bytes: Bytes(bytes as u64) };
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| refused())?;
        // SAFETY: the layout has a size above zero, as both factors are at least one.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refused)?;
        let mut buffers = Buffers { memory, layout, each };
        for chunk in buffers.all().chunks_exact_mut(8) {
            chunk.copy_from_slice(&random.next_u64().to_le_bytes());
        }
        Ok(buffers)
    }

    /// The address of one buffer.
    pub(crate) fn address(&mut self, index: u32) -> *mut u8 {
        let offset = index as usize * self.each;
        assert!(offset + self.each <= self.layout.size(), "buffer {index} does not exist");
        // SAFETY: the offset was just checked to lie within the allocation.
        unsafe { self.memory.as_ptr().add(offset) }
    }

    /// One buffer's bytes.
    pub(crate) fn bytes(&mut self, index: u32, length: u32) -> &mut [u8] {
        let address = self.address(index);
        assert!(
            length as usize <= self.each,
            "a request of {length} bytes is longer than its buffer"
        );
        // SAFETY: `address` checked that the buffer lies within the allocation, which is initialised, lives
        // as long as `self`, and is borrowed mutably through it.
        unsafe { std::slice::from_raw_parts_mut(address, length as usize) }
    }

    /// The whole memory, for the kernel to keep mapped.
    pub(crate) fn whole(&mut self) -> (*mut u8, usize) {
        (self.memory.as_ptr(), self.layout.size())
    }

    fn all(&mut self) -> &mut [u8] {
        // SAFETY: the allocation has this size, is initialised, and is borrowed mutably through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout and freed only here.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}
