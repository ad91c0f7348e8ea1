//! Random numbers of one row, and blocks of counts whose sums are known.
//!
//! A row must be generated alone, in any order: each has a generator of its own, SplitMix64 (Steele, Lea and Flood 2014, "Fast
//! splittable pseudorandom number generators") begun at a hash of table and row. Users' inputs come from
//! named streams as everywhere else.

use rand::Rng;
use underlay_core::RootSeed;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The root of the rows of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableKey(u64);

impl TableKey {
    /// The rows of `table`.
    pub(super) fn new(seed: RootSeed, table: &str) -> TableKey {
        TableKey(seed.child("dvdstore", 0).stream(table, 0).next_u64())
    }

    /// The numbers of row `row`.
    pub(super) fn row(self, row: u64) -> RowRandom {
        RowRandom(mix(self.0 ^ mix(row.wrapping_add(GOLDEN))))
    }
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The numbers of one row.
#[derive(Clone, Debug)]
pub(super) struct RowRandom(u64);

impl RowRandom {
    /// From a number that was drawn elsewhere.
    pub(super) fn of(number: u64) -> RowRandom {
        RowRandom(number)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `count`; see [`crate::draw::below`] for the bias.
    pub(super) fn below(&mut self, count: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(count)) >> 64) as u32
    }

    /// A number in `low..=high`.
    pub(super) fn uniform(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }
}

/// Counts of `LOW` to `HIGH` per item, in random order within blocks that hold each count once: equally likely, their
/// mean exact, and the number of all before an item known without looking at the other blocks.
#[derive(Clone, Debug)]
pub(super) struct Counts<const LOW: u32, const HIGH: u32> {
    key: TableKey,
    /// The block that `values` is.
    block: Option<u64>,
    values: Vec<u32>,
}

impl<const LOW: u32, const HIGH: u32> Counts<LOW, HIGH> {
    const ITEMS: u64 = (HIGH - LOW + 1) as u64;
    const SUM: u64 = Self::ITEMS * (HIGH + LOW) as u64 / 2;

    pub(super) fn new(key: TableKey) -> Counts<LOW, HIGH> {
        Counts { key, block: None, values: (LOW..=HIGH).collect() }
    }

    /// The count of `item`, counted from 0, and the sum of those before it.
    pub(super) fn of(&mut self, item: u64) -> (u32, u64) {
        let (block, place) = (item / Self::ITEMS, (item % Self::ITEMS) as usize);
        if self.block != Some(block) {
            self.shuffle(block);
        }
        let before: u32 = self.values[..place].iter().sum();
        (self.values[place], block * Self::SUM + u64::from(before))
    }

    fn shuffle(&mut self, block: u64) {
        for (value, count) in self.values.iter_mut().zip(LOW..=HIGH) {
            *value = count;
        }
        let mut random = self.key.row(block);
        for last in (1..self.values.len()).rev() {
            let other = random.below(last as u32 + 1) as usize;
            self.values.swap(last, other);
        }
        self.block = Some(block);
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, TableKey};
    use underlay_core::RootSeed;

    #[test]
    fn counts_add_up_whatever_the_order_of_asking() {
        let key = TableKey::new(RootSeed(3), "test");
        let mut forward = Counts::<2, 39>::new(key);
        let mut sum = 0;
        let all: Vec<(u32, u64)> = (0..500).map(|item| forward.of(item)).collect();
        for (count, before) in &all {
            assert_eq!(*before, sum);
            assert!((2..=39).contains(count));
            sum += u64::from(*count);
        }
        let mut backward = Counts::<2, 39>::new(key);
        for item in (0..500).rev() {
            assert_eq!(backward.of(item), all[item as usize]);
        }
        // Thirteen whole blocks of 38 items, each with the sum 779.
        assert_eq!(all[13 * 38].1, 13 * 779);
    }
}
