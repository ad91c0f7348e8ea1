//! What a power cut can take away: the old contents of volatile blocks.
//!
//! # Fault model
//!
//! A device with a volatile write buffer acknowledges a write before the medium has it. Until a flush that
//! arrived after the write completes, a power cut may leave each 4 KiB block of it, independently of
//! all others:
//!
//! * *kept*: as written last,
//! * *lost*: as it was when it was last durable,
//! * *torn*: each 512-byte sector one or the other.
//!
//! Never anything else: no third value, no block that was never written. A flush covers every write that
//! arrived before it, acknowledged or not (a device may always persist more than it must), from the moment
//! it completes. The buffer is bounded: when more bytes are volatile than it holds, the oldest must have
//! drained and are durable.
//!
//! # Mechanism
//!
//! The backing file always has the newest contents. Before a block is overwritten for the first time in a
//! *generation*, its old contents are remembered. A flush seals the generation at its arrival and
//! makes it, and all before it, durable at its completion. The oldest remembered contents of a
//! block are its durable ones.
//!
//! Pure: no files, no clock. The caller reads and writes blocks through closures.

use std::collections::{HashMap, VecDeque};
use std::io;

use rand::Rng;
use rand_pcg::Pcg64;

/// The unit of volatility.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// The unit of tearing: what devices write atomically.
pub(crate) const SECTOR_BYTES: usize = 512;

/// Contents of one block.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// Names a sealed generation; ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Generation(pub(crate) u64);

/// The old contents of the volatile blocks of one volume.
#[derive(Debug)]
pub(crate) struct UndoLog {
    limit_blocks: usize,
    /// Ascending; the last one is open, all others are sealed.
    generations: VecDeque<Blocks>,
    oldest: Generation,
    blocks: usize,
    /// Buffers for reuse, so that the hot path does not allocate.
    spare: Vec<Box<Block>>,
}

/// Remembered blocks of one generation, in the order they were first overwritten.
#[derive(Debug, Default)]
struct Blocks {
    old: HashMap<u64, Box<Block>>,
    order: VecDeque<u64>,
}

impl UndoLog {
    /// A log for a buffer of `limit_bytes`; at least one block is kept volatile.
    pub(crate) fn new(limit_bytes: u64) -> UndoLog {
        UndoLog {
            limit_blocks: usize::try_from(limit_bytes / BLOCK_BYTES as u64)
                .unwrap_or(usize::MAX)
                .max(1),
            generations: VecDeque::from([Blocks::default()]),
            oldest: Generation(0),
            blocks: 0,
            spare: Vec::new(),
        }
    }

    /// Must be called before the range is overwritten: remembers what is about to be lost.
    ///
    /// `read_old` fills a block with its present contents. On its error nothing may be overwritten.
    pub(crate) fn before_write(
        &mut self,
        offset_bytes: u64,
        length_bytes: u64,
        mut read_old: impl FnMut(u64, &mut Block) -> io::Result<()>,
    ) -> io::Result<()> {
        for block in blocks_of(offset_bytes, length_bytes) {
            let open = self.generations.back_mut().expect("one generation is always open");
            if open.old.contains_key(&block) {
                continue;
            }
            let mut old = self.spare.pop().unwrap_or_else(|| Box::new([0; BLOCK_BYTES]));
            read_old(block, &mut old)?;
            open.old.insert(block, old);
            open.order.push_back(block);
            self.blocks += 1;
        }
        self.drain_above_limit();
        Ok(())
    }

    /// A flush arrives: what was written so far becomes durable when [`UndoLog::durable`] is called with
    /// the generation returned.
    pub(crate) fn seal(&mut self) -> Generation {
        debug_assert!(!self.generations.is_empty(), "one generation is always open");
        let sealed = Generation(self.oldest.0 + self.generations.len() as u64 - 1);
        self.generations.push_back(Blocks::default());
        sealed
    }

    /// A flush completed: everything up to its generation is durable.
    pub(crate) fn durable(&mut self, sealed: Generation) {
        debug_assert!(
            sealed.0 + 2 <= self.oldest.0 + self.generations.len() as u64,
            "only a sealed generation becomes durable"
        );
        while self.oldest <= sealed && self.generations.len() > 1 {
            let durable = self.generations.pop_front().expect("checked");
            self.oldest = Generation(self.oldest.0 + 1);
            debug_assert!(durable.old.len() <= self.blocks, "its blocks were counted");
            self.blocks -= durable.old.len();
            self.spare.extend(durable.old.into_values());
        }
        self.check_count();
    }

