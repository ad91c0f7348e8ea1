//! The number of references to each distinct block: a table of eight bytes per block.
//!
//! Fingerprints are spread evenly, so an entry's place follows from its fingerprint by proportion, entries stand in the
//! order of their fingerprints but for collisions, and a table may have any length: each of the shards grows by a quarter
//! when it is seven eighths full. An entry holds the part of the fingerprint that its shard does not determine, and a small
//! count. The few blocks with larger counts have them in a map.

use super::fingerprint::Print;
use std::collections::HashMap;

/// Bits of the fingerprint that name its shard.
const SHARD_BITS: u32 = 10;
/// Bits of a fingerprint.
const FINGERPRINT_BITS: u32 = 63;
/// Bits of the fingerprint in an entry.
const REST_BITS: u32 = FINGERPRINT_BITS - SHARD_BITS;
/// Bits of the count in an entry, beside one that says whether the block is compressed.
const COUNT_BITS: u32 = 64 - REST_BITS - 1;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const SHORTEST: usize = 8;

/// Different blocks with the number of their references.
#[derive(Clone, Debug)]
pub(super) struct UniqueBlocks {
    shards: Vec<Shard>,
    /// References beyond what an entry holds.
    more: HashMap<u64, u64>,
}

#[derive(Clone, Debug, Default)]
struct Shard {
    /// 0 = free, else rest of the fingerprint, compressed, count of 1 or more.
    entries: Vec<u64>,
    used: usize,
}

/// An entry taken apart.
const fn count_of(entry: u64) -> u64 {
    entry & COUNT_MAX
}

const fn rest_of(entry: u64) -> u64 {
    entry >> (COUNT_BITS + 1)
}

const fn is_compressed(entry: u64) -> bool {
    entry >> COUNT_BITS & 1 == 1
}

impl UniqueBlocks {
    pub(super) fn new() -> UniqueBlocks {
        UniqueBlocks { shards: vec![Shard::default(); 1 << SHARD_BITS], more: HashMap::new() }
    }

    /// Adds a reference to a block that is there; its print as it is stored. None if it is not there.
    pub(super) fn refer(&mut self, print: Print) -> Option<Print> {
        let (shard, rest) = split(print);
        let shard = &mut self.shards[shard];
        let at = shard.find(rest)?;
        let entry = &mut shard.entries[at];
        let stored = if is_compressed(*entry) { print.compressed() } else { print };
        if count_of(*entry) < COUNT_MAX {
            *entry += 1;
        } else {
            *self.more.entry(print.fingerprint()).or_default() += 1;
        }
        Some(stored)
    }

    /// Adds a block that is not there, with its first reference.
    pub(super) fn add(&mut self, print: Print) {
        let (shard, rest) = split(print);
        let compressed = u64::from(print.is_compressed());
        self.shards[shard].insert(rest << (COUNT_BITS + 1) | compressed << COUNT_BITS | 1);
    }

    /// Takes a reference away; whether it was the last.
    ///
    /// # Panics
    /// If the block is not there.
    pub(super) fn release(&mut self, print: Print) -> bool {
        let (shard, rest) = split(print);
        let shard = &mut self.shards[shard];
        let at = shard.find(rest).expect("a block that is referred to is there");
        let count = count_of(shard.entries[at]);
        if count == COUNT_MAX
            && let Some(more) = self.more.get_mut(&print.fingerprint())
        {
            *more -= 1;
            if *more == 0 {
                self.more.remove(&print.fingerprint());
            }
            return false;
        }
        if count > 1 {
            shard.entries[at] -= 1;
            return false;
        }
        shard.remove(at);
        true
    }

    /// Bytes of memory that the table takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let entries: usize = self.shards.iter().map(|shard| shard.entries.capacity()).sum();
        let shards = self.shards.len() * size_of::<Shard>();
        (entries * 8 + shards + self.more.capacity() * 17) as u64
    }
}

fn split(print: Print) -> (usize, u64) {
    let fingerprint = print.fingerprint();
    ((fingerprint >> REST_BITS) as usize, fingerprint & ((1 << REST_BITS) - 1))
}

impl Shard {
    /// Where an entry belongs.
    fn home(&self, rest: u64) -> usize {
        ((u128::from(rest) * self.entries.len() as u128) >> REST_BITS) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.entries.len() { 0 } else { at + 1 }
    }

    fn find(&self, rest: u64) -> Option<usize> {
        if self.used == 0 {
            return None;
        }
        let mut at = self.home(rest);
        while self.entries[at] != 0 {
            if rest_of(self.entries[at]) == rest {
                return Some(at);
            }
            at = self.next(at);
        }
        None
    }

