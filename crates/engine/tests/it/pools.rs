//! Buffer pools against naive references and against what must hold of any.

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use rand::Rng;
use std::collections::BTreeSet;
use underlay_core::{Nanos, RootSeed};
use underlay_engine::page::PageId;
use underlay_engine::pool::{ClockSweep, MidpointLru, Touched};

/// The rules of the clock sweep on a list of (page, usage, dirty), searched from its beginning.
struct NaiveClock {
    frames: Vec<(PageId, u8, bool)>,
    room: usize,
    hand: usize,
}

impl NaiveClock {
    /// The page that left, if one did, and whether it was dirty; `None` for a hit.
    fn touch(&mut self, page: PageId, writes: bool) -> Option<Option<(PageId, bool)>> {
        if let Some(frame) = self.frames.iter_mut().find(|frame| frame.0 == page) {
            frame.1 = (frame.1 + 1).min(5);
            frame.2 |= writes;
            return None;
        }
        if self.frames.len() < self.room {
            self.frames.push((page, 1, writes));
            return Some(None);
        }
        loop {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.room;
            if self.frames[place].1 == 0 {
                let old = std::mem::replace(&mut self.frames[place], (page, 1, writes));
                return Some(Some((old.0, old.2)));
            }
            self.frames[place].1 -= 1;
        }
    }
}

fn page(number: u64) -> PageId {
    PageId::new((number % 3) as u16, (number / 3) as u32)
}

proptest! {
    #[test]
    fn the_clock_sweep_does_what_its_rules_say(
        room in 1usize..40,
        touches in proptest::collection::vec((0u64..90, proptest::bool::ANY), 1..600),
    ) {
        let mut naive = NaiveClock { frames: Vec::new(), room, hand: 0 };
        let mut pool = ClockSweep::postgresql(room as u32);
        for (number, writes) in touches {
            let expected = naive.touch(page(number), writes);
            let evicted = match pool.touch(page(number), writes) {
                Touched::Hit(_) => None,
                Touched::Missed { evicted, .. } => Some(evicted),
                Touched::Full => panic!("nothing is being read"),
            };
            prop_assert_eq!(evicted, expected);
            let dirty = naive.frames.iter().filter(|frame| frame.2).count();
            prop_assert_eq!(pool.dirty() as usize, dirty);
        }
        let counted = pool.take_counters();
        prop_assert_eq!(counted.dirtied, counted.dirty_evictions + u64::from(pool.dirty()));
    }

    #[test]
    fn the_midpoint_list_stays_whole(
        room in 1u32..400,
        touches in proptest::collection::vec((0u64..700, proptest::bool::ANY), 1..1500),
    ) {
        let mut pool = MidpointLru::new(room, 37, Nanos::from_millis(1));
        let (mut dirty, mut cleaned) = (BTreeSet::new(), 0);
        for (step, (number, writes)) in touches.into_iter().enumerate() {
            let now = Nanos::from_micros(20 * step as u64);
            let was_there = pool.list().any(|(there, _)| there == page(number));
            match pool.touch(now, page(number), writes, step as u64) {
                Touched::Hit(_) => prop_assert!(was_there),
                Touched::Missed { evicted, .. } => {
                    prop_assert!(!was_there);
                    if let Some((old, is_dirty)) = evicted {
                        prop_assert!(!is_dirty && !dirty.contains(&old), "a dirty page left");
                    }
                }
                Touched::Full => {
                    // Only dirty pages at the tail: write them.
                    let mut pages = Vec::new();
                    pool.free_tail(1, 1_000, &mut pages);
                    prop_assert!(!pages.is_empty());
                    for page in pages {
                        cleaned += u64::from(pool.clean(page));
                        dirty.remove(&page);
                    }
                    continue;
                }
            }
            if writes {
                dirty.insert(page(number));
            }
            prop_assert_eq!(pool.dirty() as usize, dirty.len());
        }
        prop_assert_eq!(pool.take_counters().dirtied, cleaned + u64::from(pool.dirty()));
        let list: Vec<(PageId, bool)> = pool.list().collect();
        prop_assert_eq!(list.len() as u32, pool.used());
        let distinct: BTreeSet<PageId> = list.iter().map(|(page, _)| *page).collect();
        prop_assert_eq!(distinct.len(), list.len());
        // Young before old, and the old part about as long as it should be.
        let young = list.iter().take_while(|(_, is_old)| !is_old).count();
        prop_assert!(list[young..].iter().all(|(_, is_old)| *is_old));
        if list.len() >= 160 {
            let old = (list.len() - young) as f64 / list.len() as f64;
            prop_assert!((0.24..=0.50).contains(&old), "{}", old);
        }
    }
}

