//! Which blocks of a capacity device are in the write buffer: the interval map of the log.
//!
//! Two bits per block of 4 KiB: *dirty* = its newest version is in the buffer, *leaving* = an older or the
//! only version is on its way to the capacity device. A block that is overwritten while it leaves has both,
//! and two versions in the buffer. Bits stand in chunks of 128 MiB of addresses that exist only while something is
//! set, under a summary that finds the next dirty block without a search. So a write costs a few
//! nanoseconds however much is buffered, and memory follows what is buffered, not what the device holds.

use super::chunk::{CHUNK_BLOCKS, Chunk, WORDS, take_from};

/// Granularity of the buffer: smaller and unaligned I/O is inflated to it.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// The buffered blocks of one capacity device.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferedBlocks {
    chunks: Vec<Option<Box<Chunk>>>,
    /// One bit per chunk with a dirty block.
    occupied: Vec<u64>,
    /// Chunks for reuse, so that a steady state allocates nothing.
    spare: Vec<Box<Chunk>>,
    dirty_blocks: u64,
    leaving_blocks: u64,
}

/// What of a range is buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Presence {
    /// Blocks in the buffer.
    pub(crate) present: u64,
    /// First and last block that is, if any.
    pub(crate) present_span: Option<(u64, u64)>,
    /// First and last block that is not, if any.
    pub(crate) missing_span: Option<(u64, u64)>,
}

/// Calls `each` with every word that the range touches and the bits in it.
#[inline]
fn words(first: u64, count: u64, mut each: impl FnMut(u64, u64)) {
    let end = first + count;
    let mut block = first;
    while block < end {
        let bit = block % 64;
        let bits = (64 - bit).min(end - block);
        let mask = (u64::MAX >> (64 - bits)) << bit;
        each(block / 64, mask);
        block += bits;
    }
}

const fn chunk_of(word: u64) -> usize {
    (word / WORDS as u64) as usize
}

const fn word_in_chunk(word: u64) -> usize {
    (word % WORDS as u64) as usize
}

impl BufferedBlocks {
    /// Blocks whose newest version is in the buffer.
    pub(crate) fn dirty_blocks(&self) -> u64 {
        self.dirty_blocks
    }

    /// Versions of blocks in the buffer.
    pub(crate) fn buffered_blocks(&self) -> u64 {
        self.dirty_blocks + self.leaving_blocks
    }

    /// Buffers a new version of each block; returns how many replaced one that had not begun to leave.
    pub(crate) fn insert(&mut self, first: u64, count: u64) -> u64 {
        let mut added = 0;
        words(first, count, |word, mask| {
            let index = chunk_of(word);
            added += u64::from(self.chunk(index).set_dirty(word_in_chunk(word), mask));
            self.occupied[index / 64] |= 1 << (index % 64);
        });
        debug_assert!(added <= count, "a block is counted once");
        self.dirty_blocks += added;
        count - added
    }

    /// Forgets the newest versions, as a discard does; returns how many there were.
    pub(crate) fn discard(&mut self, first: u64, count: u64) -> u64 {
        let mut removed = 0;
        words(first, count, |word, mask| {
            let Some(Some(chunk)) = self.chunks.get_mut(chunk_of(word)) else { return };
            removed += u64::from(chunk.clear_dirty(word_in_chunk(word), mask));
            self.tidy(chunk_of(word));
        });
        debug_assert!(removed <= self.dirty_blocks, "only counted blocks are discarded");
        self.dirty_blocks -= removed;
        removed
    }

    /// What of a range is in the buffer.
    pub(crate) fn presence(&self, first: u64, count: u64) -> Presence {
        if self.is_absent(first, count) {
            return Presence {
                present: 0,
                present_span: None,
                missing_span: Some((first, first + count - 1)),
            };
        }
        let mut found = Presence { present: 0, present_span: None, missing_span: None };
        words(first, count, |word, mask| {
            let chunk = self.chunks.get(chunk_of(word)).and_then(Option::as_ref);
            let here = chunk.map_or(0, |chunk| chunk.buffered(word_in_chunk(word)) & mask);
            found.present += u64::from(here.count_ones());
            widen(&mut found.present_span, word, here);
            widen(&mut found.missing_span, word, mask & !here);
        });
        found
    }

