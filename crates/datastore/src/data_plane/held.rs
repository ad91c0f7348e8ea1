//! One component with its checksums, and the undo data for a power cut.

use super::block_store::{BLOCK_BYTES, BlockStore, StoreError};
use super::checksum::{broken_sum, is_zero, sum_of, sums_of, verifies};
use super::unmarked::{SharedLog, Unmarked};
use crate::reduction::ChangedBlocks;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::VecDeque;
use std::ops::Range;
use underlay_model::cluster::{Checksum, ComponentId, DurabilityPoint};

const BLOCK: u64 = BLOCK_BYTES as u64;
const SECTOR: usize = 512;

/// What was there before a volatile write.
#[derive(Clone, Debug)]
struct Before {
    /// The command that replaced it.
    moment: u64,
    offset: u64,
    bytes: Vec<u8>,
    sums: Vec<u32>,
}

/// One component.
#[derive(Debug)]
pub(super) struct Held<S> {
    store: S,
    durability: DurabilityPoint,
    /// Oldest first; empty unless writes are volatile.
    undo: VecDeque<Before>,
    undo_bytes: usize,
    /// Volatile bytes remembered at most; older writes count as drained, as they would be in any device.
    undo_bytes_max: usize,
    /// The command that is being carried out, counted up: what it changes on several components belongs together.
    moment: u64,
    /// Commands up to this one are never taken back here: what they changed is durable, or no longer remembered.
    settled: u64,
    /// Whether blocks carry checksums, as last told.
    checksum: Checksum,
    tear_next: Option<u32>,
    /// Checksums just read; empty in between, kept for its memory.
    sums: Vec<u32>,
    /// Blocks whose bytes changed, if changes are tracked.
    changed: Option<ChangedBlocks>,
    /// Blocks whose content is unknown, and of which not even that could be stored: the medium took neither bytes nor checksums. They
    /// are bad as long as that is remembered here; it is stored as soon as the medium takes something again.
    unmarked: Unmarked,
}

/// Where a row is taken back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// Later commands are taken back.
    pub(super) moment: u64,
    /// That one as well, from this byte of the component on.
    pub(super) from: u64,
}

/// Marks of blocks that are tried again with each write that went well.
const MARKS_AT_ONCE: usize = 64;

/// Blocks read, and which of them are good.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    pub(super) bytes: Vec<u8>,
    pub(super) good: Vec<bool>,
}

impl Blocks {
    /// Whether all are good.
    pub(super) fn all_good(&self) -> bool {
        self.good.iter().all(|good| *good)
    }
}

/// Whether a block is what was stored. Without checksums only blocks that are known to be lost have one.
fn is_sound(block: &[u8], sum: u32, checksum: Checksum) -> bool {
    match checksum {
        Checksum::On => verifies(block, sum),
        Checksum::Off => sum == 0,
    }
}

/// The checksum of a block that is put together from two, both of them sound or not.
fn torn_sum(block: &[u8], checksum: Checksum, sound: bool) -> u32 {
    match (checksum, sound) {
        (Checksum::Off, true) => 0,
        (Checksum::On, true) => sum_of(block),
        (_, false) => broken_sum(block),
    }
}

/// The checksums to store with whole blocks.
pub(super) fn sums_for(bytes: &[u8], checksum: Checksum) -> Vec<u32> {
    match checksum {
        Checksum::On => sums_of(bytes),
        Checksum::Off => vec![0; bytes.len() / BLOCK_BYTES],
    }
}

impl<S: BlockStore> Held<S> {
    pub(super) fn new(store: S, durability: DurabilityPoint) -> Held<S> {
        Held {
            store,
            durability,
            undo: VecDeque::new(),
            undo_bytes: 0,
            undo_bytes_max: usize::MAX,
            moment: 0,
            settled: 0,
            checksum: Checksum::On,
            tear_next: None,
            sums: Vec::new(),
            changed: None,
            unmarked: Unmarked::default(),
        }
    }

