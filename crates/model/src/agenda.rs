//! What is to happen and when: a queue of moments in which the next one is known without a search.
//!
//! A calendar queue. Moments of the next millisecond stand in buckets of 4 microseconds, found by their time; within a bucket in
//! order, by links. Most are entered at the end of their bucket and taken from its beginning, so that neither costs more when
//! much is pending. What lies further ahead waits in a heap, and is taken from there when its time has come: there is little
//! of it, because devices and networks answer within a millisecond.
//!
//! Things happen in order of time, and of the turn they took where times are equal. What is entered too late, before what was
//! taken last, is taken next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::Nanos;

/// Length of a bucket: 2^12 ns.
const BUCKET_SHIFT: u32 = 12;
/// Number of buckets; what lies further ahead is not near.
const BUCKETS: usize = 256;
const WORDS: usize = BUCKETS / 64;
/// No entry.
const NOBODY: u32 = u32::MAX;

/// A place in the sequence of what happens: a moment in the upper half, in the lower one how many places were taken before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(u128);

impl Turn {
    /// After everything.
    const NEVER: Turn = Turn(u128::MAX);

    /// When it is.
    pub(crate) fn at(self) -> Nanos {
        Nanos((self.0 >> 64) as u64)
    }
}

#[derive(Clone, Debug)]
struct Entry<T> {
    /// [`Turn::NEVER`] while nothing is here.
    turn: Turn,
    /// Neighbours in the bucket.
    before: u32,
    after: u32,
    item: T,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    first: u32,
    last: u32,
}

/// All that is pending.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<T> {
    /// The next thing to happen: its turn, its entry, and whether it is far.
    next: Turn,
    next_entry: u32,
    next_is_far: bool,
    /// Turns taken so far.
    taken: u64,
    /// Number of the bucket that was taken from last: no near entry is in an earlier one.
    floor: u64,
    /// One bit per bucket that holds something.
    occupied: [u64; WORDS],
    buckets: Box<[Bucket; BUCKETS]>,
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    far: BinaryHeap<Reverse<(Turn, u32)>>,
}

impl<T: Copy> Agenda<T> {
    /// Nothing pending.
    pub(crate) fn new() -> Agenda<T> {
        Agenda {
            next: Turn::NEVER,
            next_entry: NOBODY,
            next_is_far: false,
            taken: 0,
            floor: 0,
            occupied: [0; WORDS],
            buckets: Box::new([Bucket { first: NOBODY, last: NOBODY }; BUCKETS]),
            entries: Vec::new(),
            free: Vec::new(),
            far: BinaryHeap::new(),
        }
    }

    /// When the next thing happens; `u64::MAX` = never.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.next.at()
    }

    /// Takes a place for something that will be entered there, or not at all.
    #[inline]
    pub(crate) fn take_turn(&mut self, at: Nanos) -> Turn {
        self.taken += 1;
        Turn(u128::from(at.0) << 64 | u128::from(self.taken))
    }

    /// Enters something at a moment, after what was entered there before.
    #[inline]
    pub(crate) fn enter(&mut self, at: Nanos, item: T) {
        let turn = self.take_turn(at);
        self.enter_at(turn, item);
    }

    /// Enters something at a place that was taken.
    pub(crate) fn enter_at(&mut self, turn: Turn, item: T) {
        let new = Entry { turn, before: NOBODY, after: NOBODY, item };
        let entry = match self.free.pop() {
            Some(entry) => {
                self.entries[entry as usize] = new;
                entry
            }
            None => {
                self.entries.push(new);
                self.entries.len() as u32 - 1
            }
        };
        let bucket = bucket_of(turn).max(self.floor);
        let is_far = bucket - self.floor >= BUCKETS as u64;
        if is_far {
            self.far.push(Reverse((turn, entry)));
        } else {
            self.link(bucket as usize % BUCKETS, entry, turn);
        }
        if turn < self.next {
            (self.next, self.next_entry, self.next_is_far) = (turn, entry, is_far);
        }
    }

    /// Takes what happens next.
    pub(crate) fn take(&mut self) -> Option<(Nanos, T)> {
        let entry = self.next_entry;
        if entry == NOBODY {
            return None;
        }
        let at = self.next.at();
        if self.next_is_far {
            self.far.pop();
        } else {
            self.unlink_first(bucket_of(self.next).max(self.floor) as usize % BUCKETS);
        }
        self.floor = self.floor.max(bucket_of(self.next));
        let taken = &mut self.entries[entry as usize];
        taken.turn = Turn::NEVER;
        let item = taken.item;
        self.free.push(entry);
        self.find_next();
        Some((at, item))
    }

    /// All that is pending, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Turn, &T)> {
        let pending = self.entries.iter().filter(|entry| entry.turn != Turn::NEVER);
        pending.map(|entry| (entry.turn, &entry.item))
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Turn, &mut T)> {
        let pending = self.entries.iter_mut().filter(|entry| entry.turn != Turn::NEVER);
        pending.map(|entry| (entry.turn, &mut entry.item))
    }

    /// Forgets what is pending. Turns go on.
    pub(crate) fn clear(&mut self) {
        let (taken, floor) = (self.taken, self.floor);
        *self = Agenda { taken, floor, ..Agenda::new() };
    }

    /// Puts an entry into its place in a bucket: nearly always the last one.
    #[inline]
    fn link(&mut self, bucket: usize, entry: u32, turn: Turn) {
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        let mut before = self.buckets[bucket].last;
        let mut after = NOBODY;
        while before != NOBODY && self.entries[before as usize].turn > turn {
            after = before;
            before = self.entries[before as usize].before;
        }
        let new = &mut self.entries[entry as usize];
        (new.before, new.after) = (before, after);
        match before {
            NOBODY => self.buckets[bucket].first = entry,
            before => self.entries[before as usize].after = entry,
        }
        match after {
            NOBODY => self.buckets[bucket].last = entry,
            after => self.entries[after as usize].before = entry,
        }
    }

    #[inline]
    fn unlink_first(&mut self, bucket: usize) {
        let first = self.entries[self.buckets[bucket].first as usize].after;
        self.buckets[bucket].first = first;
        match first {
            NOBODY => {
                self.buckets[bucket].last = NOBODY;
                self.occupied[bucket / 64] &= !(1 << (bucket % 64));
            }
            first => self.entries[first as usize].before = NOBODY,
        }
    }

    #[inline]
    fn find_next(&mut self) {
        (self.next, self.next_entry, self.next_is_far) = (Turn::NEVER, NOBODY, false);
        if let Some(bucket) = self.first_occupied() {
            let entry = self.buckets[bucket].first;
            (self.next, self.next_entry) = (self.entries[entry as usize].turn, entry);
        }
        if let Some(Reverse((turn, entry))) = self.far.peek()
            && *turn < self.next
        {
            (self.next, self.next_entry, self.next_is_far) = (*turn, *entry, true);
        }
    }

    /// The first bucket from the floor on that holds something.
    #[inline]
    fn first_occupied(&self) -> Option<usize> {
        let from = self.floor as usize % BUCKETS;
        let mut word = from / 64;
        let mut bits = self.occupied[word] & (u64::MAX << (from % 64));
        // Once round: the last step looks at what lies before the floor in the first word, which is the furthest ahead.
        for _ in 0..=WORDS {
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            word = (word + 1) % WORDS;
            bits = self.occupied[word];
        }
        None
    }
}

fn bucket_of(turn: Turn) -> u64 {
    turn.at().0 >> BUCKET_SHIFT
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
        let kept = agenda.take_turn(Nanos(5));
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
