//! The background writers of pages: the kernel's write-back, the checkpointer, the background
//! writer.
//!
//! A page that a process writes goes to the kernel first. Pages of the checkpointer and of the
//! background writer are written back at once (`checkpoint_flush_after`, `bgwriter_flush_after`).
//! Those that sessions evict stay until they are old, too many, or a checkpoint synchronises the
//! files. A page that already waits is written once, however often it is handed over. Neighbouring
//! pages become one request. The device's throttle limits the number of requests in flight.

use crate::page::{PageId, PageSet};
use crate::write_throttle::WriteThrottle;
use std::collections::VecDeque;
use underlay_core::Nanos;

/// `vm.dirty_expire_centisecs`.
const DIRTY_EXPIRE: Nanos = Nanos::from_secs(30);
/// Pages of one request: `checkpoint_flush_after` is 256 KiB.
const RUN_PAGES_MAX: u32 = 32;
/// Shares of the page cache: `vm.dirty_background_ratio` and `vm.dirty_ratio`.
const BACKGROUND_PERCENT: u64 = 10;
const LIMIT_PERCENT: u64 = 20;

/// Pages by who wrote them, and checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterCounters {
    /// Checkpoints that were completed.
    pub checkpoints: u64,
    /// Checkpoints that began because of the amount of log.
    pub checkpoints_forced: u64,
    /// Pages of checkpoints.
    pub checkpoint_pages: u64,
    /// Pages of the background writer or the page cleaners.
    pub background_pages: u64,
    /// Those of them that autovacuum changed and that were not in the buffer pool.
    pub analyze_pages: u64,
    /// Pages that sessions had to write to make room, or because a file grew.
    pub session_pages: u64,
    /// Pages that one of these handed over and that waited in the kernel already: they are written
    /// once.
    pub merged_pages: u64,
    /// Pages written to the volume.
    pub written_pages: u64,
    /// Requests that wrote them.
    pub write_requests: u64,
    /// Pages written to InnoDB's doublewrite buffer before.
    pub doublewrite_pages: u64,
}

/// The kernel's dirty pages of one database.
#[derive(Clone, Debug)]
pub(crate) struct WriteBack {
    /// To be written now, each page once.
    urgent: VecDeque<PageId>,
    /// The pages of `urgent`.
    urgent_set: PageSet,
    /// To be written when they are old or too many, with the time when they became dirty. Pages
    /// that are not in `lazy_set` were written since, or are urgent.
    lazy: VecDeque<(Nanos, PageId)>,
    lazy_set: PageSet,
    /// The number of pages in `lazy_set`.
    lazy_pages: u64,
    background: u64,
    limit: u64,
    /// Pages of each request that is under way, in the order in which they were begun.
    in_flight: VecDeque<u32>,
    entered: u64,
    written: u64,
    /// What `written` is when files are synchronised.
    goal: u64,
    throttle: WriteThrottle,
    pub(crate) counters: WriterCounters,
}

impl WriteBack {
    /// Nothing dirty, in a page cache of so many pages.
    pub(crate) fn new(page_cache_pages: u32) -> WriteBack {
        let share = |percent: u64| (u64::from(page_cache_pages) * percent / 100).max(64);
        WriteBack {
            urgent: VecDeque::new(),
            urgent_set: PageSet::default(),
            lazy: VecDeque::new(),
            lazy_set: PageSet::default(),
            lazy_pages: 0,
            background: share(BACKGROUND_PERCENT),
            limit: share(LIMIT_PERCENT),
            in_flight: VecDeque::new(),
            entered: 0,
            written: 0,
            goal: 0,
            throttle: WriteThrottle::default(),
            counters: WriterCounters::default(),
        }
    }

    /// A page is to be written at once.
    pub(crate) fn push_urgent(&mut self, page: PageId) {
        if self.urgent_set.insert(page) {
            self.counters.merged_pages += 1;
            return;
        }
        if self.take_lazy(page) {
            self.counters.merged_pages += 1;
        } else {
            self.entered += 1;
        }
        self.urgent.push_back(page);
    }

    /// A page became dirty in the kernel.
    pub(crate) fn push_lazy(&mut self, now: Nanos, page: PageId) {
        if self.urgent_set.contains(page) || self.lazy_set.insert(page) {
            self.counters.merged_pages += 1;
            return;
        }
        self.entered += 1;
        self.lazy_pages += 1;
        self.lazy.push_back((now, page));
    }

