//! InnoDB's page cleaner: when it flushes which pages, and how they get to the volume through the
//! doublewrite buffer.
//!
//! One thread works in rounds, as in MariaDB 10.11 (storage/innobase/buf/buf0flu.cc,
//! `buf_flush_page_cleaner`). A round flushes some of the pages that were changed first, and then
//! fills the list of free frames from the end of the LRU list. The next one begins when its pages
//! were handed to the volume:
//!
//! * with a hard target, at once, after their writes. Sessions wait until the checkpoint follows;
//! * with a soft target, after a second, or at once if frames are needed;
//! * without a target, but with few free frames, at once, and only for frames;
//! * otherwise after a second ([`crate::adaptive_flushing`]); and not at all once there was nothing
//!   to flush, until a target, a lack of frames or the share of dirty pages wakes it.
//!
//! Targets are positions of the log up to which pages are flushed. Records that are logged while
//! the checkpoint is older than a limit set them (mtr0mtr.cc, `log_close`; `buf_flush_ahead`). A soft
//! target takes only what is older than its limit. It wakes a cleaner that sleeps, and does not cut
//! the second between two rounds short.
//!
//! Pages go through the doublewrite buffer in batches (buf0dblwr.cc). A batch is written to it and
//! flushed; then its pages are written to their places, and the data files flushed. The next batch
//! begins after that, and is filled meanwhile. A page is latched from when it enters a batch until
//! it is written: sessions can read it, and wait to change it.

use crate::adaptive_flushing::{AdaptiveFlushing, Averages, FlushRates, Found};
use crate::page::PageId;
use crate::redo_limits::RedoLimits;
use crate::settings::InnodbSettings;
use std::collections::VecDeque;
use underlay_core::Nanos;

/// Pages of a batch of the doublewrite buffer: two extents of 64 pages.
const BATCH_PAGES: usize = 128;
/// Pages of a request of a batch: of a buffer in memory the kernel puts 128 pages of 4 KiB into a request (loop
/// devices, `max_segments`). A drive tells the beginning of a long write from scattered ones less well than its end.
const PIECE_PAGES: usize = 32;
/// Page writes under way at most without the doublewrite buffer; more would wait in the device.
const UNDER_WAY_MAX: usize = 256;
/// How long the cleaner waits where nothing wakes it.
const ROUND: Nanos = Nanos::from_secs(1);

/// Where the batch in hand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is none.
    Idle,
    /// It is written to the doublewrite buffer: its pages that are on their way or there, and the pieces that are on
    /// their way.
    Doublewrite { sent: usize, under_way: usize },
    /// The doublewrite buffer is flushed.
    Flush,
    /// Its pages are written to their places: those that are on their way or there.
    Pages { sent: usize },
    /// The data files are flushed.
    FlushData,
}

/// The next thing to ask of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CleanerRequest {
    /// Write so many pages to the doublewrite buffer, behind so many others.
    Doublewrite { behind: u32, pages: u32 },
    /// Write this page to its place.
    Page(PageId),
}

/// What the cleaner does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CleanerWork {
    /// It has chosen so many of the pages that were changed first.
    Oldest { pages: usize },
    /// Frames are to be freed at the end of the LRU list. At most so many dirty pages that are
    /// found there are to be handed to [`Cleaner::choose_tail`].
    Tail { most: usize },
}

/// What the pool is like when a round may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolState {
    pub(crate) dirty: u32,
    pub(crate) frames: u32,
    /// Few frames are free, or sessions wait for one (`buf_pool_t::need_LRU_eviction`).
    pub(crate) needs_frames: bool,
}

/// The cleaner.
#[derive(Clone, Debug)]
pub(crate) struct Cleaner {
    io_capacity: usize,
    io_capacity_max: usize,
    lru_scan_depth: usize,
    is_doublewrite: bool,
    flushing: AdaptiveFlushing,
    rates: FlushRates,
    limits: RedoLimits,
    /// The position from which recovery would begin.
    checkpoint: u64,
    /// Positions up to which pages are flushed; 0 for none.
    soft_target: u64,
    hard_target: u64,
    /// It was woken while it had nothing to do.
    is_signalled: bool,
    /// It sleeps until it is woken.
    is_idle: bool,
    /// When the last round began.
    begun: Nanos,
    /// The present round ends with the end of the LRU list, with at most so many pages of it.
    tail: Option<usize>,
    /// Pages that were flushed since the round before the last one without a target.
    last_pages: u64,
    /// Dirty pages in the order of their first change, with the log position of it. May name pages
    /// that were written since.
    changed: VecDeque<(u64, PageId)>,
    /// How many of the first of them were chosen.
    chosen_oldest: usize,
    /// Chosen and in no batch.
    chosen: VecDeque<PageId>,
    /// The next batch.
    filling: Vec<PageId>,
    /// The batch in hand.
    batch: Vec<PageId>,
    stage: Stage,
    /// Page writes that are under way.
    under_way: usize,
}