    /// What counts against the limit is what is remembered.
    fn check_count(&self) {
        let remembered = || self.generations.iter().map(|blocks| blocks.old.len()).sum::<usize>();
        debug_assert_eq!(self.blocks, remembered(), "blocks of all generations");
    }

    /// What the range holds now is durable at once (a discard, a forced write): nothing older comes back.
    pub(crate) fn forget(&mut self, offset_bytes: u64, length_bytes: u64) {
        let range = blocks_of(offset_bytes, length_bytes);
        let mut forgotten = 0;
        for generation in &mut self.generations {
            let before = generation.old.len();
            if range.end - range.start < before as u64 {
                for block in range.clone() {
                    self.spare.extend(generation.old.remove(&block));
                }
            } else {
                generation.old.retain(|block, _| !range.contains(block));
            }
            forgotten += before - generation.old.len();
        }
        self.blocks -= forgotten;
        self.check_count();
        // The order lists may name forgotten blocks; draining skips them.
    }

    /// Number of bytes that a power cut could take away.
    pub(crate) fn volatile_bytes(&self) -> u64 {
        (self.blocks * BLOCK_BYTES) as u64
    }

    /// The power fails: decides the fate of every volatile block and applies it. Afterwards nothing is
    /// volatile.
    pub(crate) fn power_cut(
        &mut self,
        random: &mut Pcg64,
        mut read: impl FnMut(u64, &mut Block) -> io::Result<()>,
        mut write: impl FnMut(u64, &Block) -> io::Result<()>,
    ) -> io::Result<PowerCut> {
        let mut outcome = PowerCut::default();
        let mut durable: Vec<(u64, Box<Block>)> = Vec::with_capacity(self.blocks);
        let mut seen = std::collections::HashSet::new();
        for generation in &mut self.generations {
            durable.extend(generation.old.drain().filter(|(block, _)| seen.insert(*block)));
            generation.order.clear();
        }
        self.blocks = 0;
        self.check_count();
        // Hash maps have no order of their own; the fate of a block must depend on the seed alone.
        durable.sort_unstable_by_key(|(block, _)| *block);
        let mut newest = Box::new([0; BLOCK_BYTES]);
        for (block, old) in &durable {
            match random.next_u64() % 3 {
                0 => outcome.kept += 1,
                1 => {
                    write(*block, old)?;
                    outcome.lost += 1;
                }
                _ => {
                    read(*block, &mut newest)?;
                    tear(&mut newest, old, random);
                    write(*block, &newest)?;
                    outcome.torn += 1;
                }
            }
        }
        Ok(outcome)
    }

    fn drain_above_limit(&mut self) {
        while self.blocks > self.limit_blocks {
            let Some(generation) = self.generations.iter_mut().find(|g| !g.old.is_empty()) else {
                return;
            };
            let Some(block) = generation.order.pop_front() else { return };
            if let Some(old) = generation.old.remove(&block) {
                self.blocks -= 1;
                self.spare.push(old);
            }
        }
    }
}

/// What a power cut did, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PowerCut {
    pub(crate) kept: u64,
    pub(crate) lost: u64,
    pub(crate) torn: u64,
}

fn blocks_of(offset_bytes: u64, length_bytes: u64) -> std::ops::Range<u64> {
    let size = BLOCK_BYTES as u64;
    if length_bytes == 0 {
        return 0..0;
    }
    offset_bytes / size..(offset_bytes + length_bytes).div_ceil(size)
}

/// Replaces each sector of `newest` by its old contents with probability one half.
fn tear(newest: &mut Block, old: &Block, random: &mut Pcg64) {
    let fates = random.next_u64();
    let sectors = newest.chunks_exact_mut(SECTOR_BYTES).zip(old.chunks_exact(SECTOR_BYTES));
    for (i, (new, old)) in sectors.enumerate() {
        if fates >> i & 1 == 1 {
            new.copy_from_slice(old);
        }
    }
}
