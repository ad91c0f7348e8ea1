//! Pending events in order of time: a calendar queue whose next event is known without a search.
//!
//! Events of the next half millisecond are in buckets of 8 microseconds, as linked lists in order. Most are appended to
//! their bucket and taken from its front, so the cost does not grow with the number of pending events. There are as many
//! buckets as a machine word has bits, so one instruction finds the next occupied bucket. Later events wait in a heap;
//! they are few, because devices and networks answer within a millisecond.
//!
//! Events with equal times happen in the order in which their positions were reserved. An event that is entered too late,
//! before the one that was taken last, is taken next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::Nanos;

/// Length of a bucket: 2^13 ns.
const BUCKET_SHIFT: u32 = 13;
/// Number of buckets, as bits of a word; what lies further ahead is not near.
const BUCKETS: usize = u64::BITS as usize;
/// No entry.
const NONE: u32 = u32::MAX;

/// A place in the sequence of what happens: a moment in the upper half, in the lower one how many places were taken before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position(u128);

impl Position {
    /// After everything.
    const NEVER: Position = Position(u128::MAX);

    /// When it is.
    #[inline]
    pub(crate) fn at(self) -> Nanos {
        Nanos((self.0 >> 64) as u64)
    }
}

#[derive(Clone, Debug)]
struct Entry<T> {
    /// [`Position::NEVER`] while nothing is here.
    position: Position,
    /// The neighbour in the bucket; without meaning in its first entry.
    before: u32,
    /// The other one. Of an entry with nothing in it, the next such entry.
    after: u32,
    item: T,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Without meaning while the bucket's bit says that nothing is in it.
    first: u32,
    last: u32,
}

/// All that is pending.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<T> {
    /// The next thing to happen: its position, its entry, and its bucket; none if it is far.
    next: Position,
    next_entry: u32,
    next_bucket: Option<u8>,
    /// The first entry with nothing in it.
    free: u32,
    /// Positions reserved so far.
    taken: u64,
    /// Number of the bucket that was taken from last: no near entry is in an earlier one.
    floor: u64,
    /// One bit per bucket that holds something.
    occupied: u64,
    buckets: Box<[Bucket; BUCKETS]>,
    entries: Vec<Entry<T>>,
    far: BinaryHeap<Reverse<(Position, u32)>>,
    /// The first position in the heap.
    far_next: Position,
}

impl<T: Copy> Agenda<T> {
    /// Nothing pending.
    pub(crate) fn new() -> Agenda<T> {
        Agenda {
            next: Position::NEVER,
            next_entry: NONE,
            next_bucket: None,
            free: NONE,
            taken: 0,
            floor: 0,
            occupied: 0,
            buckets: Box::new([Bucket { first: NONE, last: NONE }; BUCKETS]),
            entries: Vec::new(),
            far: BinaryHeap::new(),
            far_next: Position::NEVER,
        }
    }

