//! Copies a device in large blocks while other loads run, as the replication of a snapshot does.
//!
//! Reads every block from the first to the last with some requests in flight, and writes each to another target
//! or nowhere. With a rate, block i is due at i / rate, and its latency counts from then.
//!
//! It deliberately does not make the copy consistent: the source may change while it is read. What is asked is what
//! such I/O does to others.

use crate::buffer::Buffers;
use crate::error::BlockIoError;
use crate::gauge::IoGauge;
use crate::target::Target;
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use underlay_core::{Histogram, Nanos};

/// How long a thread sleeps at most before it looks whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What is copied, and how.
#[derive(Clone, Copy, Debug)]
pub struct CopySpec<'a> {
    /// What is read, opened for direct I/O.
    pub from: &'a Target,
    /// What is written, from its beginning to its end and over again; `None` = nothing.
    pub to: Option<&'a Target>,
    /// Size of a request: a multiple of 4 KiB, at most the size of `to`.
    pub block_bytes: u32,
    /// Requests in flight: one thread each.
    pub queue_depth: u32,
    /// Most bytes per second, above zero; `None` = as fast as it goes.
    pub bytes_per_second: Option<u64>,
}

/// What a copy did.
#[derive(Clone, Debug, Default)]
pub struct CopyResult {
    /// From its beginning to its end.
    pub duration: Nanos,
    /// Bytes read.
    pub bytes: u64,
    /// Whether every block was read (and written, where that was asked).
    pub complete: bool,
    /// Failed requests, by error number of the system.
    pub errors: BTreeMap<i32, u64>,
    /// Nanoseconds of reads from their intended start.
    pub read: Histogram,
    /// Nanoseconds of writes.
    pub write: Histogram,
}

/// Copies until every block was read or `stop` is set. A request that fails is counted, and its block left out.
///
/// # Errors
/// When there is no memory, or the target to write to was opened for reading.
///
/// # Panics
/// If the size of a block is not as [`CopySpec::block_bytes`] demands.
pub fn copy(
    spec: &CopySpec<'_>,
    gauge: &IoGauge,
    stop: &AtomicBool,
) -> Result<CopyResult, BlockIoError> {
    assert!(spec.block_bytes > 0 && spec.block_bytes.is_multiple_of(4096), "the size of a block");
    if let Some(to) = spec.to {
        to.require_writable()?;
        assert!(u64::from(spec.block_bytes) <= to.size().0, "a block is larger than its target");
    }
    let block = u64::from(spec.block_bytes);
    let blocks = spec.from.size().0.div_ceil(block);
    let next = AtomicU64::new(0);
    let merged = Mutex::new(CopyResult::default());
    let began = Instant::now();
    std::thread::scope(|scope| -> Result<(), BlockIoError> {
        let mut threads = Vec::new();
        for number in 0..spec.queue_depth.max(1) {
            let mut random = Pcg64::new(u128::from(number), 0);
            let buffers = Buffers::new(1, spec.block_bytes, &mut random)?;
            let (next, merged) = (&next, &merged);
            threads.push(scope.spawn(move || {
                let mut own = Copier { spec, gauge, buffers, result: CopyResult::default() };
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= blocks || !own.block(index, began, stop) {
                        break;
                    }
                }
                merge(&mut merged.lock().unwrap_or_else(PoisonError::into_inner), &own.result);
            }));
        }
        Ok(())
    })?;
    let mut result = merged.into_inner().unwrap_or_else(PoisonError::into_inner);
    result.duration = began.elapsed().into();
    result.complete = result.bytes == spec.from.size().0 && result.errors.is_empty();
    Ok(result)
}

struct Copier<'a> {
    spec: &'a CopySpec<'a>,
    gauge: &'a IoGauge,
    buffers: Buffers,
    result: CopyResult,
}

impl Copier<'_> {
    /// Copies one block, once it is due. Returns whether to go on.
    fn block(&mut self, index: u64, began: Instant, stop: &AtomicBool) -> bool {
        let block = u64::from(self.spec.block_bytes);
        let mut started = Instant::now();
        if let Some(rate) = self.spec.bytes_per_second {
            let due_ns =
                u128::from(index) * u128::from(block) * 1_000_000_000 / u128::from(rate.max(1));
            let due = began + Duration::from_nanos(u64::try_from(due_ns).unwrap_or(u64::MAX));
            while Instant::now() < due {
                if stop.load(Ordering::Relaxed) {
                    return false;
                }
                std::thread::sleep(due.saturating_duration_since(Instant::now()).min(LOOK));
            }
            started = due;
        }
        let offset = index * block;
        let length = block.min(self.spec.from.size().0 - offset) as u32;
        let bytes = self.buffers.bytes(0, length);
        let read = self.spec.from.file().read_exact_at(bytes, offset);
        if !self.count(&read, started, length, true) {
            return true;
        }
        self.result.bytes += u64::from(length);
        if let Some(to) = self.spec.to {
            let places = to.size().0 / block;
            let at = index % places * block;
            let written_from = Instant::now();
            // The last block of a device may be short, direct I/O is not: its buffer is whole.
            let written = to.file().write_all_at(self.buffers.bytes(0, self.spec.block_bytes), at);
            self.count(&written, written_from, self.spec.block_bytes, false);
        }
        true
    }

    fn count(
        &mut self,
        done: &std::io::Result<()>,
        started: Instant,
        length: u32,
        is_read: bool,
    ) -> bool {
        let took = started.elapsed().as_nanos() as u64;
        if let Err(error) = done {
            self.gauge.count_error();
            *self.result.errors.entry(error.raw_os_error().unwrap_or_default()).or_default() += 1;
            return false;
        }
        let histogram = if is_read {
            self.gauge.count_read(u64::from(length));
            &mut self.result.read
        } else {
            self.gauge.count_write(u64::from(length));
            &mut self.result.write
        };
        histogram.record(took);
        true
    }
}

