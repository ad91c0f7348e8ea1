//! What a disk group has stored: different blocks with their references, and the space they take.

use super::fingerprint::{BLOCK_BYTES, COMPRESSED_BYTES, Print, compressed_length};
use super::print_store::{PrintRecord, PrintStore};
use super::unique_blocks::UniqueBlocks;
use crate::data_plane::{BlockStore, is_zero};
use std::io;
use std::ops::AddAssign;
use underlay_model::reduction::{Observed, Space};

/// Blocks that are looked at together: 4 MiB.
const BLOCKS_AT_ONCE: u64 = 1024;

/// The reduced content of one disk group.
#[derive(Clone, Debug)]
pub struct ReducedGroup {
    unique: UniqueBlocks,
    space: Space,
    recent: Recent,
    scratch: Vec<u8>,
}

/// What became of destaged blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Destaged {
    /// How many there were.
    pub blocks: u64,
    /// How many the group did not have yet.
    pub new_blocks: u64,
    /// Bytes stored for the new ones.
    pub stored_bytes: u64,
    /// Bytes given back, because the last reference to a block was overwritten.
    pub freed_bytes: u64,
}

/// Sums that halve with every so many blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    blocks: f64,
    new_blocks: f64,
    stored_bytes: f64,
}

/// Blocks after which what was observed counts half: 64 MiB.
const RECENT_BLOCKS: f64 = 16_384.0;

impl Default for ReducedGroup {
    fn default() -> ReducedGroup {
        ReducedGroup::new()
    }
}

impl ReducedGroup {
    /// A group that has stored nothing.
    pub fn new() -> ReducedGroup {
        ReducedGroup {
            unique: UniqueBlocks::new(),
            space: Space::default(),
            recent: Recent::default(),
            scratch: Vec::new(),
        }
    }

    /// Stores destaged blocks. `prints` says what they replace, and afterwards what they are counted as.
    ///
    /// # Panics
    /// If there is not one print per block of [`BLOCK_BYTES`].
    pub fn destage(&mut self, prints: &mut [Print], data: &[u8]) -> Destaged {
        assert_eq!(data.len(), prints.len() * BLOCK_BYTES, "whole blocks are destaged");
        let mut destaged = Destaged::default();
        for (print, bytes) in prints.iter_mut().zip(data.chunks_exact(BLOCK_BYTES)) {
            let old = *print;
            *print = Print::NOTHING;
            if !is_zero(bytes) {
                destaged.blocks += 1;
                let (stored, is_new) = self.refer(bytes);
                *print = stored;
                destaged.new_blocks += u64::from(is_new);
                destaged.stored_bytes += if is_new { stored.stored_bytes() } else { 0 };
            }
            // After the new reference, so that rewriting a block with itself frees nothing.
            destaged.freed_bytes += self.release(old);
        }
        // The ratio that the model goes by is made of these.
        debug_assert!(destaged.new_blocks <= destaged.blocks, "a new block is a block");
        debug_assert!(
            destaged.stored_bytes <= destaged.new_blocks * BLOCK_BYTES as u64,
            "compression never makes a block longer"
        );
        self.recent.add(&destaged);
        destaged
    }

    /// Forgets blocks; returns the bytes given back.
    pub fn discard(&mut self, prints: &mut [Print]) -> u64 {
        prints.iter_mut().map(|print| self.release(std::mem::take(print))).sum()
    }

    /// Counts blocks that were stored before a restart.
    pub fn recount(&mut self, prints: &[Print]) {
        for print in prints.iter().filter(|print| !print.is_nothing()) {
            self.space.logical_bytes += BLOCK_BYTES as u64;
            if self.unique.refer(*print).is_none() {
                self.add(*print);
            }
        }
    }

    /// Counts a range of a component's blocks as they are now.
    ///
    /// # Errors
    /// When bytes or records cannot be had; what was not counted yet stays as it was.
    pub fn update(
        &mut self,
        content: &mut impl BlockStore,
        records: &mut impl PrintStore,
        first: u64,
        blocks: u64,
    ) -> io::Result<Destaged> {
        let mut total = Destaged::default();
        let mut at = first;
        while at < first + blocks {
            let count = (first + blocks - at).min(BLOCKS_AT_ONCE) as usize;
            let mut known = vec![PrintRecord::default(); count];
            records.read(at, &mut known)?;
            // The checksums first: see `print_store`.
            let mut sums = vec![0; count];
            content.read_sums(at, &mut sums).map_err(io::Error::other)?;
            let mut bytes = vec![0; count * BLOCK_BYTES];
            content.read(at * BLOCK_BYTES as u64, &mut bytes).map_err(io::Error::other)?;
            let mut prints: Vec<Print> = known.iter().map(|record| record.print).collect();
            total += self.destage(&mut prints, &bytes);
            let now = prints.iter().zip(&sums).map(|(print, sum)| PrintRecord {
                print: *print,
                sum: if print.is_nothing() { 0 } else { *sum },
            });
            let now: Vec<PrintRecord> = now.collect();
            if now != known {
                records.write(at, &now)?;
            }
            at += count as u64;
        }
        Ok(total)
    }

