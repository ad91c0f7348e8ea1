//! InnoDB's page cleaner: how many pages it flushes, and how they get to the volume through the
//! doublewrite buffer.
//!
//! Once a second it decides how many of the pages that were changed first are written, from the age
//! of the checkpoint, the share of dirty pages and the rates of the last seconds
//! (`page_cleaner_flush_pages_recommendation`). Near the capacity of the log it writes as fast as
//! it can. Pages at the tail of the LRU list are written so that sessions find clean ones. A batch
//! is first written in one piece to the doublewrite buffer and flushed, then page by page.

use crate::page::PageId;
use crate::settings::InnodbSettings;
use std::collections::VecDeque;

/// Pages of a batch of the doublewrite buffer: two extents of 64 pages.
const BATCH_PAGES: usize = 128;
/// Page writes in flight at most: what fits two batches; more would wait in the device.
const IN_FLIGHT_MAX: usize = 256;
/// Seconds over which rates are averaged (`innodb_flushing_avg_loops`).
const AVERAGE_SECONDS: f64 = 30.0;
/// Share of the log file that a checkpoint may be old (the rest is a margin), and of that share the
/// one beyond which the cleaner does not wait for its second (7/8).
const CAPACITY_PERCENT: u64 = 90;

/// What the cleaner does with its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    /// The batch is written to the doublewrite buffer.
    Doublewrite,
    /// The doublewrite buffer is flushed.
    Flush,
}

/// The next thing to ask of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CleanerRequest {
    /// Write so many pages to the doublewrite buffer.
    Doublewrite { pages: u32 },
    /// Write this page to its place.
    Page(PageId),
}

/// The cleaner.
#[derive(Clone, Debug)]
pub(crate) struct Cleaner {
    io_capacity: f64,
    io_capacity_max: f64,
    dirty_max_percent: f64,
    dirty_low_percent: f64,
    is_doublewrite: bool,
    /// Age of the checkpoint at which sessions wait.
    capacity: u64,
    /// Dirty pages in the order of their first change, with the log position of it. May name pages
    /// that were written since.
    changed: VecDeque<(u64, PageId)>,
    /// How many of the first of them were chosen.
    chosen_oldest: usize,
    /// Chosen and not begun.
    chosen: VecDeque<PageId>,
    /// On the way through the doublewrite buffer.
    batch: Vec<PageId>,
    /// Through it.
    ready: VecDeque<PageId>,
    stage: Stage,
    /// The first change of each page that is being written, in the order in which they were begun.
    in_flight: VecDeque<u64>,
    flushed_this_second: u64,
    page_rate: f64,
    log_rate: f64,
    log_before: u64,
}

impl Cleaner {
    pub(crate) fn new(settings: &InnodbSettings) -> Cleaner {
        let io_capacity = f64::from(settings.io_capacity);
        Cleaner {
            io_capacity,
            io_capacity_max: f64::from(settings.io_capacity_max),
            dirty_max_percent: settings.max_dirty_pages_pct,
            dirty_low_percent: settings.max_dirty_pages_pct_lwm,
            is_doublewrite: settings.doublewrite,
            capacity: settings.log_file_size.0 / 100 * CAPACITY_PERCENT,
            changed: VecDeque::new(),
            chosen_oldest: 0,
            chosen: VecDeque::new(),
            batch: Vec::new(),
            ready: VecDeque::new(),
            stage: Stage::Idle,
            in_flight: VecDeque::new(),
            flushed_this_second: 0,
            page_rate: 0.0,
            log_rate: 0.0,
            log_before: 0,
        }
    }

    /// A clean page was changed, at a position of the log.
    pub(crate) fn push_changed(&mut self, position: u64, page: PageId) {
        self.changed.push_back((position, page));
    }

    /// The log position of the oldest change that is not written; `position` when there is none.
    /// `changed_at` says that of a page, none of a clean one. A page counts until its write is done.
    pub(crate) fn oldest(
        &mut self,
        position: u64,
        changed_at: impl Fn(PageId) -> Option<u64>,
    ) -> u64 {
        let under_way = self.in_flight.iter().copied().min().unwrap_or(position);
        while let Some(&(since, page)) = self.changed.front() {
            // The page may have been written and changed again since: then a later entry names it.
            if changed_at(page) == Some(since) {
                return since.min(under_way);
            }
            self.changed.pop_front();
            self.chosen_oldest = self.chosen_oldest.saturating_sub(1);
        }
        under_way
    }

