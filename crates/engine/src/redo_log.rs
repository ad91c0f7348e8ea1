//! The log with group commit: one flush at a time, which includes everything that was inserted
//! before it began.
//!
//! Positions count bytes from the beginning of the run. The log's part of the volume is used as a
//! ring. The database writes and flushes the volume; this does the accounting. Not here: the
//! contents of records, archiving, replication.

use std::collections::VecDeque;
use underlay_core::Bytes;

/// The longest write request.
const WRITE_BYTES_MAX: u64 = 1 << 20;

/// Bytes and flushes of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounters {
    /// Bytes of records, page images included.
    pub inserted: u64,
    /// Those of page images.
    pub images: u64,
    /// Bytes written to the volume, whole blocks.
    pub written: u64,
    /// Write requests.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes of records that flushes made durable.
    pub durable: u64,
    /// Commits that waited for a flush.
    pub commits: u64,
}

/// The log of a database.
#[derive(Clone, Debug)]
pub(crate) struct RedoLog {
    block_bytes: u64,
    ring_bytes: u64,
    inserted: u64,
    flushed: u64,
    /// Up to where the flush goes that is under way; whether one is, even before it has chosen
    /// that.
    flushing_to: Option<u64>,
    is_busy: bool,
    /// Sessions and the positions that they wait for, in order.
    waiting: VecDeque<(u64, u32)>,
    counters: LogCounters,
}

impl RedoLog {
    pub(crate) fn new(block_bytes: u64, ring: Bytes) -> RedoLog {
        RedoLog {
            block_bytes,
            ring_bytes: ring.0 / block_bytes * block_bytes,
            inserted: 0,
            flushed: 0,
            flushing_to: None,
            is_busy: false,
            waiting: VecDeque::new(),
            counters: LogCounters::default(),
        }
    }

    /// Inserts records, of which so many bytes are page images.
    pub(crate) fn insert(&mut self, bytes: u64, images: u64) {
        self.inserted += bytes + images;
        self.counters.inserted += bytes + images;
        self.counters.images += images;
    }

    /// The end of what was inserted.
    pub(crate) fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Bytes that were inserted and are not durable.
    pub(crate) fn pending(&self) -> u64 {
        self.inserted - self.flushed
    }

    /// Where a position is in the ring.
    pub(crate) fn place(&self, position: u64) -> u64 {
        position % self.ring_bytes
    }

    /// So many bytes were inserted and made durable before what is under way, and are not counted.
    pub(crate) fn skip(&mut self, bytes: u64) {
        self.inserted += bytes;
        self.flushed += bytes;
        if let Some(to) = &mut self.flushing_to {
            *to += bytes;
        }
        self.waiting.iter_mut().for_each(|(position, _)| *position += bytes);
    }

    /// A session waits until everything inserted so far is durable; false when it is.
    pub(crate) fn wait(&mut self, session: u32) -> bool {
        if self.flushed >= self.inserted {
            return false;
        }
        self.counters.commits += 1;
        self.waiting.push_back((self.inserted, session));
        true
    }

    /// Takes the right to flush, if no one has it and there is something to flush.
    pub(crate) fn try_lead(&mut self) -> bool {
        let leads = !self.is_busy && self.flushed < self.inserted;
        self.is_busy |= leads;
        leads
    }

    /// The session that has waited longest.
    pub(crate) fn first_waiting(&self) -> Option<u32> {
        self.waiting.front().map(|(_, session)| *session)
    }

    /// Begins the flush of everything inserted by now; appends the writes it takes, as offsets and
    /// lengths in the ring.
    pub(crate) fn begin_flush(&mut self, writes: &mut Vec<(u64, u32)>) {
        let to = self.inserted;
        self.flushing_to = Some(to);
        // Whole blocks are written: the last one of the previous flush was not full, and is written
        // again.
        let mut from = self.flushed / self.block_bytes * self.block_bytes;
        let end = to.next_multiple_of(self.block_bytes);
        while from < end {
            let offset = self.place(from);
            let length = (end - from).min(WRITE_BYTES_MAX).min(self.ring_bytes - offset);
            writes.push((offset, length as u32));
            self.counters.written += length;
            self.counters.writes += 1;
            from += length;
        }
    }