    /// Whether the range lies in one word, and nothing of it is in the buffer: the usual case.
    #[inline]
    fn is_absent(&self, first: u64, count: u64) -> bool {
        let (word, bit) = (first / 64, first % 64);
        if count == 0 || bit + count > 64 {
            return false;
        }
        let mask = (u64::MAX >> (64 - count)) << bit;
        match self.chunks.get(chunk_of(word)) {
            Some(Some(chunk)) => chunk.buffered(word_in_chunk(word)) & mask == 0,
            _ => true,
        }
    }

    /// Which of the 64 blocks from `first` on are in the buffer: one bit each.
    pub(crate) fn mask(&self, first: u64) -> u64 {
        let here = |word: u64| {
            let chunk = self.chunks.get(chunk_of(word)).and_then(Option::as_ref);
            chunk.map_or(0, |chunk| chunk.buffered(word_in_chunk(word)))
        };
        let (word, bit) = (first / 64, first % 64);
        match bit {
            0 => here(word),
            bit => here(word) >> bit | here(word + 1) << (64 - bit),
        }
    }

    /// Takes the next run of contiguous dirty blocks from `from` on, at most `most`, to leave the buffer;
    /// returns its first block and length.
    pub(crate) fn take_run(&mut self, from: u64, most: u64) -> Option<(u64, u64)> {
        let (mut index, mut word) = (chunk_of(from / 64), word_in_chunk(from / 64));
        let mut mask = u64::MAX << (from % 64);
        loop {
            index = self.next_occupied(index, &mut word, &mut mask)?;
            let chunk = self.chunks[index].as_mut().expect("an occupied chunk exists");
            let Some((found, ready)) = chunk.next_ready(word, mask) else {
                (index, word, mask) = (index + 1, 0, u64::MAX);
                continue;
            };
            let bit = u64::from(ready.trailing_zeros());
            let taken = take_from(chunk, found, bit, most);
            let first = index as u64 * CHUNK_BLOCKS + found as u64 * 64 + bit;
            debug_assert!((1..=most).contains(&taken), "a run has 1 to {most} blocks, not {taken}");
            debug_assert!(taken <= self.dirty_blocks, "only counted blocks leave");
            self.dirty_blocks -= taken;
            self.leaving_blocks += taken;
            self.tidy(index);
            return Some((first, taken));
        }
    }

    /// The leaving versions have arrived on the capacity device.
    pub(crate) fn arrived(&mut self, first: u64, count: u64) {
        words(first, count, |word, mask| {
            let chunk = self.chunks[chunk_of(word)].as_mut().expect("it holds leaving blocks");
            let word_here = word_in_chunk(word);
            assert_eq!(chunk.leaving[word_here] & mask, mask, "only leaving blocks arrive");
            chunk.leaving[word_here] &= !mask;
            chunk.leaving_blocks -= mask.count_ones();
            self.tidy(chunk_of(word));
        });
        debug_assert!(count <= self.leaving_blocks, "only leaving blocks arrive");
        self.leaving_blocks -= count;
    }

    /// The leaving versions stay after all; returns how many of them have been replaced in the meantime.
    pub(crate) fn stay(&mut self, first: u64, count: u64) -> u64 {
        let mut added = 0;
        words(first, count, |word, mask| {
            let index = chunk_of(word);
            let chunk = self.chunks[index].as_mut().expect("it holds leaving blocks");
            let word = word_in_chunk(word);
            chunk.leaving[word] &= !mask;
            chunk.leaving_blocks -= mask.count_ones();
            added += u64::from(chunk.set_dirty(word, mask));
            self.occupied[index / 64] |= 1 << (index % 64);
        });
        debug_assert!(count <= self.leaving_blocks && added <= count, "only leaving blocks stay");
        self.leaving_blocks -= count;
        self.dirty_blocks += added;
        count - added
    }

    /// Every leaving version stays after all; returns how many had been replaced in the meantime.
    pub(crate) fn stay_all(&mut self) -> u64 {
        let mut replaced = 0;
        for (index, chunk) in self.chunks.iter_mut().enumerate() {
            let Some(chunk) = chunk.as_mut().filter(|chunk| chunk.leaving_blocks > 0) else {
                continue;
            };
            for word in 0..WORDS {
                let leaving = std::mem::take(&mut chunk.leaving[word]);
                if leaving != 0 {
                    let added = chunk.set_dirty(word, leaving);
                    self.dirty_blocks += u64::from(added);
                    replaced += u64::from(leaving.count_ones() - added);
                }
            }
            chunk.leaving_blocks = 0;
            self.occupied[index / 64] |= 1 << (index % 64);
        }
        self.leaving_blocks = 0;
        replaced
    }