    /// Whether sessions have to wait before they write more log.
    pub(crate) fn is_log_full(&self, age: u64) -> bool {
        age > self.capacity
    }

    /// Whether the cleaner writes as fast as it can.
    pub(crate) fn is_furious(&self, age: u64) -> bool {
        age > self.capacity / 8 * 7
    }

    /// A second has passed: how many pages to flush in the next one.
    pub(crate) fn recommend(&mut self, position: u64, age: u64, dirty: u32, frames: u32) -> usize {
        let average = |old: f64, new: f64| old + (new - old) / AVERAGE_SECONDS;
        let flushed = std::mem::take(&mut self.flushed_this_second) as f64;
        self.page_rate = average(self.page_rate, flushed);
        self.log_rate = average(self.log_rate, (position - self.log_before) as f64);
        self.log_before = position;
        let dirty_percent = f64::from(dirty) * 100.0 / f64::from(frames);
        // Below a tenth of the log, age alone is no reason (`innodb_adaptive_flushing_lwm`).
        let age_percent = age as f64 * 100.0 / self.capacity as f64;
        let is_aged = age_percent > 10.0;
        let is_dirty = if self.dirty_low_percent > 0.0 {
            dirty_percent >= self.dirty_low_percent
        } else {
            dirty_percent >= self.dirty_max_percent
        };
        if !is_aged && !is_dirty {
            return 0;
        }
        let for_dirty = match (is_dirty, self.dirty_low_percent > 0.0) {
            (false, _) => 0.0,
            (true, true) => dirty_percent * 100.0 / (self.dirty_max_percent + 1.0),
            (true, false) => 100.0,
        };
        let for_log = if is_aged {
            self.io_capacity_max / self.io_capacity * age_percent * age_percent.sqrt() / 7.5
        } else {
            0.0
        };
        let by_percent = self.io_capacity * for_dirty.max(for_log) / 100.0;
        // Pages that must leave for the checkpoint to keep up with the log.
        let left = self.changed.range(self.chosen_oldest..);
        let first = left.clone().next().map_or(position, |(since, _)| *since);
        let until = first + (3.0 * self.log_rate) as u64;
        let aged = left.take_while(|(since, _)| *since <= until).count();
        let for_pace = (aged as f64 / 3.0).min(self.io_capacity_max * 2.0);
        let pages = (by_percent + self.page_rate + for_pace) / 3.0;
        pages.min(self.io_capacity_max) as usize
    }

    /// Chooses so many of the pages that were changed first.
    pub(crate) fn choose_oldest(
        &mut self,
        mut pages: usize,
        changed_at: impl Fn(PageId) -> Option<u64>,
    ) {
        while pages > 0 {
            let Some(&(since, page)) = self.changed.get(self.chosen_oldest) else { return };
            self.chosen_oldest += 1;
            if changed_at(page) == Some(since) {
                self.chosen.push_back(page);
                pages -= 1;
            }
        }
    }

    /// Chooses these pages.
    pub(crate) fn choose(&mut self, pages: impl Iterator<Item = PageId>) {
        self.chosen.extend(pages);
    }

    /// Pages that are chosen and not yet on their way.
    pub(crate) fn waiting(&self) -> usize {
        self.chosen.len() + self.batch.len() + self.ready.len()
    }

    /// What to ask of the volume now. `changed_at` as for [`Cleaner::oldest`].
    pub(crate) fn next_request(
        &mut self,
        changed_at: impl Fn(PageId) -> Option<u64>,
    ) -> Option<CleanerRequest> {
        if !self.is_doublewrite {
            self.ready.append(&mut self.chosen);
        }
        while self.in_flight.len() < IN_FLIGHT_MAX
            && let Some(page) = self.ready.pop_front()
        {
            // It may have been chosen twice, as an old page and as one at the tail.
            if let Some(since) = changed_at(page) {
                self.in_flight.push_back(since);
                return Some(CleanerRequest::Page(page));
            }
        }
        // The doublewrite buffer holds one batch, so the next one waits until its pages were sent.
        if self.stage == Stage::Idle && self.ready.is_empty() && !self.chosen.is_empty() {
            let pages = self.chosen.len().min(BATCH_PAGES);
            self.batch.extend(self.chosen.drain(..pages));
            self.stage = Stage::Doublewrite;
            return Some(CleanerRequest::Doublewrite { pages: pages as u32 });
        }
        None
    }