    /// When the next thing happens; `u64::MAX` = never.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.next.at()
    }

    /// Takes a place for something that will be entered there, or not at all.
    #[inline]
    pub(crate) fn reserve_position(&mut self, at: Nanos) -> Position {
        self.taken += 1;
        Position(u128::from(at.0) << 64 | u128::from(self.taken))
    }

    /// Enters something at a moment, after what was entered there before.
    #[inline]
    pub(crate) fn enter(&mut self, at: Nanos, item: T) {
        let position = self.reserve_position(at);
        self.enter_at(position, item);
    }

    /// Enters something at a place that was taken.
    #[inline]
    pub(crate) fn enter_at(&mut self, position: Position, item: T) {
        let index = self.free;
        let entry = if let Some(free) = self.entries.get_mut(index as usize) {
            self.free = free.after;
            (free.position, free.item) = (position, item);
            index
        } else {
            self.push(position, item)
        };
        debug_assert!(position < Position::NEVER, "what is entered happens at some time");
        debug_assert!(
            self.entries[entry as usize].position == position,
            "the entry holds what was entered"
        );
        let number = bucket_of(position).max(self.floor);
        if number - self.floor >= BUCKETS as u64 {
            return self.enter_far(position, entry);
        }
        let bucket = number as usize % BUCKETS;
        self.link(bucket, entry, position);
        if position < self.next {
            (self.next, self.next_entry, self.next_bucket) = (position, entry, Some(bucket as u8));
        }
    }

    #[cold]
    fn push(&mut self, position: Position, item: T) -> u32 {
        debug_assert!(self.entries.len() < NONE as usize, "no entry has the number of none");
        self.entries.push(Entry { position, before: NONE, after: NONE, item });
        self.entries.len() as u32 - 1
    }

    #[cold]
    fn enter_far(&mut self, position: Position, entry: u32) {
        self.far.push(Reverse((position, entry)));
        self.far_next = self.far_next.min(position);
        if position < self.next {
            (self.next, self.next_entry, self.next_bucket) = (position, entry, None);
        }
    }

    /// Takes what happens next.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(Nanos, T)> {
        let (index, position) = (self.next_entry, self.next);
        let entry = self.entries.get_mut(index as usize)?;
        let (item, after) = (entry.item, entry.after);
        (entry.position, entry.after) = (Position::NEVER, self.free);
        self.free = index;
        self.floor = self.floor.max(bucket_of(position));
        match self.next_bucket {
            Some(bucket) => self.unlink_first(usize::from(bucket), index, after),
            None => self.unlink_far(),
        }
        debug_assert!(self.next > position, "what follows is not earlier than what was taken");
        Some((position.at(), item))
    }

    /// All that is pending, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Position, &T)> {
        let pending = self.entries.iter().filter(|entry| entry.position != Position::NEVER);
        pending.map(|entry| (entry.position, &entry.item))
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Position, &mut T)> {
        let pending = self.entries.iter_mut().filter(|entry| entry.position != Position::NEVER);
        pending.map(|entry| (entry.position, &mut entry.item))
    }

    /// Forgets what is pending. Positions count on.
    pub(crate) fn clear(&mut self) {
        let (taken, floor) = (self.taken, self.floor);
        *self = Agenda { taken, floor, ..Agenda::new() };
    }

    /// Puts an entry into its place in a bucket: nearly always the last one.
    #[inline]
    fn link(&mut self, bucket: usize, entry: u32, position: Position) {
        let bit = 1 << bucket;
        let links = &mut self.buckets[bucket];
        if self.occupied & bit == 0 {
            self.occupied |= bit;
            *links = Bucket { first: entry, last: entry };
            return;
        }
        if self.entries[links.last as usize].position > position {
            return self.link_before(bucket, entry, position);
        }
        self.entries[links.last as usize].after = entry;
        self.entries[entry as usize].before = links.last;
        links.last = entry;
    }

    /// Puts an entry somewhere before the last one of its bucket.
    fn link_before(&mut self, bucket: usize, entry: u32, position: Position) {
        let links = &mut self.buckets[bucket];
        let mut after = links.last;
        let before = loop {
            if after == links.first {
                break None;
            }
            let before = self.entries[after as usize].before;
            if self.entries[before as usize].position <= position {
                break Some(before);
            }
            after = before;
        };
        self.entries[after as usize].before = entry;
        self.entries[entry as usize].after = after;
        match before {
            None => links.first = entry,
            Some(before) => {
                self.entries[entry as usize].before = before;
                self.entries[before as usize].after = entry;
            }
        }
    }

    /// Takes the first entry out of the first bucket, and finds the next thing to happen.
    #[inline]
    fn unlink_first(&mut self, bucket: usize, entry: u32, after: u32) {
        let links = &mut self.buckets[bucket % BUCKETS];
        debug_assert!(links.first == entry, "the next thing to happen is the first in its bucket");
        if links.last != entry {
            links.first = after;
            return self.set_next(after, bucket);
        }
        self.occupied &= !(1 << bucket);
        self.find_next();
    }

    /// Takes the first entry out of the heap, and finds the next thing to happen.
    #[cold]
    fn unlink_far(&mut self) {
        debug_assert!(
            self.far.peek().is_some_and(|first| first.0.0 == self.far_next),
            "the heap's first is known"
        );
        self.far.pop();
        self.far_next = self.far.peek().map_or(Position::NEVER, |Reverse((position, _))| *position);
        self.find_next();
    }

    #[inline]
    fn find_next(&mut self) {
        if self.occupied == 0 {
            return self.far_is_next();
        }
        // The floor's bucket is the first one, those before it are the furthest ahead.
        let floor = (self.floor % BUCKETS as u64) as u32;
        let ahead = self.occupied.rotate_right(floor).trailing_zeros();
        let bucket = (floor + ahead) as usize % BUCKETS;
        self.set_next(self.buckets[bucket].first, bucket);
    }

    /// The first near entry is known: it is next, unless a far one is earlier.
    #[inline]
    fn set_next(&mut self, entry: u32, bucket: usize) {
        let position = self.entries[entry as usize].position;
        if self.far_next < position {
            return self.far_is_next();
        }
        debug_assert!(position != Position::NEVER, "a bucket holds only what is pending");
        (self.next, self.next_entry, self.next_bucket) = (position, entry, Some(bucket as u8));
    }

    #[cold]
    fn far_is_next(&mut self) {
        let first = self.far.peek().map_or((Position::NEVER, NONE), |Reverse(first)| *first);
        (self.next, self.next_entry, self.next_bucket) = (first.0, first.1, None);
    }
}