    /// Counts a component after a restart: blocks with a valid record are taken from it, all others are read again.
    /// `next_content` says where, from a block on, there may be bytes.
    ///
    /// # Errors
    /// When bytes or records cannot be had.
    pub fn recall<S: BlockStore>(
        &mut self,
        content: &mut S,
        records: &mut impl PrintStore,
        next_content: impl Fn(&S, u64) -> io::Result<Option<u64>>,
    ) -> io::Result<()> {
        let end = content.len_bytes() / BLOCK_BYTES as u64;
        let mut at = 0;
        loop {
            let used = [records.next_used(at)?, next_content(content, at)?];
            let Some(next) = used.into_iter().flatten().min().filter(|next| *next < end) else {
                return Ok(());
            };
            at = next.max(at);
            let count = (end - at).min(BLOCKS_AT_ONCE);
            self.recall_part(content, records, at, count as usize)?;
            at += count;
        }
    }

    fn recall_part(
        &mut self,
        content: &mut impl BlockStore,
        records: &mut impl PrintStore,
        first: u64,
        count: usize,
    ) -> io::Result<()> {
        let mut known = vec![PrintRecord::default(); count];
        records.read(first, &mut known)?;
        let mut sums = vec![0; count];
        content.read_sums(first, &mut sums).map_err(io::Error::other)?;
        // A block without a checksum is zeros, or belongs to a volume that has none: only its bytes know.
        let vouched = |record: &PrintRecord, sum: u32| {
            sum != 0 && record.sum == sum && !record.print.is_nothing()
        };
        let mut doubtful = Vec::new();
        for (index, (record, sum)) in known.iter_mut().zip(&sums).enumerate() {
            if vouched(record, *sum) {
                self.recount(&[record.print]);
            } else {
                *record = PrintRecord::default();
                doubtful.push(index as u64);
            }
        }
        records.write(first, &known)?;
        let mut doubtful = doubtful.into_iter().peekable();
        while let Some(begin) = doubtful.next() {
            let mut blocks = 1;
            while doubtful.next_if_eq(&(begin + blocks)).is_some() {
                blocks += 1;
            }
            self.update(content, records, first + begin, blocks)?;
        }
        Ok(())
    }

    /// Forgets a whole component; returns the bytes given back.
    ///
    /// # Errors
    /// When its records cannot be had.
    pub fn forget(&mut self, records: &mut impl PrintStore, length_bytes: u64) -> io::Result<u64> {
        let end = length_bytes / BLOCK_BYTES as u64;
        let (mut at, mut freed) = (0, 0);
        while let Some(next) = records.next_used(at)?.filter(|next| *next < end) {
            at = next.max(at);
            let count = (end - at).min(BLOCKS_AT_ONCE) as usize;
            let mut known = vec![PrintRecord::default(); count];
            records.read(at, &mut known)?;
            freed += known.iter().map(|record| self.release(record.print)).sum::<u64>();
            records.write(at, &vec![PrintRecord::default(); count])?;
            at += count as u64;
        }
        Ok(freed)
    }

    /// The space in use.
    pub fn space(&self) -> Space {
        debug_assert!(
            self.space.unique_bytes <= self.space.logical_bytes,
            "a block without a reference is given back"
        );
        self.space
    }

    /// What recent destages were like; none before the first.
    pub fn observed(&self) -> Option<Observed> {
        (self.recent.blocks > 0.0).then(|| Observed {
            stored_bytes_per_destaged_byte: self.recent.stored_bytes
                / (self.recent.blocks * BLOCK_BYTES as f64),
            unique_share: self.recent.new_blocks / self.recent.blocks,
        })
    }

    /// Bytes of memory that the references take.
    pub fn memory_bytes(&self) -> u64 {
        self.unique.memory_bytes()
    }

    /// The print of a block with one reference more, and whether it is new.
    fn refer(&mut self, bytes: &[u8]) -> (Print, bool) {
        let print = Print::of(bytes);
        self.space.logical_bytes += BLOCK_BYTES as u64;
        if let Some(known) = self.unique.refer(print) {
            return (known, false);
        }
        let fits = compressed_length(bytes, &mut self.scratch) <= COMPRESSED_BYTES;
        let print = if fits { print.compressed() } else { print };
        self.add(print);
        (print, true)
    }

    fn add(&mut self, print: Print) {
        self.unique.add(print);
        self.space.unique_bytes += BLOCK_BYTES as u64;
        self.space.stored_bytes += print.stored_bytes();
        self.space.compressed_blocks += u64::from(print.is_compressed());
    }

    /// Takes a reference away; returns the bytes given back with the last one.
    fn release(&mut self, print: Print) -> u64 {
        if print.is_nothing() {
            return 0;
        }
        self.space.logical_bytes -= BLOCK_BYTES as u64;
        if !self.unique.release(print) {
            return 0;
        }
        self.space.unique_bytes -= BLOCK_BYTES as u64;
        self.space.stored_bytes -= print.stored_bytes();
        self.space.compressed_blocks -= u64::from(print.is_compressed());
        print.stored_bytes()
    }
}

impl AddAssign for Destaged {
    fn add_assign(&mut self, other: Destaged) {
        self.blocks += other.blocks;
        self.new_blocks += other.new_blocks;
        self.stored_bytes += other.stored_bytes;
        self.freed_bytes += other.freed_bytes;
    }
}

impl Recent {
    fn add(&mut self, destaged: &Destaged) {
        let kept = 0.5f64.powf(destaged.blocks as f64 / RECENT_BLOCKS);
        self.blocks = self.blocks * kept + destaged.blocks as f64;
        self.new_blocks = self.new_blocks * kept + destaged.new_blocks as f64;
        self.stored_bytes = self.stored_bytes * kept + destaged.stored_bytes as f64;
    }
}

#[cfg(test)]
mod tests;