    /// From now on, what could not be marked is kept beyond the process, as that of a component.
    pub(super) fn keep_marks(&mut self, component: ComponentId, log: &SharedLog) {
        self.unmarked.keep(component, log);
    }

    /// The content of blocks is unknown since an earlier process.
    pub(super) fn recall_marks(&mut self, blocks: Range<u64>) {
        let end = self.store.len_bytes() / BLOCK;
        self.unmarked.recall(blocks.start.min(end)..blocks.end.min(end));
    }

    /// It will not be read any more.
    pub(super) fn forget_marks(&mut self) {
        self.unmarked.remove(0..u64::MAX);
    }

    /// From now on, what changes is noted.
    pub(super) fn track(&mut self) {
        self.changed = Some(ChangedBlocks::new(self.store.len_bytes() / BLOCK));
    }

    pub(super) fn changed(&self) -> Option<&ChangedBlocks> {
        self.changed.as_ref()
    }

    pub(super) fn changed_mut(&mut self) -> Option<&mut ChangedBlocks> {
        self.changed.as_mut()
    }

    fn mark(&mut self, offset: u64, length: usize) {
        if let Some(changed) = &mut self.changed {
            changed.mark(offset / BLOCK, (length as u64).div_ceil(BLOCK));
        }
    }

    /// What happens from now on is done by this command.
    pub(super) fn be_at(&mut self, moment: u64) {
        debug_assert!(moment >= self.moment, "commands are carried out one after the other");
        self.moment = moment;
    }

    /// Whether a power cut can take what was written.
    pub(super) fn is_volatile(&self) -> bool {
        self.durability == DurabilityPoint::OnFlush
    }

    /// Limits the undo data to this many volatile bytes from the next write on.
    pub(super) fn limit_undo(&mut self, bytes: usize) {
        self.undo_bytes_max = bytes;
    }

    pub(super) fn into_store(self) -> S {
        self.store
    }

    pub(super) fn store(&self) -> &S {
        &self.store
    }

    pub(super) fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Reads whole blocks and verifies them.
    pub(super) fn read(&mut self, offset: u64, length: usize, checksum: Checksum) -> Blocks {
        let count = length / BLOCK_BYTES;
        let mut bytes = vec![0; length];
        if self.store.read(offset, &mut bytes).is_err() {
            return Blocks { bytes, good: vec![false; count] };
        }
        let mut sums = vec![0; count];
        if self.store.read_sums(offset / BLOCK, &mut sums).is_err() {
            return Blocks { bytes, good: vec![false; count] };
        }
        let blocks = bytes.chunks_exact(BLOCK_BYTES).zip(&sums).zip(offset / BLOCK..);
        let good = blocks
            .map(|((block, sum), number)| {
                is_sound(block, *sum, checksum) && !self.unmarked.contains(number)
            })
            .collect();
        Blocks { bytes, good }
    }

    /// The checksum that is stored of the block at an offset, whether or not the block has it.
    pub(super) fn sum_at(&mut self, offset: u64) -> Option<u32> {
        let mut sum = [0];
        self.store.read_sums(offset / BLOCK, &mut sum).ok()?;
        Some(sum[0])
    }

    /// Fills `buffer` with whole blocks; tells whether all are good. The usual case of [`Held::read`], without a copy.
    pub(super) fn read_into(&mut self, offset: u64, buffer: &mut [u8], checksum: Checksum) -> bool {
        self.sums.clear();
        self.sums.resize(buffer.len() / BLOCK_BYTES, 0);
        let first = offset / BLOCK;
        !self.unmarked.touches(first..first + self.sums.len() as u64)
            && self.store.read(offset, buffer).is_ok()
            && self.store.read_sums(offset / BLOCK, &mut self.sums).is_ok()
            && buffer
                .chunks_exact(BLOCK_BYTES)
                .zip(&self.sums)
                .all(|(block, sum)| is_sound(block, *sum, checksum))
    }