fn bucket_of(position: Position) -> u64 {
    position.at().0 >> BUCKET_SHIFT
}

#[cfg(test)]
mod tests {
    use super::Agenda;
    use proptest::prelude::{Strategy, prop_assert_eq, prop_oneof, proptest};
    use std::collections::BTreeMap;
    use underlay_core::Nanos;

    #[test]
    fn a_place_is_kept_for_what_is_entered_later() {
        let mut agenda = Agenda::new();
        let kept = agenda.reserve_position(Nanos(5));
        agenda.enter(Nanos(5), 'b');
        agenda.enter_at(kept, 'a');
        agenda.enter(Nanos(4), 'c');
        assert_eq!(agenda.next(), Nanos(4));
        assert_eq!(agenda.take(), Some((Nanos(4), 'c')));
        assert_eq!(agenda.take(), Some((Nanos(5), 'a')));
        assert_eq!(agenda.take(), Some((Nanos(5), 'b')));
        assert_eq!((agenda.take(), agenda.next()), (None, Nanos(u64::MAX)));
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// So much after what was taken last.
        Enter(u64),
        /// So much before it.
        EnterLate(u64),
        Take,
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (0..3_000_000u64).prop_map(Step::Enter),
            8 => (0..20_000u64).prop_map(Step::Enter),
            2 => (0..4u64).prop_map(Step::Enter),
            1 => (0..u64::MAX / 2).prop_map(Step::Enter),
            1 => (0..20_000u64).prop_map(Step::EnterLate),
            16 => (0..1u8).prop_map(|_| Step::Take),
            1 => (0..1u8).prop_map(|_| Step::Clear),
        ];
        proptest::collection::vec(step, 0..400)
    }

    proptest! {
        /// Against a sorted map: everything comes in order, and what is pending is known.
        #[test]
        fn behaves_like_a_sorted_map(steps in steps()) {
            let mut agenda = Agenda::new();
            let mut sorted = BTreeMap::new();
            let mut last = 0;
            for (number, step) in steps.into_iter().enumerate() {
                let enter = match step {
                    Step::Enter(ahead) => Some(last + ahead.min(u64::MAX / 2 - last)),
                    Step::EnterLate(behind) => Some(last.saturating_sub(behind)),
                    Step::Take | Step::Clear => None,
                };
                if let Some(at) = enter {
                    agenda.enter(Nanos(at), number);
                    sorted.insert((at, number), ());
                } else if let Step::Take = step {
                    let first = sorted.pop_first().map(|((at, number), ())| (Nanos(at), number));
                    last = first.map_or(last, |(at, _)| last.max(at.0));
                    prop_assert_eq!(agenda.take(), first);
                } else {
                    agenda.clear();
                    sorted.clear();
                }
                let next = sorted.first_key_value().map_or(u64::MAX, |((at, _), ())| *at);
                prop_assert_eq!(agenda.next(), Nanos(next));
                prop_assert_eq!(agenda.iter().count(), sorted.len());
            }
            while let Some(((at, number), ())) = sorted.pop_first() {
                prop_assert_eq!(agenda.take(), Some((Nanos(at), number)));
            }
            prop_assert_eq!(agenda.take(), None);
        }
    }
}
