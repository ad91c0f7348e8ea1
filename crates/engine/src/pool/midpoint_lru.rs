//! InnoDB's buffer replacement: a list from the most to the least recently used page, into whose
//! middle new pages enter.
//!
//! The last part of the list (37 %, `innodb_old_blocks_pct`) is old. A page that is read enters at
//! the head of the old part. A touch of an old page makes it young if the page was first touched at
//! least `innodb_old_blocks_time` (1 s) ago; one of a young page moves it to the head only from the
//! last three quarters of the young part, to spare the list.
//!
//! A page that is read takes a free frame. The page cleaner keeps some free: it takes clean pages
//! from the tail, and writes dirty ones that it finds there. Where none is free, the first page
//! leaves that is clean among the last 100. (MariaDB 10.11, storage/innobase/buf/buf0lru.cc,
//! `buf_LRU_get_free_block`; buf0flu.cc, `buf_flush_LRU_list_batch`.)

use super::places::{EntryPerPage, Places};
use super::touch::{PoolCounters, Touched};
use crate::page::{NOWHERE, PageId};
use underlay_core::Nanos;

/// `BUF_LRU_SEARCH_SCAN_THRESHOLD`: pages at the tail that a session looks at.
const SCAN: u32 = 100;
/// The old part may be so many pages longer or shorter than it should (`BUF_LRU_OLD_TOLERANCE`).
const TOLERANCE: u32 = 20;
/// Lists shorter than this have no old part (`BUF_LRU_OLD_MIN_LEN`, here scaled for small pools).
const OLD_MIN: u32 = 80;
/// Lists of at most so many pages are not shortened to have free frames (`BUF_LRU_MIN_LEN`).
const LIST_MIN: u32 = 256;

#[derive(Clone, Copy, Debug)]
struct Frame {
    page: PageId,
    /// Towards the head.
    newer: u32,
    /// Towards the tail.
    older: u32,
    first_touch: Nanos,
    /// Log position of the first change since it was written.
    changed_at: u64,
    /// Pages that had entered the head when this one was moved there.
    moved: u32,
    is_old: bool,
    is_dirty: bool,
    is_loading: bool,
    /// It is dirty until that is done.
    is_writing: bool,
}

/// The pool.
#[derive(Clone, Debug)]
pub struct MidpointLru {
    frames: Vec<Frame>,
    frames_max: u32,
    /// Frames whose pages have left.
    free: Vec<u32>,
    places: EntryPerPage,
    head: u32,
    tail: u32,
    /// The newest old frame.
    old_head: u32,
    old: u32,
    old_percent: u32,
    old_time: Nanos,
    /// Times that a page was moved to the head.
    moves: u32,
    dirty: u32,
    counters: PoolCounters,
}

impl MidpointLru {
    /// So many empty frames, at least 1; `old_percent` of the list is old.
    pub fn new(frames: u32, old_percent: u32, old_time: Nanos) -> MidpointLru {
        MidpointLru {
            frames: Vec::new(),
            frames_max: frames.max(1),
            free: Vec::new(),
            places: EntryPerPage::default(),
            head: NOWHERE,
            tail: NOWHERE,
            old_head: NOWHERE,
            old: 0,
            old_percent,
            old_time,
            moves: 0,
            dirty: 0,
            counters: PoolCounters::default(),
        }
    }

    fn frame(&mut self, place: u32) -> &mut Frame {
        &mut self.frames[place as usize]
    }

    /// The frame of a page, [`NOWHERE`] if it has none.
    #[inline]
    fn place(&self, page: PageId) -> u32 {
        self.places.get(page, |place| self.frames[place as usize].page)
    }

    /// Touches a page at `now`, and gives it a frame if it has none. `position` is that of the log.
    #[inline]
    pub fn touch(&mut self, now: Nanos, page: PageId, writes: bool, position: u64) -> Touched {
        let place = self.place(page);
        if place == NOWHERE {
            return self.load(now, page, writes, position);
        }
        self.counters.hits += 1;
        let young = self.used() - self.old;
        let frame = &mut self.frames[place as usize];
        if writes && !frame.is_dirty {
            frame.is_dirty = true;
            frame.changed_at = position;
            self.dirty += 1;
            self.counters.dirtied += 1;
        }
        // A page that is read once, as by a scan, must not displace pages that are in use. And
        // moving a page that is near the head anyway would only cost time.
        let is_due = if frame.is_old {
            now.saturating_sub(frame.first_touch) >= self.old_time
        } else {
            self.moves.wrapping_sub(frame.moved) > young / 4
        };
        if is_due {
            self.make_young(place);
        }
        Touched::Hit(place)
    }