    /// Stores whole blocks with their checksums. What the medium does not take counts as lost.
    pub(super) fn write(
        &mut self,
        offset: u64,
        bytes: &[u8],
        checksum: Checksum,
    ) -> Result<(), StoreError> {
        self.write_summed(offset, bytes, &sums_for(bytes, checksum), checksum)
    }

    /// The same, with checksums from [`sums_for`]: a mirror computes them once for all copies.
    pub(super) fn write_summed(
        &mut self,
        offset: u64,
        bytes: &[u8],
        sums: &[u32],
        checksum: Checksum,
    ) -> Result<(), StoreError> {
        self.checksum = checksum;
        self.remember(offset, bytes.len());
        // The checksums are those of the whole write, so a later read notices that the rest is
        // missing.
        let kept = self.tear_next.take().map_or(bytes.len(), |kept| bytes.len().min(kept as usize));
        self.put(offset, &bytes[..kept], sums)
    }

    fn put(&mut self, offset: u64, bytes: &[u8], sums: &[u32]) -> Result<(), StoreError> {
        self.mark(offset, bytes.len());
        let first = offset / BLOCK;
        let stored = match bytes {
            [] => Ok(()),
            _ => self.store.write(offset, bytes),
        };
        let stored = stored.and_then(|()| self.store.write_sums(first, sums));
        if stored.is_ok() {
            self.unmarked.remove(first..first + sums.len() as u64);
            self.mark_again();
        } else {
            // What is there now is unknown: checksums that fit nothing keep it from being taken for data.
            let lost: Vec<u32> = sums.iter().map(|sum| (!sum).max(1)).collect();
            self.mark_lost(first, &lost);
        }
        stored
    }

    /// Stores checksums that fit nothing, or remembers that it could not be done.
    fn mark_lost(&mut self, first: u64, sums: &[u32]) {
        if self.store.write_sums(first, sums).is_err() {
            self.unmarked.insert(first..first + sums.len() as u64);
        }
    }

    /// The medium takes something again: what it did not take before may be stored now.
    fn mark_again(&mut self) {
        for block in self.unmarked.first(MARKS_AT_ONCE) {
            let mut bytes = [0; BLOCK_BYTES];
            let _unreadable_is_lost_as_well = self.store.read(block * BLOCK, &mut bytes);
            if self.store.write_sums(block, &[broken_sum(&bytes)]).is_err() {
                return;
            }
            self.unmarked.remove(block..block + 1);
        }
    }

    /// Stores the first bytes of a write that a power cut interrupted: they were on the medium then.
    pub(super) fn write_torn(
        &mut self,
        offset: u64,
        bytes: &[u8],
        kept: usize,
        checksum: Checksum,
    ) {
        let whole = kept / BLOCK_BYTES * BLOCK_BYTES;
        // What is not taken is torn somewhere else, and counts as lost.
        if whole > 0 {
            let _torn_earlier = self.write(offset, &bytes[..whole], checksum);
        }
        if kept > whole {
            let at = offset + whole as u64;
            let mut block = self.read(at, BLOCK_BYTES, checksum);
            block.bytes[..kept - whole].copy_from_slice(&bytes[whole..kept]);
            if block.all_good() {
                let _torn_earlier = self.write(at, &block.bytes, checksum);
            }
        }
        self.persist();
    }

    /// Makes whole blocks zero.
    pub(super) fn discard(&mut self, offset: u64, length: u64) {
        self.remember(offset, length as usize);
        self.mark(offset, length as usize);
        match self.store.discard(offset, length) {
            Ok(()) => self.unmarked.remove(offset / BLOCK..(offset + length) / BLOCK),
            Err(_) => self.break_sums(offset, length as usize),
        }
    }

    /// Says that the content of whole blocks is lost.
    pub(super) fn break_sums(&mut self, offset: u64, length: usize) {
        let mut bytes = vec![0; length];
        let _unreadable_is_lost_as_well = self.store.read(offset, &mut bytes);
        let sums: Vec<u32> = bytes.chunks_exact(BLOCK_BYTES).map(broken_sum).collect();
        self.remember(offset, length);
        self.mark_lost(offset / BLOCK, &sums);
    }

