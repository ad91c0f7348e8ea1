//! Which blocks of a component have changed since they were last counted: one bit per block of 4 KiB.

/// The blocks of one component that are still to be counted.
///
/// Setting a bit costs the same however many are set, and allocates nothing.
#[derive(Clone, Debug)]
pub struct ChangedBlocks {
    words: Vec<u64>,
    changed: u64,
}

impl ChangedBlocks {
    /// None of so many blocks has changed.
    pub fn new(blocks: u64) -> ChangedBlocks {
        ChangedBlocks { words: vec![0; blocks.div_ceil(64) as usize], changed: 0 }
    }

    /// How many have.
    pub fn count(&self) -> u64 {
        self.changed
    }

    /// These have changed.
    pub fn mark(&mut self, first: u64, count: u64) {
        let mut added = 0;
        self.each_word(first, count, |word, mask| {
            added += u64::from((mask & !*word).count_ones());
            *word |= mask;
        });
        self.changed += added;
        debug_assert!(added <= count, "no more than the range");
        debug_assert!(self.changed <= self.words.len() as u64 * 64, "no more than there are");
    }

    /// Whether one has.
    pub fn is_changed(&self, block: u64) -> bool {
        self.words.get((block / 64) as usize).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// Takes out those of a range that have changed; `run` gets first block and number of each contiguous run.
    pub fn take_range(&mut self, first: u64, count: u64, mut run: impl FnMut(u64, u64)) {
        let mut at = first / 64;
        let mut taken = 0;
        self.each_word(first, count, |word, mask| {
            let ready = *word & mask;
            *word &= !mask;
            taken += u64::from(ready.count_ones());
            runs(at * 64, ready, &mut run);
            at += 1;
        });
        debug_assert!(taken <= self.changed.min(count), "what is taken out was counted");
        self.changed -= taken;
    }

    /// The next word from `from` on in which a block has changed: its number, and the blocks by bit.
    pub fn next_word(&self, from: usize) -> Option<(usize, u64)> {
        let rest = self.words.get(from..)?;
        let found = rest.iter().position(|word| *word != 0)?;
        Some((from + found, rest[found]))
    }

    /// Takes out blocks of one word.
    pub fn take_word(&mut self, word: usize, mask: u64, run: impl FnMut(u64, u64)) {
        let ready = self.words[word] & mask;
        self.words[word] &= !mask;
        debug_assert!(u64::from(ready.count_ones()) <= self.changed, "it was counted");
        self.changed -= u64::from(ready.count_ones());
        runs(word as u64 * 64, ready, run);
    }

    fn each_word(&mut self, first: u64, count: u64, mut each: impl FnMut(&mut u64, u64)) {
        let end = first + count;
        assert!(
            count == 0 || end <= self.words.len() as u64 * 64,
            "block {end} of {}",
            self.words.len() * 64
        );
        let mut block = first;
        while block < end {
            let bit = block % 64;
            let bits = (64 - bit).min(end - block);
            let mask = if bits == 64 { u64::MAX } else { ((1 << bits) - 1) << bit };
            each(&mut self.words[(block / 64) as usize], mask);
            block += bits;
        }
    }
}

/// The runs of set bits.
fn runs(base: u64, mut mask: u64, mut run: impl FnMut(u64, u64)) {
    let mut at = 0;
    while mask != 0 {
        let skipped = mask.trailing_zeros();
        mask >>= skipped;
        let length = mask.trailing_ones();
        mask = mask.checked_shr(length).unwrap_or(0);
        run(base + u64::from(at + skipped), u64::from(length));
        at += skipped + length;
    }
}

#[cfg(test)]
mod tests {
    use super::ChangedBlocks;
    use proptest::prelude::{prop_assert_eq, proptest};
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set(steps in proptest::collection::vec((0..3u8, 0..300u64, 1..150u64), 1..40)) {
            let mut changed = ChangedBlocks::new(512);
            let mut set = BTreeSet::new();
            for (what, first, count) in steps {
                let count = count.min(512 - first);
                let mut taken = Vec::new();
                let mut run = |first: u64, count: u64| taken.extend(first..first + count);
                let range = first..first + count;
                let mut expected: Vec<u64> = Vec::new();
                match what {
                    0 => {
                        changed.mark(first, count);
                        set.extend(range);
                    }
                    1 => {
                        changed.take_range(first, count, &mut run);
                        expected = set.range(range).copied().collect();
                    }
                    _ => {
                        let from = (first / 64) as usize;
                        let found = changed.next_word(from);
                        let next = set.range(from as u64 * 64..).next().map(|block| block / 64);
                        prop_assert_eq!(found.map(|(word, _)| word as u64), next);
                        if let Some((word, _)) = found {
                            changed.take_word(word, 0xFF00_FF00_FF00_FFFF, &mut run);
                            let word = word as u64 * 64;
                            let kept = |block: &u64| 0xFF00_FF00_FF00_FFFFu64 >> (block % 64) & 1 == 1;
                            expected = set.range(word..word + 64).copied().filter(kept).collect();
                        }
                    }
                }
                prop_assert_eq!(&taken, &expected);
                for block in expected {
                    set.remove(&block);
                }
                prop_assert_eq!(changed.count(), set.len() as u64);
                prop_assert_eq!((0..512).filter(|block| changed.is_changed(*block)).count(), set.len());
            }
        }
    }
}