impl Cleaner {
    pub(crate) fn new(settings: &InnodbSettings) -> Cleaner {
        Cleaner {
            io_capacity: settings.io_capacity as usize,
            io_capacity_max: settings.io_capacity_max as usize,
            lru_scan_depth: settings.lru_scan_depth as usize,
            is_doublewrite: settings.doublewrite,
            flushing: AdaptiveFlushing::new(settings),
            rates: FlushRates::default(),
            limits: RedoLimits::new(settings.log_file_size),
            checkpoint: 0,
            soft_target: 0,
            hard_target: 0,
            is_signalled: false,
            is_idle: false,
            begun: Nanos::ZERO,
            tail: None,
            last_pages: 0,
            changed: VecDeque::new(),
            chosen_oldest: 0,
            chosen: VecDeque::new(),
            filling: Vec::new(),
            batch: Vec::new(),
            stage: Stage::Idle,
            under_way: 0,
        }
    }

    /// A clean page was changed, at a position of the log.
    pub(crate) fn push_changed(&mut self, position: u64, page: PageId) {
        self.changed.push_back((position, page));
    }

    /// The log position of the oldest change that is not written; `position` when there is none.
    /// `changed_at` says that of a page, none of a clean one. A page is dirty until its write is
    /// done.
    fn oldest(&mut self, position: u64, changed_at: impl Fn(PageId) -> Option<u64>) -> u64 {
        while let Some(&(since, page)) = self.changed.front() {
            // The page may have been written and changed again since: then a later entry names it.
            if changed_at(page) == Some(since) {
                return since;
            }
            self.changed.pop_front();
            self.chosen_oldest = self.chosen_oldest.saturating_sub(1);
        }
        position
    }

    /// Whether sessions have to wait before they write more log (`log_checkpoint_margin`).
    pub(crate) fn is_log_full(&self, position: u64) -> bool {
        position - self.checkpoint > self.limits.hard_age
    }

    /// Records were logged up to `position`. Whether the cleaner has a reason to begin a round
    /// (`log_close`, `buf_flush_ahead`).
    pub(crate) fn logged(&mut self, position: u64) -> bool {
        let age = position - self.checkpoint;
        if age <= self.limits.soft_age {
            return false;
        }
        let did_sleep = std::mem::replace(&mut self.is_idle, false);
        let is_hard = age > self.limits.hard_age;
        if is_hard {
            // Everything that was changed by now.
            self.hard_target = position;
        } else {
            self.soft_target = position - self.limits.soft_age;
        }
        let wakes = is_hard || did_sleep;
        // A signal is lost while the cleaner is at work.
        self.is_signalled |= wakes && self.waiting() == 0;
        wakes
    }

    /// When the cleaner may begin a round though nothing wakes it, after `now`.
    pub(crate) fn next_timer(&self, now: Nanos) -> Nanos {
        let due = self.begun + ROUND;
        if due > now { due } else { now + ROUND }
    }

