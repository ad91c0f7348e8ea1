//! PostgreSQL's buffer replacement: a hand goes round the frames and takes the first one whose
//! usage count is 0, counting down those it passes.
//!
//! A page enters with the count 1 and each touch adds 1, up to 5 (`BM_MAX_USAGE_COUNT`). Frames
//! that were never used are taken first. A frame that is being read into is passed over, as a
//! pinned one is. There are no ring buffers here: jobs that scan have their own.

use super::places::{EntryPerFrame, EntryPerPage, Places};
use super::touch::{PoolCounters, Touched};
use crate::page::{NOWHERE, PageId};

/// PostgreSQL's highest usage count.
const USAGE_MAX: u8 = 5;

/// Eight bytes: a pool has millions.
#[derive(Clone, Copy, Debug)]
struct Frame {
    block: u32,
    relation: u16,
    usage: u8,
    /// [`DIRTY`], [`LOADING`] and [`MARKED`].
    state: u8,
}

const DIRTY: u8 = 1;
const LOADING: u8 = 2;
/// Its read lets the kernel read ahead.
const MARKED: u8 = 4;

impl Frame {
    fn new(page: PageId, usage: u8, is_dirty: bool) -> Frame {
        let state = if is_dirty { DIRTY } else { 0 };
        Frame { block: page.block(), relation: page.relation(), usage, state }
    }

    fn page(self) -> PageId {
        PageId::new(self.relation, self.block)
    }

    fn is_dirty(self) -> bool {
        self.state & DIRTY != 0
    }

    fn is_loading(self) -> bool {
        self.state & LOADING != 0
    }

    fn set(&mut self, state: u8, is_set: bool) {
        self.state = if is_set { self.state | state } else { self.state & !state };
    }
}

/// The pool.
#[derive(Clone, Debug)]
pub struct ClockSweep<P = EntryPerPage> {
    frames: Vec<Frame>,
    frames_max: u32,
    places: P,
    hand: u32,
    usage_first: u8,
    usage_max: u8,
    dirty: u32,
    counters: PoolCounters,
}

impl ClockSweep {
    /// PostgreSQL's shared buffers: so many empty frames, at least 1.
    pub fn postgresql(frames: u32) -> ClockSweep {
        ClockSweep::with_usage(frames, 1, USAGE_MAX)
    }
}

impl ClockSweep<EntryPerFrame> {
    /// Second chance: a page enters with the count 0, and a touch makes it 1. Stands for the
    /// kernel's two lists, which give way first to pages that were used once.
    pub fn second_chance(frames: u32) -> ClockSweep<EntryPerFrame> {
        ClockSweep::with_usage(frames, 0, 1)
    }
}

impl<P: Places> ClockSweep<P> {
    fn with_usage(frames: u32, usage_first: u8, usage_max: u8) -> ClockSweep<P> {
        ClockSweep {
            frames: Vec::new(),
            frames_max: frames.max(1),
            places: P::default(),
            hand: 0,
            usage_first,
            usage_max,
            dirty: 0,
            counters: PoolCounters::default(),
        }
    }

    /// The frame of a page, [`NOWHERE`] if it has none.
    #[inline]
    fn place(&self, page: PageId) -> u32 {
        self.places.get(page, |place| self.frames[place as usize].page())
    }

    /// Touches a page, and gives it a frame if it has none.
    #[inline]
    pub fn touch(&mut self, page: PageId, writes: bool) -> Touched {
        let place = self.place(page);
        if place != NOWHERE {
            self.counters.hits += 1;
            let frame = &mut self.frames[place as usize];
            frame.usage = (frame.usage + 1).min(self.usage_max);
            if writes && !frame.is_dirty() {
                frame.set(DIRTY, true);
                self.dirty += 1;
                self.counters.dirtied += 1;
            }
            return Touched::Hit(place);
        }
        self.load(page, writes)
    }

    fn load(&mut self, page: PageId, is_dirty: bool) -> Touched {
        let entering = Frame::new(page, self.usage_first, is_dirty);
        let (place, evicted) = if self.frames.len() < self.frames_max as usize {
            self.frames.push(entering);
            (self.frames.len() as u32 - 1, None)
        } else {
            let Some(place) = self.victim() else { return Touched::Full };
            let old = std::mem::replace(&mut self.frames[place as usize], entering);
            self.places.remove(old.page(), place);
            self.counters.evictions += 1;
            self.counters.dirty_evictions += u64::from(old.is_dirty());
            self.dirty -= u32::from(old.is_dirty());
            (place, Some((old.page(), old.is_dirty())))
        };
        self.counters.misses += 1;
        self.dirty += u32::from(is_dirty);
        self.counters.dirtied += u64::from(is_dirty);
        self.places.insert(page, place, |place| self.frames[place as usize].page());
        Touched::Missed { frame: place, evicted }
    }

    /// Touches a page for no session: it takes a frame from others, and is not counted.
    pub(crate) fn pass_through(&mut self, page: PageId) -> Touched {
        // Hits and misses are those of sessions.
        let counters = self.counters;
        let touched = self.touch(page, false);
        self.counters = counters;
        touched
    }

    /// Counts a miss of a page that does not enter: that of a scan with a ring of its own.
    pub(crate) fn pass_by(&mut self) {
        self.counters.misses += 1;
    }