    /// Everything so far is durable.
    pub(super) fn persist(&mut self) {
        self.undo.clear();
        self.undo_bytes = 0;
        self.settled = self.moment;
    }

    /// The device was replaced by an empty one.
    pub(super) fn blank(&mut self) {
        self.persist();
        self.tear_next = None;
        let length = self.store.len_bytes();
        self.mark(0, length as usize);
        match self.store.discard(0, length) {
            Ok(()) => self.forget_marks(),
            Err(_) => self.break_sums(0, length as usize),
        }
    }

    /// The next write stores only its first bytes.
    pub(super) fn tear_next(&mut self, keep_bytes: u32) {
        self.tear_next = Some(keep_bytes);
    }

    /// A bit flips.
    pub(super) fn flip(&mut self, offset: u64, bit: u8) {
        let sector = offset / SECTOR as u64 * SECTOR as u64;
        let mut bytes = [0; SECTOR];
        if self.store.read(sector, &mut bytes).is_ok() {
            bytes[(offset - sector) as usize] ^= 1 << bit;
            let _failure_is_rot_as_well = self.store.write(sector, &bytes);
        }
    }

    fn remember(&mut self, offset: u64, length: usize) {
        if self.durability == DurabilityPoint::OnFlush {
            self.remember_anyway(offset, length);
        }
    }

    /// Remembers what is there, even if no power cut takes what is about to replace it: it may have to go back with other members.
    pub(super) fn remember_anyway(&mut self, offset: u64, length: usize) {
        let (bytes, sums) = (vec![0; length], vec![0; length / BLOCK_BYTES]);
        let mut before = Before { moment: self.moment, offset, bytes, sums };
        let read = self.store.read(offset, &mut before.bytes).is_ok()
            && self.store.read_sums(offset / BLOCK, &mut before.sums).is_ok();
        if read {
            self.undo_bytes += length;
            self.undo.push_back(before);
        } else {
            // Its old content can no longer be restored.
            self.settled = self.moment;
        }
        // The memory for undo data is bounded: the oldest writes count as drained, and so as
        // durable.
        while self.undo_bytes > self.undo_bytes_max
            && let Some(drained) = self.undo.pop_front()
        {
            self.undo_bytes -= drained.bytes.len();
            self.settled = self.settled.max(drained.moment);
        }
    }

    /// The commands that changed a range and may be taken back here, in ascending order, and the last one that may not.
    pub(super) fn taken_back(&self, range: &Range<u64>) -> (Vec<u64>, u64) {
        let inside = self.undo.iter().filter(|before| range.contains(&before.offset));
        (inside.map(|before| before.moment).collect(), self.settled)
    }