    /// A page is no longer to be written when it is old. Whether it was.
    fn take_lazy(&mut self, page: PageId) -> bool {
        let waits = self.lazy_set.contains(page);
        if waits {
            self.lazy_set.remove(page);
            self.lazy_pages -= 1;
        }
        waits
    }

    /// Everything that is dirty is to be written now. Returns what [`WriteBack::written`] will reach
    /// when it is.
    pub(crate) fn synchronise(&mut self) -> u64 {
        while let Some((_, page)) = self.lazy.pop_front() {
            if self.take_lazy(page) {
                self.urgent_set.insert(page);
                self.urgent.push_back(page);
            }
        }
        self.goal = self.entered;
        self.entered
    }

    /// A session waits because too much is dirty.
    pub(crate) fn await_at(&mut self, now: Nanos) {
        self.throttle.await_at(now);
    }

    /// The device is asked to read.
    pub(crate) fn read_at(&mut self, now: Nanos) {
        self.throttle.read_at(now);
    }

    /// The device has read, so long after it was asked to.
    pub(crate) fn read_ended(&mut self, now: Nanos, latency: Nanos) {
        self.throttle.read_ended(now, latency, self.requests());
    }

    /// Pages that were written since the beginning.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Requests under way.
    fn requests(&self) -> u32 {
        self.in_flight.len() as u32
    }

    /// Pages that wait to be written at once.
    pub(crate) fn urgent(&self) -> usize {
        self.urgent.len()
    }

    /// Pages that wait to be written.
    pub(crate) fn waiting(&self) -> u64 {
        self.lazy_pages + self.urgent.len() as u64
    }

    /// Whether sessions that write have to wait.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.waiting() > self.limit
    }

    /// The next run of neighbouring pages to write: the first and how many; none when nothing is
    /// due.
    pub(crate) fn next_run(&mut self, now: Nanos) -> Option<(PageId, u32)> {
        let is_synchronous = self.written < self.goal;
        if self.requests() >= self.throttle.limit(now, self.requests(), is_synchronous) {
            return None;
        }
        let Some(first) = self.next_urgent() else {
            let page = self.next_lazy(now)?;
            return Some(self.begin(page, 1));
        };
        let mut pages = 1;
        let follows = |next: &PageId, pages: u32| {
            next.relation() == first.relation() && next.block() == first.block() + pages
        };
        while pages < RUN_PAGES_MAX && self.urgent.front().is_some_and(|next| follows(next, pages))
        {
            self.next_urgent();
            pages += 1;
        }
        Some(self.begin(first, pages))
    }

    fn next_urgent(&mut self) -> Option<PageId> {
        let page = self.urgent.pop_front()?;
        self.urgent_set.remove(page);
        Some(page)
    }

    fn next_lazy(&mut self, now: Nanos) -> Option<PageId> {
        while let Some(&(since, page)) = self.lazy.front() {
            let is_due = self.lazy_pages > self.background || now >= since + DIRTY_EXPIRE;
            if self.lazy_set.contains(page) && !is_due {
                return None;
            }
            self.lazy.pop_front();
            if self.take_lazy(page) {
                return Some(page);
            }
        }
        None
    }

    fn begin(&mut self, first: PageId, pages: u32) -> (PageId, u32) {
        self.in_flight.push_back(pages);
        self.counters.written_pages += u64::from(pages);
        self.counters.write_requests += 1;
        (first, pages)
    }

    /// A request is done: the one that was begun first, as it is taken for.
    pub(crate) fn complete(&mut self, now: Nanos) {
        self.throttle.written(now, self.requests());
        self.written += u64::from(self.in_flight.pop_front().unwrap_or(0));
    }

    /// Whether requests are in flight.
    pub(crate) fn is_writing(&self) -> bool {
        !self.in_flight.is_empty()
    }
}

/// What a checkpoint is at.
#[derive(Clone, Debug, Default)]
enum Stage {
    #[default]
    Idle,
    /// Writing these pages, in the order of the volume.
    Writing { pages: Vec<PageId>, next: usize },
    /// Until the kernel has written that many pages.
    Synchronising { goal: u64 },
    /// The volume is flushed.
    Flushing,
}