    /// The frame to evict: none if all are being read into.
    fn victim(&mut self) -> Option<u32> {
        // Each round lowers every count by one, so after that many a frame is found unless all are
        // being read into.
        let rounds = u32::from(self.usage_max) + 2;
        for _ in 0..u64::from(rounds) * u64::from(self.frames_max) {
            let place = self.hand;
            self.hand = if place + 1 == self.frames_max { 0 } else { place + 1 };
            let frame = &mut self.frames[place as usize];
            if frame.is_loading() {
                continue;
            }
            if frame.usage == 0 {
                return Some(place);
            }
            frame.usage -= 1;
        }
        None
    }

    /// Whether a page is in memory, without touching it.
    pub fn contains(&self, page: PageId) -> bool {
        self.place(page) != NOWHERE
    }

    /// Looks where pages are, without touching them, for the speed of touches to come: looks do not
    /// depend on each other and wait for memory together, touches wait one after the other.
    pub(crate) fn look_ahead(&self, pages: impl Iterator<Item = PageId> + Clone) {
        let places = pages.clone().fold(0, |seen, page| seen ^ self.place(page));
        let frames = pages.fold(0, |seen, page| {
            let frame = self.frames.get(self.place(page) as usize);
            seen ^ frame.map_or(0, |frame| frame.usage)
        });
        std::hint::black_box((places, frames));
    }

    /// Marks a page that is in memory: its next read lets the kernel read ahead.
    pub(crate) fn mark(&mut self, page: PageId) {
        let place = self.place(page);
        if place != NOWHERE {
            self.frames[place as usize].set(MARKED, true);
        }
    }

    /// Takes the mark off a page; whether it had one. A page that leaves loses it.
    pub(crate) fn take_mark(&mut self, page: PageId) -> bool {
        let place = self.place(page);
        if place == NOWHERE {
            return false;
        }
        let frame = &mut self.frames[place as usize];
        let was_marked = frame.state & MARKED != 0;
        frame.set(MARKED, false);
        was_marked
    }

    /// Marks a frame as being read into, or as read.
    pub fn set_loading(&mut self, frame: u32, is_loading: bool) {
        self.frames[frame as usize].set(LOADING, is_loading);
    }

    /// Whether a frame is being read into.
    pub fn is_loading(&self, frame: u32) -> bool {
        self.frames[frame as usize].is_loading()
    }

    /// The page of a frame.
    pub fn page(&self, frame: u32) -> PageId {
        self.frames[frame as usize].page()
    }

    /// Marks a page as written, if it is in memory and dirty; whether it was.
    pub fn clean(&mut self, page: PageId) -> bool {
        let place = self.place(page);
        if place == NOWHERE || !self.frames[place as usize].is_dirty() {
            return false;
        }
        self.frames[place as usize].set(DIRTY, false);
        self.dirty -= 1;
        true
    }

    /// Marks all pages as written.
    pub fn clean_all(&mut self) {
        self.frames.iter_mut().for_each(|frame| frame.set(DIRTY, false));
        self.dirty = 0;
    }

    /// Every dirty page, in no order. The list takes no more memory than it needs: a pool has millions of pages.
    pub(crate) fn dirty_pages(&self) -> Vec<PageId> {
        let mut pages = Vec::with_capacity(self.dirty as usize);
        pages.extend(self.frames.iter().filter(|it| it.is_dirty()).map(|it| it.page()));
        pages
    }

    /// Appends the dirty pages that give way next, at most `most` of them, until `wanted` frames
    /// before the hand are found that can be reused.
    pub fn dirty_ahead(&self, wanted: u32, most: u32, pages: &mut Vec<PageId>) {
        // Nothing is evicted while frames are free.
        if (self.frames.len() as u32) < self.frames_max {
            return;
        }
        let (mut reusable, mut found) = (0, 0);
        for step in 0..self.frames_max {
            if reusable >= wanted || found >= most {
                return;
            }
            let place = (u64::from(self.hand) + u64::from(step)) % u64::from(self.frames_max);
            let frame = &self.frames[place as usize];
            if frame.usage == 0 {
                reusable += 1;
                if frame.is_dirty() {
                    found += 1;
                    pages.push(frame.page());
                }
            }
        }
    }

    /// Number of dirty pages.
    pub fn dirty(&self) -> u32 {
        self.dirty
    }

    /// Frames in use.
    pub fn used(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Frames.
    pub fn frames(&self) -> u32 {
        self.frames_max
    }

    /// What was counted; counting begins again.
    pub fn take_counters(&mut self) -> PoolCounters {
        std::mem::take(&mut self.counters)
    }
}

#[cfg(test)]
mod tests {
    use super::ClockSweep;
    use crate::page::PageId;

    #[test]
    fn a_page_that_passes_through_takes_a_frame_and_does_not_count() {
        let mut cache = ClockSweep::second_chance(1);
        let [first, second] = [0, 1].map(|block| PageId::new(1, block));
        cache.touch(first, false);
        cache.pass_through(second);
        assert!(!cache.contains(first) && cache.contains(second));
        let counted = cache.take_counters();
        assert_eq!((counted.misses, counted.evictions), (1, 0));
    }

    #[test]
    fn a_page_that_comes_again_is_not_marked() {
        let mut cache = ClockSweep::second_chance(1);
        let [first, second] = [0, 1].map(|block| PageId::new(1, block));
        cache.mark(first);
        cache.touch(first, false);
        assert!(!cache.take_mark(first), "it was not there");
        cache.mark(first);
        assert!(cache.take_mark(first) && !cache.take_mark(first), "once");
        cache.mark(first);
        cache.touch(second, false);
        cache.touch(first, false);
        assert!(!cache.take_mark(first), "it has left meanwhile");
    }
}
