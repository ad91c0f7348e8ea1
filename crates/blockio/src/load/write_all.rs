//! Writing a target from its beginning to its end: so that there is something to read, and as preconditioning.

use super::ring::{LoadRing, Wait};
use crate::error::BlockIoError;
use crate::target::Target;
use crate::verify::{Verifier, journal::Mark};
use std::io;
use underlay_core::{Bytes, RootSeed};
use underlay_workload::block::Content;

const REQUEST_BYTES: u32 = 1 << 20;
const DEPTH: u32 = 8;
/// Requests end at multiples of this.
const SECTOR: u64 = 512;

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes so far.
    pub done: Bytes,
    /// Bytes in all.
    pub of: Bytes,
}

/// Writes the first `length` bytes sequentially with that content, and makes them durable. `version` makes the bytes
/// differ from those of another pass; a verifier numbers its writes itself. `on_progress` is called with the progress
/// and says whether to go on.
///
/// # Errors
/// When a request fails or the callback asks to stop.
pub fn write_all(
    target: &Target,
    length: Bytes,
    content: &Content,
    version: u64,
    verifier: Option<&Verifier>,
    on_progress: &mut dyn FnMut(Written) -> bool,
) -> Result<(), BlockIoError> {
    target.require_writable()?;
    let mut random = RootSeed(version).stream("blockio.write_all", 0);
    let mut pass = Pass {
        ring: LoadRing::new(target, DEPTH, REQUEST_BYTES, &mut random)?,
        target,
        content,
        version,
        verifier,
        asked: [(0, 0, 0); DEPTH as usize],
        journal: Vec::new(),
    };
    let length = length.0 / SECTOR * SECTOR;
    let (mut next, mut done) = (0, 0);
    let mut free: Vec<u32> = (0..DEPTH).collect();
    let mut completed = Vec::new();
    while done < length {
        if !on_progress(Written { done: Bytes(done), of: Bytes(length) }) {
            return Err(BlockIoError::Interrupted);
        }
        while next < length
            && let Some(slot) = free.pop()
        {
            let bytes = (length - next).min(u64::from(REQUEST_BYTES)) as u32;
            pass.start(slot, next, bytes);
            next += u64::from(bytes);
        }
        pass.write_journal()?;
        pass.ring.submit(Wait::Completion)?;
        pass.ring.take(&mut completed);
        for (slot, result) in completed.drain(..) {
            done += u64::from(pass.end(slot, result)?);
            free.push(slot);
        }
    }
    pass.flush()
}

struct Pass<'a> {
    ring: LoadRing<'a>,
    target: &'a Target,
    content: &'a Content,
    version: u64,
    verifier: Option<&'a Verifier>,
    /// Offset, length, and number of the write.
    asked: [(u64, u32, u64); DEPTH as usize],
    journal: Vec<u8>,
}

impl Pass<'_> {
    fn start(&mut self, slot: u32, offset: u64, length: u32) {
        let bytes = self.ring.buffer(slot, length);
        let mut write = 0;
        match self.verifier {
            None => self.content.fill(offset, self.version, bytes),
            Some(verifier) => {
                write = verifier.begin_write(offset, length).expect("no other request runs yet");
                verifier.mark(offset, write, u32::MAX, bytes);
                self.journal.extend_from_slice(&verifier.write_mark(
                    Mark::Begun,
                    offset,
                    length,
                    write,
                ));
            }
        }
        self.asked[slot as usize] = (offset, length, write);
        self.ring.write(slot, offset, length, false);
    }

    fn end(&mut self, slot: u32, result: i32) -> Result<u32, BlockIoError> {
        let (offset, length, write) = self.asked[slot as usize];
        let path = || self.target.path().to_path_buf();
        if result < 0 {
            let source = io::Error::from_raw_os_error(-result);
            return Err(BlockIoError::Target { action: "write to", path: path(), source });
        }
        if result as u32 != length {
            let moved = result as u32;
            return Err(BlockIoError::Short { path: path(), offset, asked: length, moved });
        }
        if let Some(verifier) = self.verifier {
            verifier.end_write(offset, length, write, true);
            self.journal.extend_from_slice(&verifier.write_mark(
                Mark::Acknowledged,
                offset,
                length,
                write,
            ));
        }
        Ok(length)
    }

    fn flush(&mut self) -> Result<(), BlockIoError> {
        let number = self.verifier.map_or(0, Verifier::next_flush);
        if let Some(verifier) = self.verifier {
            self.journal.extend_from_slice(&verifier.flush_mark(Mark::FlushBegun, number));
        }
        self.write_journal()?;
        self.ring.flush(0);
        let mut completed = Vec::new();
        while completed.is_empty() {
            self.ring.submit(Wait::Completion)?;
            self.ring.take(&mut completed);
        }
        if completed[0].1 < 0 {
            let source = io::Error::from_raw_os_error(-completed[0].1);
            let path = self.target.path().to_path_buf();
            return Err(BlockIoError::Target { action: "flush", path, source });
        }
        if let Some(verifier) = self.verifier {
            self.journal.extend_from_slice(&verifier.flush_mark(Mark::Flushed, number));
        }
        self.write_journal()
    }

    fn write_journal(&mut self) -> Result<(), BlockIoError> {
        if let Some(journal) = self.verifier.and_then(Verifier::journal) {
            journal.append(&self.journal)?;
        }
        self.journal.clear();
        Ok(())
    }
}