#[test]
fn uniform_access_misses_what_does_not_fit() {
    // Whatever is replaced: the page that is touched next is in memory with probability frames :
    // pages.
    const PAGES: u64 = 4_000;
    const TOUCHES: u64 = 400_000;
    for frames in [400u32, 2_000, 3_600] {
        let expected = 1.0 - f64::from(frames) / PAGES as f64;
        // Six standard deviations of a binomial.
        let margin = 6.0 * (expected * (1.0 - expected) / TOUCHES as f64).sqrt();
        let mut clock = ClockSweep::postgresql(frames);
        let mut lru = MidpointLru::new(frames, 37, Nanos::ZERO);
        let mut random = RootSeed(5).stream("uniform", u64::from(frames));
        for step in 0..TOUCHES + 40_000 {
            if step == 40_000 {
                clock.take_counters();
                lru.take_counters();
            }
            let page = page(random.next_u64() % PAGES);
            clock.touch(page, false);
            lru.touch(Nanos(step), page, false, 0);
        }
        for counters in [clock.take_counters(), lru.take_counters()] {
            assert_eq!(counters.hits + counters.misses, TOUCHES);
            let missed = counters.misses as f64 / TOUCHES as f64;
            assert!((missed - expected).abs() <= margin, "{frames}: {missed}, {expected}");
        }
    }
}

#[test]
fn clean_pages_at_the_end_of_the_list_make_frames_free() {
    let mut pool = MidpointLru::new(1_000, 37, Nanos::from_secs(1));
    (0..1_000).for_each(|number| {
        pool.touch(Nanos::ZERO, page(number), number % 3 == 0, number);
    });
    assert!(pool.free() == 0 && pool.needs_frames(2) && !pool.needs_frames(1));
    let mut dirty = Vec::new();
    assert_eq!(pool.free_tail(300, 1_000, &mut dirty), 300);
    assert_eq!((pool.free(), pool.used()), (300, 700));
    assert_eq!(pool.list().count(), 700);
    assert!(!dirty.is_empty() && dirty.iter().all(|page| pool.changed_at(*page).is_some()));
    assert_eq!(pool.free_tail(300, 1_000, &mut dirty), 0, "enough are free");
    assert_eq!(pool.take_counters().evictions, 300);
    for number in 2_000..2_300 {
        let touched = pool.touch(Nanos::ZERO, page(number), false, 0);
        assert!(matches!(touched, Touched::Missed { evicted: None, .. }), "{touched:?}");
    }
    assert_eq!((pool.free(), pool.take_counters().evictions), (0, 0));
    // A twentieth of the frames keeps its pages, less one.
    pool.clean_all();
    assert_eq!(pool.free_tail(1_000, 0, &mut Vec::new()), 951);
    assert_eq!(pool.used(), 49);
}

#[test]
fn a_page_that_is_being_written_stays_and_is_not_written_twice() {
    let mut pool = MidpointLru::new(100, 37, Nanos::from_secs(1));
    (0..100).for_each(|number| {
        pool.touch(Nanos::ZERO, page(number), number < 2, number);
    });
    let begins = [0, 0, 50, 900].map(|number| pool.begin_write(page(number)));
    assert_eq!(begins, [true, false, false, false], "dirty, under way, clean, absent");
    assert!(pool.is_writing(page(0)) && !pool.is_writing(page(1)));
    let mut dirty = Vec::new();
    pool.free_tail(100, 1_000, &mut dirty);
    assert_eq!(dirty, [page(1)], "the other one is passed over");
    assert_eq!((pool.changed_at(page(0)), pool.dirty()), (Some(0), 2), "dirty until it is written");
    assert!(pool.clean(page(0)) && !pool.is_writing(page(0)));
    assert_eq!((pool.changed_at(page(0)), pool.dirty()), (None, 1));
}

#[test]
fn a_scan_does_not_displace_what_is_used() {
    // It has to fit into the old part, where it must survive until it is touched again.
    const WORKING_SET: u64 = 300;
    let mut pool = MidpointLru::new(1_000, 37, Nanos::from_secs(1));
    let working_set = |pool: &mut MidpointLru, second: u64| {
        (0..WORKING_SET).for_each(|number| {
            pool.touch(Nanos::from_secs(second), page(number), false, 0);
        });
    };
    // The pool is full before: otherwise a part of the working set is all there is to be old.
    (5_000..6_000).for_each(|number| {
        pool.touch(Nanos::ZERO, page(number), false, 0);
    });
    (0..4).for_each(|second| working_set(&mut pool, 2 * second));
    for number in 10_000..30_000 {
        pool.touch(Nanos::from_secs(9), page(number), false, 0);
    }
    pool.take_counters();
    working_set(&mut pool, 10);
    let missed = pool.take_counters().misses;
    assert!(missed < 10, "{missed} of {WORKING_SET} pages were displaced by a scan");
}
