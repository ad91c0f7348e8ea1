//! A chunk of the interval map: the bits of 128 MiB of addresses (see the module `buffered`).

/// Words of 64 blocks in a chunk.
pub(super) const WORDS: usize = 512;
/// Blocks of a chunk: 128 MiB of addresses.
pub(super) const CHUNK_BLOCKS: u64 = WORDS as u64 * 64;

/// The bits of one chunk.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) dirty: [u64; WORDS],
    pub(super) leaving: [u64; WORDS],
    /// One bit per word of `dirty` that is not zero.
    pub(super) summary: [u64; WORDS / 64],
    pub(super) dirty_blocks: u32,
    pub(super) leaving_blocks: u32,
}

impl Chunk {
    pub(super) fn empty() -> Chunk {
        Chunk {
            dirty: [0; WORDS],
            leaving: [0; WORDS],
            summary: [0; WORDS / 64],
            dirty_blocks: 0,
            leaving_blocks: 0,
        }
    }

    /// The blocks of a word of which a version is in the buffer.
    pub(super) fn buffered(&self, word: usize) -> u64 {
        // Hardly any chunk has leaving blocks, and the bits of one that has none need not come from memory.
        let leaving = if self.leaving_blocks == 0 { 0 } else { self.leaving[word] };
        self.dirty[word] | leaving
    }

    pub(super) fn set_dirty(&mut self, word: usize, mask: u64) -> u32 {
        let added = (mask & !self.dirty[word]).count_ones();
        self.dirty[word] |= mask;
        self.summary[word / 64] |= 1 << (word % 64);
        self.dirty_blocks += added;
        added
    }

    pub(super) fn clear_dirty(&mut self, word: usize, mask: u64) -> u32 {
        let removed = (mask & self.dirty[word]).count_ones();
        self.dirty[word] &= !mask;
        if self.dirty[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
        debug_assert!(removed <= self.dirty_blocks, "a chunk counts its dirty blocks");
        self.dirty_blocks -= removed;
        removed
    }

    /// The first word from `from` on with a dirty block that is not leaving, and those blocks.
    pub(super) fn next_ready(&self, from: usize, first_mask: u64) -> Option<(usize, u64)> {
        let ready = |word: usize| self.dirty[word] & !self.leaving[word];
        let first = ready(from) & first_mask;
        if first != 0 {
            return Some((from, first));
        }
        let mut word = from + 1;
        while word < WORDS {
            let rest = self.summary[word / 64] >> (word % 64);
            if rest == 0 {
                word = (word / 64 + 1) * 64;
                continue;
            }
            word += rest.trailing_zeros() as usize;
            if ready(word) != 0 {
                return Some((word, ready(word)));
            }
            word += 1;
        }
        None
    }
}

/// Marks the run that begins at a bit of a word; returns its length.
pub(super) fn take_from(chunk: &mut Chunk, mut word: usize, mut bit: u64, most: u64) -> u64 {
    let mut taken = 0;
    while taken < most && word < WORDS {
        let ready = (chunk.dirty[word] & !chunk.leaving[word]) >> bit;
        let run = u64::from(ready.trailing_ones()).min(64 - bit).min(most - taken);
        if run == 0 {
            break;
        }
        let mask = if run == 64 { u64::MAX } else { ((1 << run) - 1) << bit };
        debug_assert!(chunk.dirty[word] & mask == mask, "only dirty blocks leave");
        chunk.clear_dirty(word, mask);
        chunk.leaving[word] |= mask;
        chunk.leaving_blocks += run as u32;
        taken += run;
        if bit + run < 64 {
            break;
        }
        (word, bit) = (word + 1, 0);
    }
    taken
}
