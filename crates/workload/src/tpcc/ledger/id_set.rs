//! A set of order numbers, compact where they are dense.
//!
//! Pages of 1,024 numbers, one bit each, created when used: a set of `n` dense numbers takes about
//! `n / 8` bytes, and one stray number a page of 128 bytes. Numbers are never removed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Numbers per word and words per page.
const WORD_BITS: u32 = 64;
const PAGE_WORDS: usize = 16;
const PAGE_IDS: u32 = WORD_BITS * PAGE_WORDS as u32;

/// A set of order numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdSet {
    pages: BTreeMap<u32, [u64; PAGE_WORDS]>,
    count: u64,
}

impl IdSet {
    /// Adds a number; whether it was new.
    pub fn insert(&mut self, id: u32) -> bool {
        let (page, word, bit) = place(id);
        let word = &mut self.pages.entry(page).or_default()[word];
        let is_new = *word & bit == 0;
        *word |= bit;
        self.count += u64::from(is_new);
        is_new
    }

    /// Adds all numbers of a range.
    pub fn insert_range(&mut self, range: RangeInclusive<u32>) {
        for id in range {
            self.insert(id);
        }
    }

    /// Whether the number is in the set.
    pub fn contains(&self, id: u32) -> bool {
        let (page, word, bit) = place(id);
        self.pages.get(&page).is_some_and(|words| words[word] & bit != 0)
    }

    /// How many numbers the set has.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The highest number.
    pub fn highest(&self) -> Option<u32> {
        let (page, words) = self.pages.last_key_value()?;
        let word = words.iter().rposition(|word| *word != 0)?;
        let bit = WORD_BITS - 1 - words[word].leading_zeros();
        Some(page * PAGE_IDS + word as u32 * WORD_BITS + bit)
    }

    /// Adds all numbers of `other` and returns how many were in both.
    pub fn merge(&mut self, other: &IdSet) -> u64 {
        let mut overlap = 0;
        for (page, theirs) in &other.pages {
            let ours = self.pages.entry(*page).or_default();
            for (our_word, their_word) in ours.iter_mut().zip(theirs) {
                overlap += u64::from((*our_word & their_word).count_ones());
                *our_word |= their_word;
            }
        }
        self.count += other.count - overlap;
        overlap
    }

    /// The numbers as ranges without gaps, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u32>> {
        Ranges { words: self.words(), base: 0, bits: 0, open: None }
    }

    /// All words that hold a number, with the number of their lowest bit, ascending.
    fn words(&self) -> impl Iterator<Item = (u32, u64)> {
        self.pages.iter().flat_map(|(page, words)| {
            let base = page * PAGE_IDS;
            let place = move |(word, bits): (usize, &u64)| (base + word as u32 * WORD_BITS, *bits);
            words.iter().enumerate().map(place).filter(|(_, bits)| *bits != 0)
        })
    }
}

/// Joins the bits of ascending words to ranges.
struct Ranges<Words> {
    words: Words,
    /// The number of the lowest bit of `bits`.
    base: u32,
    /// The bits of the current word that are not in a range yet.
    bits: u64,
    /// The range that the next bits may still extend.
    open: Option<RangeInclusive<u32>>,
}

impl<Words: Iterator<Item = (u32, u64)>> Iterator for Ranges<Words> {
    type Item = RangeInclusive<u32>;

    fn next(&mut self) -> Option<RangeInclusive<u32>> {
        loop {
            if self.bits == 0 {
                let Some((base, bits)) = self.words.next() else { return self.open.take() };
                (self.base, self.bits) = (base, bits);
            }
            let run = self.take_run();
            let joined = match self.open.take() {
                Some(open) if *open.end() + 1 == *run.start() => *open.start()..=*run.end(),
                closed => {
                    self.open = Some(run);
                    if closed.is_some() {
                        return closed;
                    }
                    continue;
                }
            };
            self.open = Some(joined);
        }
    }
}

impl<Words> Ranges<Words> {
    /// Takes the lowest run of ones out of the current word, which must not be empty.
    fn take_run(&mut self) -> RangeInclusive<u32> {
        let first = self.bits.trailing_zeros();
        let length = (self.bits >> first).trailing_ones();
        let ones = if length == WORD_BITS { u64::MAX } else { (1 << length) - 1 };
        self.bits &= !(ones << first);
        self.base + first..=self.base + (first + length - 1)
    }
}

fn place(id: u32) -> (u32, usize, u64) {
    let in_page = id % PAGE_IDS;
    (id / PAGE_IDS, (in_page / WORD_BITS) as usize, 1 << (in_page % WORD_BITS))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::RangeInclusive;

    use proptest::collection::btree_set;
    use proptest::prelude::{
        ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };

    use super::IdSet;

    fn set_of(ids: &BTreeSet<u32>) -> IdSet {
        let mut set = IdSet::default();
        for id in ids {
            assert!(set.insert(*id));
        }
        set
    }

    /// Dense numbers, as a district has, and any numbers, up to the largest.
    fn ids() -> impl Strategy<Value = BTreeSet<u32>> {
        prop_oneof![
            btree_set(3_000u32..5_000, 0..1_500),
            btree_set(any::<u32>(), 0..50),
            btree_set(u32::MAX - 200..=u32::MAX, 0..150),
        ]
    }

    #[test]
    fn ranges_join_across_words_and_pages() {
        let mut set = IdSet::default();
        set.insert_range(3_001..=9_000);
        set.insert(9_002);
        set.insert_range(u32::MAX - 1..=u32::MAX);
        let ranges: Vec<RangeInclusive<u32>> = set.ranges().collect();
        assert_eq!(ranges, [3_001..=9_000, 9_002..=9_002, u32::MAX - 1..=u32::MAX]);
        assert_eq!(set.count(), 6_003);
        assert_eq!(set.highest(), Some(u32::MAX));
        assert_eq!(IdSet::default().highest(), None);
        assert_eq!(IdSet::default().ranges().next(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn behaves_like_a_plain_set(ids in ids(), probe in any::<u32>()) {
            let set = set_of(&ids);
            prop_assert_eq!(set.count(), ids.len() as u64);
            prop_assert_eq!(set.highest(), ids.last().copied());
            prop_assert!(ids.iter().all(|id| set.contains(*id)));
            prop_assert_eq!(set.contains(probe), ids.contains(&probe));
            let flat: Vec<u32> = set.ranges().flatten().collect();
            prop_assert_eq!(flat, ids.iter().copied().collect::<Vec<_>>());
            let ranges: Vec<_> = set.ranges().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end() + 1 < *pair[1].start()));
        }

        #[test]
        fn merge_is_union(left in ids(), right in ids()) {
            let mut merged = set_of(&left);
            let overlap = merged.merge(&set_of(&right));
            let union: BTreeSet<u32> = left.union(&right).copied().collect();
            prop_assert_eq!(overlap, left.intersection(&right).count() as u64);
            prop_assert_eq!(&merged, &set_of(&union));
        }
    }
}