    /// Makes a checkpoint and begins the next piece of work, if one is due. Only when all chosen
    /// pages were handed to the volume.
    pub(crate) fn begin(
        &mut self,
        now: Nanos,
        position: u64,
        pool: &PoolState,
        changed_at: impl Fn(PageId) -> Option<u64>,
    ) -> Option<CleanerWork> {
        debug_assert_eq!(self.waiting(), 0, "one thread does one thing at a time");
        if let Some(most) = self.tail.take() {
            return Some(CleanerWork::Tail { most });
        }
        let is_done = self.is_done();
        let is_due = self.is_signalled || now >= self.begun + ROUND;
        if !is_done && !is_due {
            return None;
        }
        let oldest = self.oldest(position, &changed_at);
        self.checkpoint = self.checkpoint.max(oldest);
        if oldest >= self.hard_target {
            self.hard_target = 0;
        }
        if oldest >= self.soft_target {
            self.soft_target = 0;
        }
        let has_target = self.hard_target > 0 || self.soft_target > 0;
        if self.hard_target > 0 {
            // Its own writes must be done (`buf_flush_sync_for_checkpoint`).
            if !is_done {
                return None;
            }
            self.begin_round(now);
            self.last_pages = 0;
            self.tail = pool.needs_frames.then_some(self.io_capacity);
            let pages = self.choose_oldest(self.io_capacity_max, self.hard_target, changed_at);
            return Some(CleanerWork::Oldest { pages });
        }
        if pool.needs_frames && !has_target {
            if !is_done {
                return None;
            }
            self.begin_round(now);
            return Some(CleanerWork::Tail { most: self.io_capacity_max });
        }
        if !(is_due || has_target && pool.needs_frames) {
            return None;
        }
        self.begin_round(now);
        let pages = if has_target {
            self.choose_oldest(self.io_capacity_max, self.soft_target, changed_at)
        } else {
            let pages = self.recommend(now, position, oldest, pool, &changed_at)?;
            let pages = self.choose_oldest(pages, u64::MAX, changed_at);
            self.last_pages = pages as u64;
            pages
        };
        let rest = self.io_capacity_max.saturating_sub(pages);
        self.tail = Some(rest.max(self.io_capacity_max.min(self.lru_scan_depth)));
        Some(CleanerWork::Oldest { pages })
    }

    /// Whether everything that it handed to the volume is written.
    fn is_done(&self) -> bool {
        self.batch.is_empty() && self.under_way == 0
    }

    fn begin_round(&mut self, now: Nanos) {
        self.begun = now;
        self.is_signalled = false;
    }

    /// How many pages a round without a target flushes; none if the cleaner sleeps.
    fn recommend(
        &mut self,
        now: Nanos,
        position: u64,
        oldest: u64,
        pool: &PoolState,
        changed_at: impl Fn(PageId) -> Option<u64>,
    ) -> Option<usize> {
        let found =
            Found { age: position - oldest, dirty: pool.dirty.into(), frames: pool.frames.into() };
        if self.is_idle && self.flushing.sleeps_on(&found) {
            return None;
        }
        self.is_idle = !self.flushing.is_due(&found);
        if self.is_idle {
            return None;
        }
        let averages = if self.flushing.is_young(found.age) {
            self.rates.restart(now, position);
            None
        } else if self.rates.count(now, position, self.last_pages) {
            let until = oldest + self.rates.scanned_log();
            let aged = self.changed.iter().take_while(|(since, _)| *since <= until);
            let aged = aged.filter(|(since, page)| changed_at(*page) == Some(*since));
            Some(Averages {
                pages_per_second: self.rates.pages_per_second(),
                aged_pages: aged.take(self.io_capacity_max).count() as u64,
            })
        } else {
            None
        };
        Some(self.flushing.pages(&found, averages) as usize)
    }

    /// Chooses so many of the pages that were changed first, and before a position. How many there
    /// were (`buf_do_flush_list_batch`).
    fn choose_oldest(
        &mut self,
        most: usize,
        before: u64,
        changed_at: impl Fn(PageId) -> Option<u64>,
    ) -> usize {
        let mut pages = 0;
        while pages < most {
            let Some(&(since, page)) = self.changed.get(self.chosen_oldest) else { break };
            if since >= before {
                break;
            }
            self.chosen_oldest += 1;
            if changed_at(page) == Some(since) {
                self.chosen.push_back(page);
                pages += 1;
            }
        }
        pages
    }

    /// Chooses dirty pages of the end of the LRU list, where frames were freed.
    pub(crate) fn choose_tail(&mut self, pages: Vec<PageId>) {
        self.is_idle = false;
        self.last_pages += pages.len() as u64;
        self.chosen.extend(pages);
    }

    /// Pages that are chosen and that the cleaner has not handed over yet. It waits until the batch before has ended.
    pub(crate) fn waiting(&self) -> usize {
        self.chosen.len() + self.filling.len()
    }

