//! Memory that is shared with the kernel: mapped, never moved, given back when dropped.
//!
//! It knows nothing of its content: its users decide who may access which part and when.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use tracing::warn;

/// Mapped memory.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping is plain memory that lives until it is dropped; it is reached through raw pointers alone.
unsafe impl Send for Mapping {}
// SAFETY: as above; each read or write through those pointers says why it is sound.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// A file that this process writes through the mapping; what is written is in the file at once for every reader, and
    /// stays there if the process is killed.
    pub(crate) fn shared_writable(file: &File, length: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address of the kernel's choice, of an open file.
        let start = unsafe { mmap(null_mut(), length, protection, MapFlags::SHARED, file, 0) }?;
        Mapping::of(start.cast(), length)
    }

    fn of(start: *mut u8, length: usize) -> io::Result<Mapping> {
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("mapped to nowhere"))?;
        Ok(Mapping { start, length })
    }

    /// The address of a range.
    ///
    /// # Panics
    /// When it does not lie within the mapping.
    pub(crate) fn at(&self, range: Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.length, "outside of a mapping");
        // SAFETY: the offset lies within the mapping.
        unsafe { self.start.as_ptr().add(range.start) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, to which no reference exists any more.
        if let Err(error) = unsafe { munmap(self.start.as_ptr().cast(), self.length) } {
            warn!("a mapping stays: {error}");
        }
    }
}