    /// What a range is after later commands than `cut.moment` were taken back, and that one from `cut.from` on: where it
    /// begins, blocks and their checksums. None if nothing of it changes.
    pub(super) fn rolled_back(
        &mut self,
        range: &Range<u64>,
        cut: &Cut,
    ) -> Option<(u64, Vec<u8>, Vec<u32>)> {
        let is_hit =
            |before: &&Before| range.contains(&before.offset) && before.moment >= cut.moment;
        let hit: Vec<&Before> = self.undo.iter().filter(is_hit).collect();
        let from = hit.iter().map(|before| before.offset).min()?;
        let end = hit.iter().map(|before| before.offset + before.bytes.len() as u64).max()?;
        debug_assert!(end <= range.end, "what is remembered lies within one row");
        let mut bytes = vec![0; (end - from) as usize];
        let mut sums = vec![0; bytes.len() / BLOCK_BYTES];
        let read = self.store.read(from, &mut bytes).is_ok()
            && self.store.read_sums(from / BLOCK, &mut sums).is_ok();
        let blocks = bytes.chunks_exact(BLOCK_BYTES).zip(&mut sums).zip(from / BLOCK..);
        for ((block, sum), number) in blocks {
            // What is unknown must not look known for having been stored again.
            if !read || self.unmarked.contains(number) {
                *sum = broken_sum(block);
            }
        }
        for before in hit.into_iter().rev() {
            // Up to here it stays.
            let kept = match before.moment == cut.moment {
                true => cut.from.saturating_sub(before.offset) as usize,
                false => 0,
            };
            let blocks = before.bytes.chunks_exact(BLOCK_BYTES).zip(&before.sums);
            for (index, (old, old_sum)) in blocks.enumerate() {
                let kept = kept.saturating_sub(index * BLOCK_BYTES).min(BLOCK_BYTES);
                let at = (before.offset - from) as usize + index * BLOCK_BYTES;
                let number = at / BLOCK_BYTES;
                let block = &mut bytes[at..at + BLOCK_BYTES];
                if kept == 0 {
                    block.copy_from_slice(old);
                    sums[number] = *old_sum;
                } else if kept < BLOCK_BYTES {
                    let sound = is_sound(block, sums[number], self.checksum)
                        && is_sound(old, *old_sum, self.checksum);
                    block[kept..].copy_from_slice(&old[kept..]);
                    sums[number] = torn_sum(block, self.checksum, sound);
                }
            }
        }
        Some((from, bytes, sums))
    }

    /// Stores blocks as they were; see [`Held::rolled_back`].
    pub(super) fn put_all_back(&mut self, offset: u64, bytes: &[u8], sums: &[u32]) {
        let blocks = bytes.chunks_exact(BLOCK_BYTES).zip(sums);
        for (at, (block, sum)) in (offset..).step_by(BLOCK_BYTES).zip(blocks) {
            self.put_back(at, block, *sum);
        }
    }

    /// What a range holds now will not be taken back.
    pub(super) fn settle(&mut self, range: &Range<u64>) {
        self.undo.retain(|before| !range.contains(&before.offset));
        self.undo_bytes = self.undo.iter().map(|before| before.bytes.len()).sum();
    }

    /// Takes back some volatile writes, newest first: each is kept, lost, or torn at a sector.
    pub(super) fn power_cut(&mut self, seed: u64) {
        let mut random = Pcg64::seed_from_u64(seed);
        self.tear_next = None;
        self.undo_bytes = 0;
        while let Some(before) = self.undo.pop_back() {
            let sectors = before.bytes.len() / SECTOR;
            let kept = match random.random_range(0..3) {
                0 => continue,
                1 => 0,
                _ => random.random_range(0..=sectors),
            };
            self.take_back(&before, kept * SECTOR);
        }
    }

    /// Restores what was there before, except for the first `kept` bytes.
    fn take_back(&mut self, before: &Before, kept: usize) {
        let checksum = self.checksum;
        for (index, old) in before.bytes.chunks_exact(BLOCK_BYTES).enumerate() {
            let start = index * BLOCK_BYTES;
            let at = before.offset + start as u64;
            let old_sum = before.sums[index];
            if kept <= start {
                self.put_back(at, old, old_sum);
            } else if kept < start + BLOCK_BYTES {
                let mut block = self.read(at, BLOCK_BYTES, checksum);
                let sound = block.all_good() && is_sound(old, old_sum, checksum);
                block.bytes[kept - start..].copy_from_slice(&old[kept - start..]);
                let sum = torn_sum(&block.bytes, checksum, sound);
                self.put_back(at, &block.bytes, sum);
            }
        }
    }

    /// Stores a block as it was. One that held nothing holds nothing again: zeros would occupy space.
    fn put_back(&mut self, at: u64, block: &[u8], sum: u32) {
        let failed = if sum == 0 && is_zero(block) {
            self.mark(at, BLOCK_BYTES);
            self.store.discard(at, BLOCK).is_err()
        } else {
            let _counts_as_lost = self.put(at, block, &[sum]);
            false
        };
        if failed {
            self.break_sums(at, BLOCK_BYTES);
        }
    }
}