    /// Forgets the newest version of every block, not those that are leaving; returns how many.
    pub(crate) fn forget_dirty(&mut self) -> u64 {
        for index in 0..self.chunks.len() {
            if let Some(chunk) = &mut self.chunks[index] {
                chunk.dirty = [0; WORDS];
                chunk.summary = [0; WORDS / 64];
                chunk.dirty_blocks = 0;
                self.tidy(index);
            }
        }
        std::mem::take(&mut self.dirty_blocks)
    }

    fn chunk(&mut self, index: usize) -> &mut Chunk {
        if index >= self.chunks.len() {
            self.chunks.resize_with(index + 1, || None);
            self.occupied.resize(index / 64 + 1, 0);
        }
        let spare = &mut self.spare;
        self.chunks[index]
            .get_or_insert_with(|| spare.pop().unwrap_or_else(|| Box::new(Chunk::empty())))
    }

    /// Gives back a chunk in which nothing is set.
    fn tidy(&mut self, index: usize) {
        let Some(chunk) = &self.chunks[index] else { return };
        if chunk.dirty_blocks == 0 {
            debug_assert!(
                chunk.summary == [0; WORDS / 64],
                "the summary of no dirty block is empty"
            );
            self.occupied[index / 64] &= !(1 << (index % 64));
            if chunk.leaving_blocks == 0 && self.spare.len() < 64 {
                self.spare.extend(self.chunks[index].take());
            }
        }
    }

    /// The first chunk from `index` on with a dirty block; when that is a later one, the search in it begins
    /// at its start.
    fn next_occupied(&self, index: usize, word: &mut usize, mask: &mut u64) -> Option<usize> {
        let mut at = index;
        loop {
            let rest = self.occupied.get(at / 64)? >> (at % 64);
            if rest == 0 {
                at = (at / 64 + 1) * 64;
                continue;
            }
            at += rest.trailing_zeros() as usize;
            if at != index {
                (*word, *mask) = (0, u64::MAX);
            }
            return Some(at);
        }
    }
}

fn widen(span: &mut Option<(u64, u64)>, word: u64, bits: u64) {
    if bits == 0 {
        return;
    }
    let first = word * 64 + u64::from(bits.trailing_zeros());
    let last = word * 64 + 63 - u64::from(bits.leading_zeros());
    *span = Some((span.map_or(first, |(first, _)| first), last));
}

#[cfg(test)]
mod tests {
    use super::{BufferedBlocks, CHUNK_BLOCKS};
    use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn runs_are_taken_in_order_and_bounded() {
        let mut blocks = BufferedBlocks::default();
        blocks.insert(60, 10);
        blocks.insert(CHUNK_BLOCKS - 2, 4);
        blocks.insert(100 * CHUNK_BLOCKS, 1);
        assert_eq!(blocks.take_run(0, 16), Some((60, 10)));
        assert_eq!(
            blocks.take_run(0, 16),
            Some((CHUNK_BLOCKS - 2, 2)),
            "runs end with their chunk"
        );
        assert_eq!(blocks.take_run(CHUNK_BLOCKS, 1), Some((CHUNK_BLOCKS, 1)));
        assert_eq!(blocks.take_run(CHUNK_BLOCKS, 1), Some((CHUNK_BLOCKS + 1, 1)));
        assert_eq!(blocks.take_run(CHUNK_BLOCKS, 1), Some((100 * CHUNK_BLOCKS, 1)));
        assert_eq!(blocks.take_run(0, 16), None);
        assert_eq!((blocks.dirty_blocks(), blocks.buffered_blocks()), (0, 15));
    }

