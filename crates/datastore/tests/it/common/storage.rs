//! What the conformance suite asks of anything that stores bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, fallocate};

/// A range of bytes.
pub trait Storage: Send + Sync {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// The range reads as zeros afterwards.
    fn discard(&self, offset: u64, length: u64) -> io::Result<()>;
    fn flush(&self) -> io::Result<()>;
    /// The same bytes through another handle or connection.
    fn another(&self) -> Box<dyn Storage>;
}

impl Storage for File {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(self, flags, offset, length)?)
    }

    fn flush(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn another(&self) -> Box<dyn Storage> {
        Box::new(self.try_clone().unwrap())
    }
}