    /// The flush is done. Sessions come from [`RedoLog::pop_durable`].
    pub(crate) fn end_flush(&mut self) {
        let to = self.flushing_to.take().expect("a flush ends once, after it began");
        self.counters.durable += to - self.flushed;
        self.flushed = to;
        self.is_busy = false;
        self.counters.flushes += 1;
    }

    /// A session whose records are durable now.
    pub(crate) fn pop_durable(&mut self) -> Option<u32> {
        let durable = self.waiting.front().is_some_and(|(position, _)| *position <= self.flushed);
        durable.then(|| self.waiting.pop_front()).flatten().map(|(_, session)| session)
    }

    /// What was counted; counting begins again.
    pub(crate) fn take_counters(&mut self) -> LogCounters {
        std::mem::take(&mut self.counters)
    }
}

#[cfg(test)]
mod tests {
    use super::RedoLog;
    use underlay_core::Bytes;

    #[test]
    fn a_flush_takes_along_what_came_before_it_began() {
        let mut log = RedoLog::new(8192, Bytes::from_mib(16));
        log.insert(100, 0);
        assert!(log.wait(1) && log.try_lead() && !log.try_lead());
        log.insert(50, 8000);
        assert!(log.wait(2));
        let mut writes = Vec::new();
        log.begin_flush(&mut writes);
        assert_eq!(writes, [(0, 8192)]);
        log.insert(10, 0);
        assert!(log.wait(3), "too late for this flush");
        log.end_flush();
        assert_eq!(
            [log.pop_durable(), log.pop_durable(), log.pop_durable()],
            [Some(1), Some(2), None]
        );
        assert!(log.try_lead());
        writes.clear();
        log.begin_flush(&mut writes);
        assert_eq!(writes, [(0, 8192)], "the last block is written again");
        log.end_flush();
        assert_eq!(log.pop_durable(), Some(3));
        assert!(!log.wait(4) && !log.try_lead());
        let counted = log.take_counters();
        assert_eq!((counted.inserted, counted.images, counted.commits), (8160, 8000, 3));
        assert_eq!((counted.written, counted.flushes), (16_384, 2));
        assert_eq!((counted.durable, log.pending()), (8160, 0));
    }

    #[test]
    fn what_is_skipped_was_durable_before_the_flush_under_way() {
        let mut log = RedoLog::new(8192, Bytes::from_mib(16));
        log.insert(100, 0);
        assert!(log.wait(1) && log.try_lead());
        let mut writes = Vec::new();
        log.begin_flush(&mut writes);
        log.insert(50, 0);
        assert!(log.wait(2));
        log.skip(1 << 20);
        assert_eq!((log.inserted(), log.pending()), ((1 << 20) + 150, 150));
        log.end_flush();
        assert_eq!((log.pop_durable(), log.pop_durable(), log.pending()), (Some(1), None, 50));
        assert_eq!((log.take_counters().durable, log.place(17 << 20)), (100, 1 << 20));
    }

    #[test]
    fn long_flushes_are_split_and_the_ring_goes_round() {
        let mut log = RedoLog::new(4096, Bytes::from_mib(2));
        let mut writes = Vec::new();
        log.insert(1_500_000, 0);
        assert!(log.try_lead());
        log.begin_flush(&mut writes);
        assert_eq!(writes, [(0, 1 << 20), (1 << 20, 454_656)]);
        log.end_flush();
        writes.clear();
        log.insert(1_000_000, 0);
        log.begin_flush(&mut writes);
        assert_eq!(writes, [(1_499_136, 598_016), (0, 405_504)]);
    }
}