    fn load(&mut self, now: Nanos, page: PageId, is_dirty: bool, position: u64) -> Touched {
        let entering = Frame {
            page,
            newer: NOWHERE,
            older: NOWHERE,
            first_touch: now,
            changed_at: position,
            moved: self.moves,
            is_old: false,
            is_dirty,
            is_loading: false,
            is_writing: false,
        };
        let (place, evicted) = if let Some(place) = self.free.pop() {
            *self.frame(place) = entering;
            (place, None)
        } else if self.frames.len() < self.frames_max as usize {
            self.frames.push(entering);
            (self.frames.len() as u32 - 1, None)
        } else {
            let Some(place) = self.victim() else { return Touched::Full };
            self.unlink(place);
            let old = std::mem::replace(self.frame(place), entering);
            self.places.remove(old.page, place);
            self.counters.evictions += 1;
            (place, Some((old.page, false)))
        };
        self.counters.misses += 1;
        self.dirty += u32::from(is_dirty);
        self.counters.dirtied += u64::from(is_dirty);
        self.places.insert(page, place, |place| self.frames[place as usize].page);
        // A short list has no old part, and so no midpoint.
        if self.old_head == NOWHERE {
            self.link_at_head(place);
        } else {
            self.link_at_midpoint(place);
        }
        self.balance();
        Touched::Missed { frame: place, evicted }
    }

    /// The frame to evict: none if the last ones are dirty or being read into.
    fn victim(&self) -> Option<u32> {
        let mut place = self.tail;
        for _ in 0..SCAN.min(self.frames_max) {
            let frame = &self.frames[place as usize];
            if !frame.is_dirty && !frame.is_loading {
                return Some(place);
            }
            place = frame.newer;
            if place == NOWHERE {
                break;
            }
        }
        None
    }

    fn make_young(&mut self, place: u32) {
        self.unlink(place);
        self.moves = self.moves.wrapping_add(1);
        let moves = self.moves;
        let frame = self.frame(place);
        frame.is_old = false;
        frame.moved = moves;
        self.link_at_head(place);
        self.balance();
    }

    fn unlink(&mut self, place: u32) {
        let Frame { newer, older, is_old, .. } = self.frames[place as usize];
        match newer {
            NOWHERE => self.head = older,
            newer => self.frame(newer).older = older,
        }
        match older {
            NOWHERE => self.tail = newer,
            older => self.frame(older).newer = newer,
        }
        if self.old_head == place {
            self.old_head = older;
        }
        self.old -= u32::from(is_old);
        let frame = self.frame(place);
        (frame.newer, frame.older) = (NOWHERE, NOWHERE);
    }

    fn link_at_head(&mut self, place: u32) {
        let head = self.head;
        self.frame(place).older = head;
        self.frame(place).newer = NOWHERE;
        match head {
            NOWHERE => self.tail = place,
            head => self.frame(head).newer = place,
        }
        self.head = place;
    }

    fn link_at_midpoint(&mut self, place: u32) {
        let below = self.old_head;
        let above = self.frames[below as usize].newer;
        let frame = self.frame(place);
        (frame.newer, frame.older, frame.is_old) = (above, below, true);
        self.frame(below).newer = place;
        match above {
            NOWHERE => self.head = place,
            above => self.frame(above).older = place,
        }
        self.old_head = place;
        self.old += 1;
    }

    /// Moves the border of the old part to where it belongs.
    fn balance(&mut self) {
        let all = self.used();
        if all < OLD_MIN {
            return;
        }
        if self.old_head == NOWHERE && self.old == 0 {
            let tail = self.tail;
            self.old_head = tail;
            self.frame(tail).is_old = true;
            self.old = 1;
        }
        let wanted = (u64::from(all) * u64::from(self.old_percent) / 100) as u32;
        let wanted = wanted.clamp(1, all - 1);
        // The tolerance keeps the border from moving with every page.
        while self.old + TOLERANCE.min(wanted / 8) < wanted {
            let next = self.frames[self.old_head as usize].newer;
            if next == NOWHERE {
                return;
            }
            self.frame(next).is_old = true;
            self.old_head = next;
            self.old += 1;
        }
        while self.old > wanted + TOLERANCE.min(wanted / 8) {
            let first = self.old_head;
            self.frame(first).is_old = false;
            self.old_head = self.frames[first as usize].older;
            self.old -= 1;
        }
    }