    /// The batch is in the doublewrite buffer, which must be flushed.
    pub(crate) fn doublewritten(&mut self) {
        self.stage = Stage::Flush;
    }

    /// The doublewrite buffer is flushed: pages can be written to their places.
    pub(crate) fn doublewrite_flushed(&mut self) {
        self.ready.extend(self.batch.drain(..));
        self.stage = Stage::Idle;
    }

    /// A page is written: the one that was begun first, as it is taken for.
    pub(crate) fn page_written(&mut self) {
        self.in_flight.pop_front();
        self.flushed_this_second += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_PAGES, Cleaner, CleanerRequest};
    use crate::page::PageId;
    use crate::settings::InnodbSettings;
    use underlay_core::Bytes;

    fn cleaner(doublewrite: bool) -> Cleaner {
        let log_file_size = Bytes(1_000_000);
        Cleaner::new(&InnodbSettings { doublewrite, log_file_size, ..InnodbSettings::default() })
    }

    #[test]
    fn a_batch_goes_through_the_doublewrite_buffer_first() {
        let mut cleaner = cleaner(true);
        cleaner.choose((0..200).map(|block| PageId::new(0, block)));
        let batch = BATCH_PAGES as u32;
        let next = |cleaner: &mut Cleaner| cleaner.next_request(|_| Some(0));
        assert_eq!(next(&mut cleaner), Some(CleanerRequest::Doublewrite { pages: batch }));
        assert_eq!(next(&mut cleaner), None, "one batch at a time");
        cleaner.doublewritten();
        assert_eq!(next(&mut cleaner), None, "not before it is flushed");
        cleaner.doublewrite_flushed();
        for block in 0..batch {
            let page = PageId::new(0, block);
            assert_eq!(next(&mut cleaner), Some(CleanerRequest::Page(page)));
        }
        assert_eq!(next(&mut cleaner), Some(CleanerRequest::Doublewrite { pages: 72 }));
        assert_eq!(cleaner.waiting(), 72);
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
        cleaner.choose_oldest(1, changed_at);
        assert_eq!(cleaner.oldest(99, changed_at), 20, "chosen is not written");
        assert_eq!(cleaner.next_request(changed_at), Some(CleanerRequest::Page(page(2))));
        // It is clean for the pool when its write begins.
        let changed_at = |asked: PageId| (asked == page(1)).then_some(30);
        assert_eq!(cleaner.oldest(99, changed_at), 20, "its write is not done");
        cleaner.page_written();
        assert_eq!(cleaner.oldest(99, changed_at), 30);
        cleaner.choose_oldest(1, changed_at);
        cleaner.choose([page(1), page(2)].into_iter());
        assert_eq!(cleaner.next_request(changed_at), Some(CleanerRequest::Page(page(1))));
        assert_eq!(cleaner.next_request(|_| None), None, "chosen twice and written once");
        assert_eq!(cleaner.oldest(99, |_| None), 30);
        cleaner.page_written();
        assert_eq!(cleaner.oldest(99, |_| None), 99);
    }

    #[test]
    fn more_is_flushed_the_older_the_checkpoint_is() {
        let pages = |age: u64| {
            let mut cleaner = cleaner(true);
            for block in 0..100_000 {
                cleaner.push_changed(u64::from(block), PageId::new(0, block));
            }
            cleaner.recommend(age, age, 1_000, 10_000)
        };
        // A tenth of the capacity of 900,000 is the least age that matters.
        assert_eq!(pages(80_000), 0);
        let aged = [100_000, 300_000, 500_000, 800_000].map(pages);
        assert!(aged.is_sorted() && aged[0] > 0, "{aged:?}");
        let cleaner = cleaner(true);
        assert!(cleaner.is_furious(800_000) && !cleaner.is_log_full(800_000));
        assert!(cleaner.is_log_full(900_001));
    }
}