/// PostgreSQL's checkpointer: begins by time or by the amount of log, and spreads its writes.
#[derive(Clone, Debug)]
pub(crate) struct Checkpointer {
    timeout: Nanos,
    target: f64,
    /// Log bytes that make a checkpoint begin: `max_wal_size` over 1 + the completion target, so
    /// that one that is spread ends in time.
    log_bytes: u64,
    begun: Nanos,
    begun_at: u64,
    stage: Stage,
    /// Checkpoints that have begun: what page images are counted by.
    pub(crate) number: u32,
}

/// What a checkpointer has to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckpointWork {
    /// Nothing.
    None,
    /// Begin, with the pages that are dirty; because of the amount of log or not.
    Begin { is_forced: bool },
    /// Everything was written: let the kernel write what it has.
    Synchronise,
    /// Flush the volume.
    Flush,
}

impl Checkpointer {
    pub(crate) fn new(timeout: Nanos, target: f64, max_wal_bytes: u64) -> Checkpointer {
        Checkpointer {
            timeout,
            target,
            log_bytes: ((max_wal_bytes as f64 / (1.0 + target)) as u64).max(1),
            begun: Nanos::ZERO,
            begun_at: 0,
            stage: Stage::Idle,
            number: 1,
        }
    }

    /// What is to be done at `now`, with that much log inserted and that many pages written by the
    /// kernel; appends the pages to write to `due`.
    pub(crate) fn work(
        &mut self,
        now: Nanos,
        inserted: u64,
        written: u64,
        due: &mut Vec<PageId>,
    ) -> CheckpointWork {
        let by_log = self.place_by_log(inserted);
        let place = self.place(now, inserted);
        match &mut self.stage {
            Stage::Idle if place >= 1.0 => CheckpointWork::Begin { is_forced: by_log >= 1.0 },
            Stage::Idle | Stage::Flushing => CheckpointWork::None,
            Stage::Writing { pages, next } => {
                // Ahead of schedule it pauses; the faster of time and log sets the pace
                // (`checkpoint_completion_target`).
                let share = (place / self.target).min(1.0);
                let until = (pages.len() as f64 * share).ceil() as usize;
                if until > *next {
                    due.extend_from_slice(&pages[*next..until]);
                    *next = until;
                }
                if *next == pages.len() {
                    CheckpointWork::Synchronise
                } else {
                    CheckpointWork::None
                }
            }
            Stage::Synchronising { goal } if written >= *goal => CheckpointWork::Flush,
            Stage::Synchronising { .. } => CheckpointWork::None,
        }
    }

    /// When the last checkpoint began.
    pub(crate) fn begun(&self) -> Nanos {
        self.begun
    }

    /// How much of the way to the next checkpoint has passed, by time or by the amount of log: 1
    /// when it is due.
    pub(crate) fn place(&self, now: Nanos, inserted: u64) -> f64 {
        let by_time = (now - self.begun).0 as f64 / self.timeout.0 as f64;
        by_time.max(self.place_by_log(inserted))
    }

    fn place_by_log(&self, inserted: u64) -> f64 {
        (inserted - self.begun_at) as f64 / self.log_bytes as f64
    }

    /// Whatever was handed to the kernel is on the volume: a checkpoint that waits for it is
    /// complete.
    pub(crate) fn end_if_written(&mut self) {
        if matches!(self.stage, Stage::Synchronising { .. } | Stage::Flushing) {
            self.stage = Stage::Idle;
        }
    }

    /// Begins with these dirty pages.
    pub(crate) fn begin(&mut self, now: Nanos, inserted: u64, mut pages: Vec<PageId>) {
        // PostgreSQL writes the pages of a checkpoint in the order of the files, which makes
        // neighbours one request.
        pages.sort_unstable();
        self.begun = now;
        self.begun_at = inserted;
        self.number += 1;
        self.stage = Stage::Writing { pages, next: 0 };
    }

    /// The kernel writes until that many pages are written.
    pub(crate) fn synchronise(&mut self, goal: u64) {
        self.stage = Stage::Synchronising { goal };
    }

    /// The volume is being flushed.
    pub(crate) fn flush(&mut self) {
        self.stage = Stage::Flushing;
    }