fn merge(into: &mut CopyResult, other: &CopyResult) {
    into.bytes += other.bytes;
    for (error, count) in &other.errors {
        *into.errors.entry(*error).or_default() += count;
    }
    into.read.merge(&other.read);
    into.write.merge(&other.write);
}

#[cfg(test)]
mod tests {
    use super::{CopySpec, copy};
    use crate::gauge::IoGauge;
    use crate::target::{Caching, Target};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};
    use underlay_core::Bytes;

    const BLOCK: u32 = 1 << 20;
    /// The smallest file that there can be a target of.
    const LEAST: u64 = 16;

    fn source(dir: &std::path::Path, blocks: u64) -> Target {
        let path = dir.join("source");
        let words = (0..blocks * u64::from(BLOCK) / 8).flat_map(|i| (i / 512).to_le_bytes());
        std::fs::write(&path, words.collect::<Vec<u8>>()).unwrap();
        Target::open_to_read(&path, Caching::Buffered).unwrap()
    }

    #[test]
    fn every_block_arrives_and_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let from = source(dir.path(), LEAST);
        let path = dir.path().join("copy");
        let to = Target::create_with(&path, from.size(), Caching::Buffered).unwrap();
        let gauge = IoGauge::default();
        let spec = CopySpec {
            from: &from,
            to: Some(&to),
            block_bytes: BLOCK,
            queue_depth: 3,
            bytes_per_second: None,
        };
        let result = copy(&spec, &gauge, &AtomicBool::new(false)).unwrap();
        assert!(result.complete, "{result:?}");
        assert_eq!((result.read.count(), result.write.count()), (LEAST, LEAST));
        let bytes = LEAST * u64::from(BLOCK);
        assert_eq!(gauge.read_bytes.load(Ordering::Relaxed), bytes);
        assert_eq!(gauge.write_bytes.load(Ordering::Relaxed), bytes);
        assert!(std::fs::read(path).unwrap() == std::fs::read(dir.path().join("source")).unwrap());
    }

    #[test]
    fn a_small_target_is_written_over_and_over() {
        let dir = tempfile::tempdir().unwrap();
        let from = source(dir.path(), LEAST + 2);
        let path = dir.path().join("copy");
        let size = Bytes(LEAST * u64::from(BLOCK));
        let to = Target::create_with(&path, size, Caching::Buffered).unwrap();
        let spec = CopySpec {
            from: &from,
            to: Some(&to),
            block_bytes: BLOCK,
            queue_depth: 1,
            bytes_per_second: None,
        };
        let result = copy(&spec, &IoGauge::default(), &AtomicBool::new(false)).unwrap();
        assert!(result.complete && result.write.count() == LEAST + 2);
        let (copied, all) =
            (std::fs::read(path).unwrap(), std::fs::read(dir.path().join("source")).unwrap());
        let (block, least) = (BLOCK as usize, LEAST as usize);
        assert!(copied[..2 * block] == all[least * block..], "the last two lie over the first two");
        assert!(copied[2 * block..] == all[2 * block..least * block]);
    }

    #[test]
    fn a_rate_is_kept_and_a_stop_is_heard() {
        let dir = tempfile::tempdir().unwrap();
        let from = source(dir.path(), LEAST);
        let spec = CopySpec {
            from: &from,
            to: None,
            block_bytes: BLOCK,
            queue_depth: 2,
            bytes_per_second: Some(u64::from(BLOCK) * 50),
        };
        let result = copy(&spec, &IoGauge::default(), &AtomicBool::new(false)).unwrap();
        // The last of 16 blocks is due 300 ms after the first.
        assert!(result.duration.as_secs_f64() >= 0.29, "{result:?}");
        let stop = AtomicBool::new(false);
        let slow = CopySpec { bytes_per_second: Some(u64::from(BLOCK) / 2), ..spec };
        let began = Instant::now();
        std::thread::scope(|scope| {
            let copier = scope.spawn(|| copy(&slow, &IoGauge::default(), &stop).unwrap());
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
            let result = copier.join().unwrap();
            assert!(!result.complete && result.read.count() < LEAST);
        });
        assert!(began.elapsed() < Duration::from_secs(10), "30 s of copying were cut short");
    }
}