    /// What to ask of the volume now. `begin_write` latches a page, and says no to one that is not dirty or is latched:
    /// nothing is written twice for one change.
    pub(crate) fn next_request(
        &mut self,
        mut begin_write: impl FnMut(PageId) -> bool,
    ) -> Option<CleanerRequest> {
        if !self.is_doublewrite {
            while self.under_way < UNDER_WAY_MAX
                && let Some(page) = self.chosen.pop_front()
            {
                if begin_write(page) {
                    return Some(self.write_page(page));
                }
            }
            return None;
        }
        while self.filling.len() < BATCH_PAGES
            && let Some(page) = self.chosen.pop_front()
        {
            if begin_write(page) {
                self.filling.push(page);
            }
        }
        // What was chosen is handed over to the last page, so the loop above leaves a batch that is whole or the last one.
        if self.stage == Stage::Idle && !self.filling.is_empty() {
            std::mem::swap(&mut self.filling, &mut self.batch);
            self.stage = Stage::Doublewrite { sent: 0, under_way: 0 };
        }
        match &mut self.stage {
            Stage::Doublewrite { sent, under_way } if *sent < self.batch.len() => {
                let behind = *sent as u32;
                let pages = (self.batch.len() - *sent).min(PIECE_PAGES);
                *sent += pages;
                *under_way += 1;
                Some(CleanerRequest::Doublewrite { behind, pages: pages as u32 })
            }
            Stage::Pages { sent } if *sent < self.batch.len() => {
                let page = self.batch[*sent];
                *sent += 1;
                Some(self.write_page(page))
            }
            _ => None,
        }
    }

    fn write_page(&mut self, page: PageId) -> CleanerRequest {
        self.under_way += 1;
        CleanerRequest::Page(page)
    }

    /// The next chosen page, of a database at rest whose writes take no time.
    pub(crate) fn next_at_once(&mut self) -> Option<PageId> {
        self.chosen.pop_front()
    }

    /// A piece of the batch is in the doublewrite buffer. Whether it was the last one, and the buffer must be flushed.
    pub(crate) fn doublewritten(&mut self) -> bool {
        let Stage::Doublewrite { sent, under_way } = &mut self.stage else { return false };
        *under_way -= 1;
        let is_last = *under_way == 0 && *sent == self.batch.len();
        if is_last {
            self.stage = Stage::Flush;
        }
        is_last
    }

    /// A page is written. Whether it was the last one of its batch, and the data files must be flushed.
    pub(crate) fn page_written(&mut self) -> bool {
        self.under_way -= 1;
        let is_last = self.under_way == 0 && self.stage == Stage::Pages { sent: self.batch.len() };
        if is_last {
            self.stage = Stage::FlushData;
        }
        is_last
    }