    /// The volume is flushed: the checkpoint is complete, unless time was skipped and the next one
    /// has begun.
    pub(crate) fn end(&mut self) {
        if matches!(self.stage, Stage::Flushing) {
            self.stage = Stage::Idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CheckpointWork, Checkpointer, WriteBack};
    use crate::page::PageId;
    use underlay_core::Nanos;

    #[test]
    fn a_checkpoint_is_spread_over_its_target() {
        let mut checkpointer = Checkpointer::new(Nanos::from_secs(100), 0.5, 1_500);
        let mut due = Vec::new();
        let mut work = |checkpointer: &mut Checkpointer, seconds, inserted, written| {
            due.clear();
            let work = checkpointer.work(Nanos::from_secs(seconds), inserted, written, &mut due);
            (work, due.len())
        };
        assert_eq!(work(&mut checkpointer, 99, 999, 0), (CheckpointWork::None, 0));
        assert_eq!(
            work(&mut checkpointer, 1, 1_000, 0).0,
            CheckpointWork::Begin { is_forced: true }
        );
        assert_eq!(
            work(&mut checkpointer, 100, 0, 0).0,
            CheckpointWork::Begin { is_forced: false }
        );
        let pages = (0..100).map(|block| PageId::new(0, block)).collect();
        checkpointer.begin(Nanos::from_secs(100), 0, pages);
        assert_eq!(work(&mut checkpointer, 105, 0, 0), (CheckpointWork::None, 10));
        assert_eq!(work(&mut checkpointer, 106, 200, 0), (CheckpointWork::None, 30), "by the log");
        assert_eq!(work(&mut checkpointer, 150, 200, 0), (CheckpointWork::Synchronise, 60));
        checkpointer.synchronise(7);
        assert_eq!(work(&mut checkpointer, 151, 200, 6), (CheckpointWork::None, 0));
        assert_eq!(work(&mut checkpointer, 152, 200, 7), (CheckpointWork::Flush, 0));
        checkpointer.flush();
        assert_eq!(work(&mut checkpointer, 900, 200, 7), (CheckpointWork::None, 0));
        checkpointer.end();
        assert_eq!(work(&mut checkpointer, 199, 0, 7).0, CheckpointWork::None);
        assert_eq!(
            work(&mut checkpointer, 200, 0, 7).0,
            CheckpointWork::Begin { is_forced: false }
        );
    }

    #[test]
    fn neighbours_are_written_together_and_the_kernel_waits_with_the_rest() {
        let mut kernel = WriteBack::new(1_000);
        for block in [4, 5, 6, 9] {
            kernel.push_urgent(PageId::new(1, block));
        }
        kernel.push_lazy(Nanos::ZERO, PageId::new(0, 1));
        let now = Nanos::from_secs(29);
        assert_eq!(kernel.next_run(now), Some((PageId::new(1, 4), 3)));
        assert_eq!(kernel.next_run(now), Some((PageId::new(1, 9), 1)));
        assert_eq!(kernel.next_run(now), None);
        assert_eq!(kernel.next_run(Nanos::from_secs(30)), Some((PageId::new(0, 1), 1)));
        for block in 0..201 {
            kernel.push_lazy(now, PageId::new(2, block));
            assert_eq!(kernel.is_over_limit(), block == 200);
        }
        assert!(kernel.next_run(now).is_some(), "more than a tenth of the page cache is dirty");
        assert_eq!(kernel.synchronise(), 206);
        assert_eq!(kernel.next_run(now), Some((PageId::new(2, 1), 32)));
        assert_eq!(kernel.written(), 0, "begun is not written");
        kernel.complete(now);
        assert_eq!(kernel.written(), 3);
    }

    #[test]
    fn a_page_that_waits_is_written_once() {
        let mut kernel = WriteBack::new(1_000);
        let now = Nanos::from_secs(1);
        let [page, other] = [1, 3].map(|block| PageId::new(0, block));
        kernel.push_lazy(now, page);
        kernel.push_lazy(now, other);
        kernel.push_urgent(page);
        kernel.push_urgent(page);
        kernel.push_lazy(now, page);
        assert_eq!((kernel.waiting(), kernel.counters.merged_pages), (2, 3));
        assert_eq!(kernel.next_run(now), Some((page, 1)));
        assert_eq!(kernel.next_run(now), None, "the other one is not old");
        kernel.push_lazy(now, page);
        assert_eq!(kernel.waiting(), 2, "a change while the page is being written is a new one");
        let later = Nanos::from_secs(31);
        let runs = [(); 3].map(|()| kernel.next_run(later));
        assert_eq!(runs, [Some((other, 1)), Some((page, 1)), None]);
        assert_eq!((kernel.waiting(), kernel.counters.written_pages), (0, 3));
        (0..3).for_each(|_| kernel.complete(later));
        assert_eq!(kernel.synchronise(), kernel.written(), "nothing is left");
    }
}