    #[test]
    fn a_block_that_is_overwritten_while_it_leaves_is_there_twice() {
        let mut blocks = BufferedBlocks::default();
        assert_eq!(blocks.insert(5, 1), 0);
        assert_eq!(blocks.take_run(0, 16), Some((5, 1)));
        assert_eq!(blocks.insert(5, 1), 0);
        assert_eq!(blocks.buffered_blocks(), 2);
        assert_eq!(blocks.take_run(0, 16), None, "one version leaves at a time");
        blocks.arrived(5, 1);
        assert_eq!(blocks.take_run(0, 16), Some((5, 1)));
        assert_eq!(blocks.insert(5, 1), 0);
        assert_eq!(blocks.stay(5, 1), 1, "the version that stayed was replaced meanwhile");
        assert_eq!(blocks.buffered_blocks(), 1);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u64),
        Discard(u64, u64),
        Take(u64, u64),
        Arrive,
        Stay,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Around a chunk boundary, so that ranges cross it.
        let range = || (CHUNK_BLOCKS - 200..CHUNK_BLOCKS + 200, 1..150u64);
        let step = prop_oneof![
            range().prop_map(|(first, count)| Step::Insert(first, count)),
            range().prop_map(|(first, count)| Step::Discard(first, count)),
            range().prop_map(|(from, most)| Step::Take(from, most)),
            (0..1u8).prop_map(|_| Step::Arrive),
            (0..1u8).prop_map(|_| Step::Stay),
        ];
        proptest::collection::vec(step, 1..60)
    }

    proptest! {
        /// Against sets: contents, counts and presence agree after every step.
        #[test]
        fn agrees_with_sets(steps in steps()) {
            let mut blocks = BufferedBlocks::default();
            let (mut dirty, mut leaving) = (BTreeSet::new(), BTreeSet::new());
            let mut runs = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(first, count) => {
                        let replaced =
                            (first..first + count).filter(|block| !dirty.insert(*block)).count();
                        prop_assert_eq!(blocks.insert(first, count), replaced as u64);
                    }
                    Step::Discard(first, count) => {
                        let removed =
                            (first..first + count).filter(|block| dirty.remove(block)).count();
                        prop_assert_eq!(blocks.discard(first, count), removed as u64);
                    }
                    Step::Take(from, most) => {
                        let taken = blocks.take_run(from, most);
                        let ready: BTreeMap<u64, ()> =
                            dirty.difference(&leaving).map(|block| (*block, ())).collect();
                        let first = ready.range(from..).next().map(|(block, ())| *block);
                        prop_assert_eq!(taken.map(|(first, _)| first), first);
                        if let Some((first, count)) = taken {
                            prop_assert!((1..=most).contains(&count));
                            for block in first..first + count {
                                prop_assert!(ready.contains_key(&block));
                                dirty.remove(&block);
                                leaving.insert(block);
                            }
                            let next = first + count;
                            let could_go_on = count < most && next % CHUNK_BLOCKS != 0;
                            prop_assert!(!(could_go_on && ready.contains_key(&next)));
                            runs.push((first, count));
                        }
                    }
                    Step::Arrive => if let Some((first, count)) = runs.pop() {
                        blocks.arrived(first, count);
                        (first..first + count).for_each(|block| { leaving.remove(&block); });
                    }
                    Step::Stay => if let Some((first, count)) = runs.pop() {
                        let replaced =
                            (first..first + count).filter(|block| dirty.contains(block)).count();
                        prop_assert_eq!(blocks.stay(first, count), replaced as u64);
                        for block in first..first + count {
                            leaving.remove(&block);
                            dirty.insert(block);
                        }
                    }
                }
                prop_assert_eq!(blocks.dirty_blocks(), dirty.len() as u64);
                prop_assert_eq!(blocks.buffered_blocks(), (dirty.len() + leaving.len()) as u64);
                let (first, count) = (CHUNK_BLOCKS - 70, 140);
                let here: Vec<_> = (first..first + count)
                    .filter(|block| dirty.contains(block) || leaving.contains(block))
                    .collect();
                let presence = blocks.presence(first, count);
                prop_assert_eq!(presence.present, here.len() as u64);
                let mask = here.iter().filter(|block| **block < first + 64);
                let mask = mask.fold(0, |mask, block| mask | 1u64 << (block - first));
                prop_assert_eq!(blocks.mask(first), mask);
                let span = here.first().zip(here.last()).map(|(a, b)| (*a, *b));
                prop_assert_eq!(presence.present_span, span);
            }
        }
    }
}