    fn insert(&mut self, entry: u64) {
        debug_assert!(count_of(entry) > 0, "a block without a reference");
        debug_assert!(self.find(rest_of(entry)).is_none(), "a block is added once");
        if (self.used + 1) * 8 > self.entries.len() * 7 {
            self.resize((self.entries.len() * 5 / 4).max(SHORTEST));
        }
        self.place(entry);
        self.used += 1;
    }

    fn place(&mut self, entry: u64) {
        debug_assert!(self.used < self.entries.len(), "a free place ends every search");
        let mut at = self.home(rest_of(entry));
        while self.entries[at] != 0 {
            at = self.next(at);
        }
        self.entries[at] = entry;
    }

    fn remove(&mut self, mut hole: usize) {
        debug_assert!(self.entries[hole] != 0 && self.used > 0, "a place that is taken");
        self.entries[hole] = 0;
        self.used -= 1;
        // An entry behind the hole moves up if its own place was taken.
        let mut at = self.next(hole);
        while self.entries[at] != 0 {
            let home = self.home(rest_of(self.entries[at]));
            let length = self.entries.len();
            let from_home = (at + length - home) % length;
            let from_hole = (at + length - hole) % length;
            if from_home >= from_hole {
                self.entries[hole] = std::mem::take(&mut self.entries[at]);
                hole = at;
            }
            at = self.next(at);
        }
        if self.entries.len() > SHORTEST && self.used * 3 < self.entries.len() {
            self.resize((self.entries.len() / 2).max(SHORTEST));
        }
    }

    fn resize(&mut self, length: usize) {
        assert!(length > self.used, "not all entries find a place");
        let old = std::mem::replace(&mut self.entries, vec![0; length]);
        old.into_iter().filter(|entry| *entry != 0).for_each(|entry| self.place(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNT_MAX, UniqueBlocks};
    use crate::reduction::Print;
    use proptest::prelude::{prop_assert_eq, proptest};
    use rand::Rng;
    use std::collections::BTreeMap;
    use underlay_core::RootSeed;

    fn print(raw: u64) -> Print {
        Print::from_raw(raw.max(1) << 1)
    }

    #[test]
    fn many_references_are_counted_exactly() {
        let mut blocks = UniqueBlocks::new();
        let one = print(7).compressed();
        blocks.add(one);
        for _ in 0..3 * COUNT_MAX {
            assert_eq!(blocks.refer(print(7)), Some(one));
        }
        for _ in 0..3 * COUNT_MAX {
            assert!(!blocks.release(one));
        }
        assert!(blocks.release(one));
        assert_eq!(blocks.refer(one), None);
    }

    /// Eleven bytes for a different block at most, once there are enough of them to hide what every table takes; and
    /// what was taken is given back.
    #[test]
    fn memory_is_small() {
        let mut random = RootSeed(1).stream("prints", 0);
        let mut blocks = UniqueBlocks::new();
        let prints: Vec<Print> = (0..400_000).map(|_| print(random.next_u64() >> 1)).collect();
        let mut worst = 0.0f64;
        for (count, one) in prints.iter().enumerate() {
            blocks.add(*one);
            if count > 100_000 {
                worst = worst.max(blocks.memory_bytes() as f64 / (count + 1) as f64);
            }
        }
        assert!(worst < 12.5, "{worst} bytes per block");
        assert!(prints.iter().all(|one| blocks.release(*one)));
        assert!(blocks.memory_bytes() < 150_000, "{}", blocks.memory_bytes());
    }

    proptest! {
        /// Against a map, with fingerprints that crowd in one shard and at its ends.
        #[test]
        fn agrees_with_a_map(steps in proptest::collection::vec((0..40u64, 0..3u8), 1..400)) {
            let mut blocks = UniqueBlocks::new();
            let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
            for (which, what) in steps {
                let raw = if which < 20 { which } else { (1 << 53) - which };
                let one = print(raw);
                let count = counts.entry(one.to_raw()).or_default();
                if what == 0 && *count > 0 {
                    *count -= 1;
                    prop_assert_eq!(blocks.release(one), *count == 0);
                } else {
                    let known = blocks.refer(one);
                    prop_assert_eq!(known, (*count > 0).then_some(one));
                    if known.is_none() {
                        blocks.add(one);
                    }
                    *count += 1;
                }
            }
            for (raw, count) in counts {
                for left in (0..count).rev() {
                    prop_assert_eq!(blocks.release(Print::from_raw(raw)), left == 0);
                }
            }
        }
    }
}