    /// Looks where pages are, without touching them, for the speed of touches to come: looks do not
    /// depend on each other and wait for memory together, touches wait one after the other.
    pub(crate) fn look_ahead(&self, pages: impl Iterator<Item = PageId> + Clone) {
        let places = pages.clone().fold(0, |seen, page| seen ^ self.place(page));
        let frames = pages.fold(0, |seen, page| {
            let frame = self.frames.get(self.place(page) as usize);
            seen ^ frame.map_or(0, |frame| u8::from(frame.is_dirty))
        });
        std::hint::black_box((places, frames));
    }

    /// Marks a frame as being read into, or as read.
    pub fn set_loading(&mut self, frame: u32, is_loading: bool) {
        self.frame(frame).is_loading = is_loading;
    }

    /// Whether a frame is being read into.
    pub fn is_loading(&self, frame: u32) -> bool {
        self.frames[frame as usize].is_loading
    }

    /// Marks a page as being written, if it is in memory and dirty, and is not so marked; whether it was marked now.
    pub fn begin_write(&mut self, page: PageId) -> bool {
        let place = self.place(page);
        if place == NOWHERE {
            return false;
        }
        let frame = self.frame(place);
        let begins = frame.is_dirty && !frame.is_writing;
        frame.is_writing |= begins;
        begins
    }

    /// Whether a page is marked as being written.
    #[inline]
    pub fn is_writing(&self, page: PageId) -> bool {
        let frame = self.frames.get(self.place(page) as usize);
        frame.is_some_and(|frame| frame.is_writing)
    }

    /// Marks a page as written, if it is in memory and dirty; whether it was.
    pub fn clean(&mut self, page: PageId) -> bool {
        let place = self.place(page);
        if place == NOWHERE || !self.frames[place as usize].is_dirty {
            return false;
        }
        let frame = self.frame(place);
        (frame.is_dirty, frame.is_writing) = (false, false);
        self.dirty -= 1;
        true
    }

    /// The log position of the first change of a dirty page; none of others.
    pub fn changed_at(&self, page: PageId) -> Option<u64> {
        let place = self.place(page);
        let frame = self.frames.get(place as usize)?;
        frame.is_dirty.then_some(frame.changed_at)
    }

    /// Frees frames of clean pages from the end of the list on, until so many are free. Appends the
    /// dirty pages on the way that are not being written, and ends where there are more than `most`.
    /// Returns how many frames it freed.
    pub fn free_tail(&mut self, wanted: u32, most: usize, pages: &mut Vec<PageId>) -> u32 {
        let shortest = LIST_MIN.min((self.frames_max / 20).saturating_sub(1));
        let (mut place, before) = (self.tail, self.free());
        while place != NOWHERE && self.free() < wanted && self.used() > shortest {
            let Frame { page, newer, is_dirty, is_loading, is_writing, .. } =
                self.frames[place as usize];
            // One that is in use is passed over, as a latched page is.
            if !is_loading && !is_writing {
                if is_dirty {
                    if pages.len() >= most {
                        break;
                    }
                    pages.push(page);
                } else {
                    self.unlink(place);
                    self.places.remove(page, place);
                    self.free.push(place);
                    self.counters.evictions += 1;
                    self.balance();
                }
            }
            place = newer;
        }
        self.free() - before
    }

    /// Whether so few frames are free that the page cleaner frees some, where it keeps `depth` of
    /// them (`need_LRU_eviction`).
    pub fn needs_frames(&self, depth: u32) -> bool {
        self.used() > LIST_MIN && self.free() < depth / 2
    }

    /// Marks all pages as written.
    pub fn clean_all(&mut self) {
        for frame in &mut self.frames {
            (frame.is_dirty, frame.is_writing) = (false, false);
        }
        self.dirty = 0;
    }

    /// Number of dirty pages.
    pub fn dirty(&self) -> u32 {
        self.dirty
    }

    /// Frames in use.
    pub fn used(&self) -> u32 {
        (self.frames.len() - self.free.len()) as u32
    }

    /// Frames without a page.
    pub fn free(&self) -> u32 {
        self.frames_max - self.used()
    }

    /// Frames.
    pub fn frames(&self) -> u32 {
        self.frames_max
    }

    /// What was counted; counting begins again.
    pub fn take_counters(&mut self) -> PoolCounters {
        std::mem::take(&mut self.counters)
    }

    /// The pages from the head to the tail, and whether each is old.
    pub fn list(&self) -> impl Iterator<Item = (PageId, bool)> + '_ {
        let first = (self.head != NOWHERE).then_some(self.head);
        std::iter::successors(first, |place| {
            let older = self.frames[*place as usize].older;
            (older != NOWHERE).then_some(older)
        })
        .map(|place| (self.frames[place as usize].page, self.frames[place as usize].is_old))
    }
}