    /// The volume is flushed: the pages of the batch can be written to their places, or it has ended.
    pub(crate) fn flushed(&mut self) {
        match self.stage {
            Stage::Flush => self.stage = Stage::Pages { sent: 0 },
            Stage::FlushData => {
                self.batch.clear();
                self.stage = Stage::Idle;
            }
            Stage::Idle | Stage::Doublewrite { .. } | Stage::Pages { .. } => {
                unreachable!("nobody flushes the volume for a batch in stage {:?}", self.stage)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_PAGES, Cleaner, CleanerRequest, CleanerWork, PoolState};
    use crate::page::PageId;
    use crate::settings::InnodbSettings;
    use underlay_core::Nanos;

    /// The limits of the default log.
    const SOFT: u64 = 70_717_088;
    const HARD: u64 = 80_819_529;
    const PAGES: u32 = 3_000;

    fn cleaner(doublewrite: bool) -> Cleaner {
        Cleaner::new(&InnodbSettings { doublewrite, ..InnodbSettings::default() })
    }

    fn pool(needs_frames: bool) -> PoolState {
        PoolState { dirty: 4_000, frames: 8_192, needs_frames }
    }

    /// A cleaner of pages that were changed at the positions of their numbers.
    fn changed() -> (Cleaner, Vec<bool>) {
        let mut cleaner = cleaner(false);
        (0..PAGES).for_each(|block| cleaner.push_changed(block.into(), PageId::new(0, block)));
        (cleaner, vec![true; PAGES as usize])
    }

    fn changed_at(dirty: &[bool]) -> impl Fn(PageId) -> Option<u64> + '_ {
        move |page: PageId| dirty[page.block() as usize].then_some(page.block().into())
    }

    /// Writes everything that is chosen; a page is clean when its write is done.
    fn write_all(cleaner: &mut Cleaner, dirty: &mut [bool]) {
        let mut under_way = Vec::new();
        loop {
            match cleaner.next_request(|page| dirty[page.block() as usize]) {
                Some(CleanerRequest::Page(page)) => under_way.push(page),
                Some(CleanerRequest::Doublewrite { .. }) => unreachable!("it is off"),
                None if under_way.is_empty() => return,
                None => {
                    for page in under_way.drain(..) {
                        dirty[page.block() as usize] = false;
                        assert!(!cleaner.page_written(), "no batch ends");
                    }
                }
            }
        }
    }

    #[test]
    fn a_batch_goes_through_the_doublewrite_buffer_before_the_next_one() {
        let mut cleaner = cleaner(true);
        cleaner.choose_tail((0..200).map(|block| PageId::new(0, block)).collect());
        let batch = BATCH_PAGES as u32;
        let next = |cleaner: &mut Cleaner| cleaner.next_request(|_| true);
        let piece = |behind, pages| Some(CleanerRequest::Doublewrite { behind, pages });
        for behind in [0, 32, 64, 96] {
            assert_eq!(next(&mut cleaner), piece(behind, 32), "all pieces at once");
        }
        assert_eq!(next(&mut cleaner), None, "one batch at a time");
        assert_eq!(cleaner.waiting(), 72, "the next one is filled");
        let are_last = [(); 4].map(|()| cleaner.doublewritten());
        assert_eq!(are_last, [false, false, false, true]);
        assert_eq!(next(&mut cleaner), None, "not before it is flushed");
        cleaner.flushed();
        for block in 0..batch {
            let page = PageId::new(0, block);
            assert_eq!(next(&mut cleaner), Some(CleanerRequest::Page(page)));
        }
        for left in (0..batch).rev() {
            assert_eq!(next(&mut cleaner), None, "its pages are not written");
            assert_eq!(cleaner.page_written(), left == 0);
        }
        assert_eq!(next(&mut cleaner), None, "they are not flushed");
        cleaner.flushed();
        for (behind, pages) in [(0, 32), (32, 32), (64, 8)] {
            assert_eq!(next(&mut cleaner), piece(behind, pages));
        }
        assert_eq!((next(&mut cleaner), cleaner.waiting()), (None, 0));
        assert!(!cleaner.is_done(), "handed over, and not written");
    }

    #[test]
    fn a_page_that_cannot_be_latched_is_in_no_batch() {
        let mut cleaner = cleaner(true);
        cleaner.choose_tail((0..4).map(|block| PageId::new(0, block)).collect());
        let first = cleaner.next_request(|page| page.block() % 2 == 1);
        assert_eq!(first, Some(CleanerRequest::Doublewrite { behind: 0, pages: 2 }));
        assert!(cleaner.doublewritten());
        cleaner.flushed();
        for block in [1, 3] {
            let page = CleanerRequest::Page(PageId::new(0, block));
            assert_eq!(cleaner.next_request(|_| false), Some(page));
        }
        assert_eq!(cleaner.next_request(|_| false), None);
        cleaner.choose_tail(vec![PageId::new(0, 0)]);
        assert_eq!(cleaner.next_request(|_| false), None);
        assert_eq!(cleaner.waiting(), 0, "an empty batch is none");
    }

    #[test]
    fn the_oldest_change_is_that_of_a_page_that_is_still_dirty() {
        let mut cleaner = cleaner(false);
        let page = |block| PageId::new(0, block);
        for (position, block) in [(10, 1), (20, 2), (30, 1)] {
            cleaner.push_changed(position, page(block));
        }
        // Page 1 was written and changed again at 30.
        let changed_at = |asked: PageId| Some(if asked == page(1) { 30 } else { 20 });
        assert_eq!(cleaner.oldest(99, changed_at), 20);
        assert_eq!(cleaner.choose_oldest(2, 30, changed_at), 1, "30 is not before 30");
        assert_eq!(cleaner.oldest(99, changed_at), 20, "chosen is not written");
        assert_eq!(cleaner.next_request(|_| true), Some(CleanerRequest::Page(page(2))));
        assert_eq!(cleaner.oldest(99, changed_at), 20, "its write is not done");
        assert!(!cleaner.page_written());
        let changed_at = |asked: PageId| (asked == page(1)).then_some(30);
        assert_eq!(cleaner.oldest(99, changed_at), 30);
        assert_eq!(cleaner.choose_oldest(2, u64::MAX, changed_at), 1);
        cleaner.choose_tail(vec![page(1), page(2)]);
        let mut is_latched = false;
        let mut latch = |asked| asked == page(1) && !std::mem::replace(&mut is_latched, true);
        assert_eq!(cleaner.next_request(&mut latch), Some(CleanerRequest::Page(page(1))));
        assert_eq!(cleaner.next_request(&mut latch), None, "chosen twice and written once");
        assert_eq!(cleaner.oldest(99, |_| None), 99);
    }

    #[test]
    fn a_soft_target_flushes_what_is_older_than_its_limit() {
        let (mut cleaner, mut dirty) = changed();
        cleaner.is_idle = true;
        let early = Nanos::from_millis(500);
        assert!(!cleaner.logged(SOFT), "not beyond the limit");
        assert_eq!(cleaner.begin(early, SOFT, &pool(false), changed_at(&dirty)), None);
        let end = SOFT + 2_500;
        assert!(cleaner.logged(end) && !cleaner.is_log_full(end), "it slept");
        let begin = |cleaner: &mut Cleaner, dirty: &mut [bool], millis| {
            let now = Nanos::from_millis(millis);
            let work = cleaner.begin(now, end, &pool(false), changed_at(dirty));
            write_all(cleaner, dirty);
            work
        };
        let oldest = |pages| Some(CleanerWork::Oldest { pages });
        assert_eq!(begin(&mut cleaner, &mut dirty, 500), oldest(2_000), "at once");
        assert_eq!(begin(&mut cleaner, &mut dirty, 500), Some(CleanerWork::Tail { most: 1_536 }));
        assert!(!cleaner.logged(end), "it does not sleep");
        assert_eq!(begin(&mut cleaner, &mut dirty, 1_499), None, "a second later");
        assert_eq!(begin(&mut cleaner, &mut dirty, 1_500), oldest(500), "those before the target");
        assert_eq!(cleaner.checkpoint, 2_000);
        assert_eq!(begin(&mut cleaner, &mut dirty, 1_500), Some(CleanerWork::Tail { most: 1_536 }));
        assert!(!cleaner.logged(SOFT + 2_000), "the checkpoint follows");
        assert_eq!(begin(&mut cleaner, &mut dirty, 1_600), None);
        assert_eq!((cleaner.soft_target, cleaner.checkpoint), (0, 2_500));
    }

    #[test]
    fn sessions_wait_until_a_hard_target_has_moved_the_checkpoint() {
        let (mut cleaner, mut dirty) = changed();
        let end = HARD + 1;
        assert!(!cleaner.is_log_full(HARD) && cleaner.is_log_full(end));
        assert!(cleaner.logged(end));
        let begin = |cleaner: &mut Cleaner, dirty: &[bool]| {
            cleaner.begin(Nanos::ZERO, end, &pool(false), changed_at(dirty))
        };
        let oldest = |pages| Some(CleanerWork::Oldest { pages });
        assert_eq!(begin(&mut cleaner, &dirty), oldest(2_000));
        assert!(cleaner.is_log_full(end), "chosen is not written");
        write_all(&mut cleaner, &mut dirty);
        assert!(cleaner.is_log_full(end), "written, but without a checkpoint");
        assert_eq!(begin(&mut cleaner, &dirty), oldest(1_000), "at once, up to the target");
        assert!(!cleaner.is_log_full(end));
        write_all(&mut cleaner, &mut dirty);
        assert_eq!(begin(&mut cleaner, &dirty), None);
        assert_eq!((cleaner.hard_target, cleaner.checkpoint), (0, end));
    }

    #[test]
    fn rounds_without_a_target_are_a_second_apart_and_give_way_to_frames() {
        let (mut cleaner, mut dirty) = changed();
        let position = 20_000_000;
        let mut begin = |cleaner: &mut Cleaner, millis, needs_frames| {
            let now = Nanos::from_millis(millis);
            let work = cleaner.begin(now, position, &pool(needs_frames), changed_at(&dirty));
            write_all(cleaner, &mut dirty);
            work
        };
        let tail = |most| Some(CleanerWork::Tail { most });
        let oldest = |pages| Some(CleanerWork::Oldest { pages });
        assert_eq!(begin(&mut cleaner, 100, true), tail(2_000), "only frames");
        assert_eq!(begin(&mut cleaner, 1_000, false), None, "a second later");
        assert_eq!(begin(&mut cleaner, 1_100, false), oldest(200), "no averages yet");
        assert_eq!(begin(&mut cleaner, 1_100, false), tail(1_800));
        assert_eq!(begin(&mut cleaner, 2_100, false), oldest(67));
        assert_eq!(begin(&mut cleaner, 2_100, false), tail(1_933));
        assert_eq!(cleaner.next_timer(Nanos::from_millis(2_200)), Nanos::from_millis(3_100));
    }
}
