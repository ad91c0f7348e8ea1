//! What each unit of a target holds now, while many threads read and write it.
//!
//! One word per unit: who is at it, and the number of the last write that was acknowledged. A request takes all of
//! its units or none; one that cannot is retried later. So no unit is written twice at once, and none is read
//! while it is written, which would leave several right answers.

use super::expectation::{Author, Finding, Known, Violation};
use super::journal::{Journal, Mark};
use crate::error::BlockIoError;
use crate::target::Target;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use underlay_core::Bytes;
use underlay_workload::block::{BlockWorkload, Content};

/// No unit is larger: the unit in which storage is usually atomic.
pub const UNIT_BYTES_MAX: u32 = 4096;
/// Violations that are kept in full.
const KEPT: usize = 20;

const WRITER: u64 = 1 << 63;
const READER: u64 = 1 << 48;
const READERS: u64 = WRITER - READER;
/// A write failed: either content may be there until the next one succeeds.
const UNSURE: u64 = 1 << 47;
const WRITE: u64 = UNSURE - 1;

/// Follows one target.
#[derive(Debug)]
pub struct Verifier {
    author: Author,
    units: Vec<AtomicU64>,
    writes: AtomicU64,
    flushes: AtomicU64,
    journal: Option<Journal>,
    violations: Mutex<(u64, Vec<Violation>)>,
}

/// The largest unit that divides every request of these workloads, at most 4 KiB.
pub fn unit_bytes<'w>(workloads: impl IntoIterator<Item = &'w BlockWorkload>) -> u32 {
    let streams = workloads.into_iter().flat_map(|workload| &workload.streams);
    let sizes = streams.flat_map(|stream| &stream.sizes).map(|size| size.bytes);
    sizes.fold(UNIT_BYTES_MAX, divisor)
}

fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl Verifier {
    /// Follows the first `working_set` bytes of target number `target`.
    pub fn new(
        run: u64,
        target: u32,
        working_set: Bytes,
        unit_bytes: u32,
        content: Content,
        journal: Option<Journal>,
    ) -> Verifier {
        let units = working_set.0 / u64::from(unit_bytes);
        Verifier {
            author: Author { run, target, unit_bytes: unit_bytes as usize, content },
            units: (0..units).map(|_| AtomicU64::new(0)).collect(),
            writes: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            journal,
            violations: Mutex::new((0, Vec::new())),
        }
    }

    fn range(&self, offset: u64, length: u32) -> std::ops::Range<usize> {
        let unit = self.author.unit_bytes as u64;
        (offset / unit) as usize..((offset + u64::from(length)) / unit) as usize
    }

    /// Takes the units of a read, unless one of them is being written.
    pub(crate) fn begin_read(&self, offset: u64, length: u32) -> bool {
        self.take(offset, length, |word| (word & WRITER == 0).then_some(word + READER), READER)
    }

    /// Takes the units of a write, unless one of them is in use. Returns the number of the write.
    pub(crate) fn begin_write(&self, offset: u64, length: u32) -> Option<u64> {
        let free = |word: u64| (word & (WRITER | READERS) == 0).then_some(word | WRITER);
        let taken = self.take(offset, length, free, WRITER);
        taken.then(|| self.writes.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn take(
        &self,
        offset: u64,
        length: u32,
        next: impl Fn(u64) -> Option<u64>,
        given_back: u64,
    ) -> bool {
        let range = self.range(offset, length);
        for unit in range.clone() {
            let word = &self.units[unit];
            if word.fetch_update(Ordering::Acquire, Ordering::Relaxed, &next).is_err() {
                for taken in range.start..unit {
                    self.units[taken].fetch_sub(given_back, Ordering::Release);
                }
                return false;
            }
        }
        true
    }

    /// Fills and marks the bytes of a write that was begun.
    pub(crate) fn mark(&self, offset: u64, write: u64, thread: u32, bytes: &mut [u8]) {
        self.author.write(offset, write, thread, bytes);
    }

    /// Gives back the units of a write: acknowledged, or failed.
    pub(crate) fn end_write(&self, offset: u64, length: u32, write: u64, acknowledged: bool) {
        for unit in self.range(offset, length) {
            let word = &self.units[unit];
            let now = word.load(Ordering::Relaxed);
            let next = if acknowledged { write } else { now & WRITE | UNSURE };
            word.store(next, Ordering::Release);
        }
    }

    /// Compares what a read returned, and gives back its units. Returns how many units were compared.
    pub(crate) fn end_read(&self, offset: u64, bytes: &[u8]) -> u64 {
        let mut compared = 0;
        for (unit, bytes) in
            self.range(offset, bytes.len() as u32).zip(bytes.chunks_exact(self.author.unit_bytes))
        {
            compared += u64::from(self.compare(unit as u64, bytes));
            self.units[unit].fetch_sub(READER, Ordering::Release);
        }
        compared
    }

    /// Gives back the units of a read that failed.
    pub(crate) fn abandon_read(&self, offset: u64, length: u32) {
        for unit in self.range(offset, length) {
            self.units[unit].fetch_sub(READER, Ordering::Release);
        }
    }

    /// Compares one unit; returns whether it was known what it should hold.
    fn compare(&self, unit: u64, bytes: &[u8]) -> bool {
        let word = self.units[unit as usize].load(Ordering::Relaxed);
        let write = word & WRITE;
        if word & UNSURE != 0 || write == 0 {
            return false;
        }
        let known = Known { floor: write, acknowledged: write, later: &[] };
        let finding = self.author.judge(unit, bytes, &known);
        if finding != Finding::Last {
            let mut violations = self.violations.lock().expect("no holder of this lock panics");
            violations.0 += 1;
            if violations.1.len() < KEPT {
                violations.1.push(Violation {
                    target: self.author.target,
                    offset_bytes: unit * self.author.unit_bytes as u64,
                    finding,
                    expected_write: write,
                });
            }
        }
        true
    }

    /// Bytes with a mark of their own.
    pub fn unit_bytes(&self) -> u32 {
        self.author.unit_bytes as u32
    }

    /// What did not match so far: how many units, and the first of them.
    pub fn violations(&self) -> (u64, Vec<Violation>) {
        self.violations.lock().expect("no holder of this lock panics").clone()
    }

    /// Reads everything that was written, and compares it. Nothing else may be going on. Returns how many
    /// units were compared.
    ///
    /// # Errors
    /// When the target cannot be read.
    pub fn check_all(
        &self,
        target: &Target,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<u64, BlockIoError> {
        let mut compared = 0;
        let unit_bytes = self.author.unit_bytes as u64;
        let length = self.units.len() as u64 * unit_bytes;
        super::recovery::read_through(target, length, stop, &mut |offset, bytes| {
            let units = (offset / unit_bytes..).zip(bytes.chunks_exact(unit_bytes as usize));
            for (unit, bytes) in units {
                compared += u64::from(self.compare(unit, bytes));
            }
        })?;
        Ok(compared)
    }

    /// A number for a flush.
    pub(crate) fn next_flush(&self) -> u64 {
        self.flushes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Where marks go, if anywhere.
    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// A mark of a write of this target.
    pub(crate) fn write_mark(&self, kind: Mark, offset: u64, length: u32, write: u64) -> [u8; 32] {
        let range = self.range(offset, length);
        super::journal::record(
            kind,
            self.author.target,
            write,
            range.start as u64,
            (range.end - range.start) as u32,
        )
    }

    /// A mark of a flush of this target.
    pub(crate) fn flush_mark(&self, kind: Mark, flush: u64) -> [u8; 32] {
        super::journal::record(kind, self.author.target, flush, 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Verifier, unit_bytes};
    use underlay_core::{Bytes, RootSeed};
    use underlay_workload::block::{Content, ContentSpec};

    fn verifier() -> Verifier {
        let content = Content::new(ContentSpec::NOISE, RootSeed(1)).unwrap();
        Verifier::new(1, 0, Bytes::from_mib(1), 4096, content, None)
    }

    #[test]
    fn requests_that_meet_wait_and_others_do_not() {
        let verifier = verifier();
        let first = verifier.begin_write(8192, 8192).expect("free");
        assert_eq!(verifier.begin_write(12288, 8192), None);
        assert!(!verifier.begin_read(4096, 8192));
        assert!(verifier.begin_read(0, 8192) && verifier.begin_read(4096, 4096), "readers share");
        assert_eq!(verifier.begin_write(0, 4096), None, "it is being read");
        verifier.end_write(8192, 8192, first, true);
        assert!(verifier.begin_write(12288, 8192).is_some_and(|second| second > first));
    }

    #[test]
    fn what_was_acknowledged_is_expected_and_what_failed_is_not() {
        let verifier = verifier();
        let write = verifier.begin_write(0, 8192).unwrap();
        let mut bytes = vec![0; 8192];
        verifier.mark(0, write, 3, &mut bytes);
        verifier.end_write(0, 8192, write, true);
        assert!(verifier.begin_read(0, 8192));
        assert_eq!(verifier.end_read(0, &bytes), 2);
        assert_eq!(verifier.violations().0, 0);
        let failed = verifier.begin_write(4096, 4096).unwrap();
        verifier.end_write(4096, 4096, failed, false);
        bytes[100] ^= 1;
        bytes[5000] ^= 1;
        assert!(verifier.begin_read(0, 8192));
        assert_eq!(verifier.end_read(0, &bytes), 1, "the failed one is unknown");
        let (count, violations) = verifier.violations();
        assert_eq!((count, violations[0].offset_bytes), (1, 0));
    }

    #[test]
    fn units_divide_every_request() {
        let sizes = |sizes: &[u32]| {
            let profile = underlay_study::find_io_profile("4k-random-write").unwrap();
            let mut workload = profile.merged();
            let one = workload.streams[0].sizes[0];
            workload.streams[0].sizes = sizes
                .iter()
                .map(|bytes| underlay_workload::block::SizeShare { bytes: *bytes, ..one })
                .collect();
            unit_bytes([&workload])
        };
        assert_eq!(sizes(&[8192, 65536]), 4096);
        assert_eq!(sizes(&[4096, 1536]), 512);
        assert_eq!(sizes(&[2048, 6144]), 2048);
    }
}
