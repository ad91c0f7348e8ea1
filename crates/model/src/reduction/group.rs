//! What a disk group has stored: unique blocks with their references, and the space they take.

use super::address_map::AddressMap;
use super::fingerprint::{BLOCK_BYTES, COMPRESSED_BYTES, Fingerprint, compressed_length};
use hashbrown::HashTable;

/// The reduced content of one disk group. About 40 bytes of memory per block of 4 KiB.
#[derive(Clone, Debug)]
pub struct ReducedGroup {
    /// Per capacity device.
    addresses: Vec<AddressMap>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_fingerprint: HashTable<u32>,
    space: Space,
    recent: Recent,
    scratch: Vec<u8>,
}

/// One unique block.
#[derive(Clone, Copy, Debug)]
struct Entry {
    fingerprint: Fingerprint,
    references: u32,
    stored_bytes: u16,
}

/// The space a group uses, and what it would use without reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes that addresses refer to: what would be stored without reduction.
    pub logical_bytes: u64,
    /// Bytes of the different blocks among them.
    pub unique_bytes: u64,
    /// Bytes that these take, compressed where that helps.
    pub stored_bytes: u64,
    /// Blocks that are stored compressed.
    pub compressed_blocks: u64,
}

impl Space {
    /// Logical by unique bytes: 2 when every block is there twice. 1 when nothing is stored.
    pub fn dedupe_ratio(&self) -> f64 {
        ratio(self.logical_bytes, self.unique_bytes)
    }

    /// Unique by stored bytes: 2 when every block is compressed. 1 when nothing is stored.
    pub fn compression_ratio(&self) -> f64 {
        ratio(self.unique_bytes, self.stored_bytes)
    }

    /// Logical by stored bytes. 1 when nothing is stored.
    pub fn reduction_ratio(&self) -> f64 {
        ratio(self.logical_bytes, self.stored_bytes)
    }
}

fn ratio(of: u64, by: u64) -> f64 {
    if by == 0 { 1.0 } else { of as f64 / by as f64 }
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

/// What recent destages were like, for [`crate::DiskGroup::set_reduction_observed`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// Stored bytes per destaged byte, 0 to 1.
    pub stored_bytes_per_destaged_byte: f64,
    /// Share of blocks that were new to the group, 0 to 1.
    pub unique_share: f64,
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

impl ReducedGroup {
    /// A group of so many capacity devices that has stored nothing.
    pub fn new(disks: usize) -> ReducedGroup {
        ReducedGroup {
            addresses: vec![AddressMap::default(); disks],
            entries: Vec::new(),
            free: Vec::new(),
            by_fingerprint: HashTable::new(),
            space: Space::default(),
            recent: Recent::default(),
            scratch: Vec::new(),
        }
    }

    /// Stores destaged bytes, replacing what was at their addresses.
    ///
    /// # Panics
    /// If the disk does not exist, or offset or length are not multiples of [`BLOCK_BYTES`].
    pub fn destage(&mut self, disk: usize, offset_bytes: u64, data: &[u8]) -> Destaged {
        assert!(data.len().is_multiple_of(BLOCK_BYTES), "whole blocks are destaged");
        let first = block_at(offset_bytes);
        let mut destaged = Destaged::default();
        for (block, bytes) in (first..).zip(data.chunks_exact(BLOCK_BYTES)) {
            destaged.blocks += 1;
            let (entry, stored_bytes) = self.refer(bytes);
            destaged.new_blocks += u64::from(stored_bytes.is_some());
            destaged.stored_bytes += stored_bytes.unwrap_or(0);
            self.space.logical_bytes += BLOCK_BYTES as u64;
            // After the new reference, so that rewriting a block with itself frees nothing.
            if let Some(old) = self.addresses[disk].set(block, entry) {
                destaged.freed_bytes += self.release(old);
            }
        }
        self.recent.add(&destaged);
        destaged
    }

    /// Forgets the blocks of a range; returns the bytes given back.
    ///
    /// # Panics
    /// If the disk does not exist, or offset or length are not multiples of [`BLOCK_BYTES`].
    pub fn discard(&mut self, disk: usize, offset_bytes: u64, length_bytes: u64) -> u64 {
        let first = block_at(offset_bytes);
        let end = first + block_at(length_bytes);
        let mut freed = 0;
        for block in first..end {
            if let Some(old) = self.addresses[disk].clear(block) {
                freed += self.release(old);
            }
        }
        freed
    }

    /// Forgets a whole disk, as its loss does; returns the bytes given back.
    pub fn forget_disk(&mut self, disk: usize) -> u64 {
        let entries = self.addresses[disk].drain();
        entries.into_iter().map(|entry| self.release(entry)).sum()
    }

    /// The space in use.
    pub fn space(&self) -> Space {
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

    /// The entry of a block, with one reference more; and what it takes if it is new.
    fn refer(&mut self, bytes: &[u8]) -> (u32, Option<u64>) {
        let fingerprint = Fingerprint::of(bytes);
        let hash = fingerprint.0[0];
        let entries = &mut self.entries;
        let found =
            self.by_fingerprint.find(hash, |at| entries[*at as usize].fingerprint == fingerprint);
        if let Some(at) = found {
            entries[*at as usize].references += 1;
            return (*at, None);
        }
        let is_compressed = compressed_length(bytes, &mut self.scratch) <= COMPRESSED_BYTES;
        let stored = if is_compressed { COMPRESSED_BYTES } else { BLOCK_BYTES };
        let entry = Entry { fingerprint, references: 1, stored_bytes: stored as u16 };
        let at = match self.free.pop() {
            Some(at) => {
                entries[at as usize] = entry;
                at
            }
            None => {
                entries.push(entry);
                u32::try_from(entries.len() - 1).expect("a group holds fewer than 2^32 blocks")
            }
        };
        self.by_fingerprint.insert_unique(hash, at, |at| entries[*at as usize].fingerprint.0[0]);
        self.space.unique_bytes += BLOCK_BYTES as u64;
        self.space.stored_bytes += stored as u64;
        self.space.compressed_blocks += u64::from(is_compressed);
        (at, Some(stored as u64))
    }

    /// Takes a reference away; returns the bytes given back with the last one.
    fn release(&mut self, at: u32) -> u64 {
        self.space.logical_bytes -= BLOCK_BYTES as u64;
        let entry = &mut self.entries[at as usize];
        entry.references -= 1;
        if entry.references > 0 {
            return 0;
        }
        let (hash, stored) = (entry.fingerprint.0[0], u64::from(entry.stored_bytes));
        let found = self.by_fingerprint.find_entry(hash, |candidate| *candidate == at);
        found.expect("a stored block is found by its fingerprint").remove();
        self.free.push(at);
        self.space.unique_bytes -= BLOCK_BYTES as u64;
        self.space.stored_bytes -= stored;
        self.space.compressed_blocks -= u64::from(stored == COMPRESSED_BYTES as u64);
        stored
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

fn block_at(bytes: u64) -> u64 {
    assert!(bytes.is_multiple_of(BLOCK_BYTES as u64), "whole blocks are destaged and discarded");
    bytes / BLOCK_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::{ReducedGroup, Space};
    use crate::reduction::{BLOCK_BYTES, COMPRESSED_BYTES, compressed_length};
    use proptest::prelude::{Just, Strategy, prop_assert_eq, prop_oneof, proptest};
    use rand::Rng;
    use std::collections::{BTreeMap, BTreeSet};
    use underlay_core::RootSeed;

    /// A block of a kind: even ones can be compressed, odd ones cannot.
    fn block(kind: u8) -> Vec<u8> {
        let mut random = RootSeed(u64::from(kind)).stream("block", 0);
        let noise = if kind.is_multiple_of(2) { 512 } else { BLOCK_BYTES };
        (0..BLOCK_BYTES).map(|at| if at < noise { random.next_u64() as u8 } else { kind }).collect()
    }

    #[test]
    fn equal_blocks_are_stored_once_and_given_back_with_the_last() {
        let mut group = ReducedGroup::new(2);
        let two = [block(1), block(2)].concat();
        let first = group.destage(0, 0, &two);
        assert_eq!((first.blocks, first.new_blocks, first.stored_bytes), (2, 2, 4096 + 2048));
        let second = group.destage(1, 1 << 20, &two);
        assert_eq!((second.new_blocks, second.stored_bytes), (0, 0));
        let space = group.space();
        assert_eq!(
            (space.logical_bytes, space.unique_bytes, space.stored_bytes),
            (16_384, 8192, 6144)
        );
        assert_eq!((space.dedupe_ratio(), space.reduction_ratio()), (2.0, 16_384.0 / 6144.0));
        // The same bytes once more change nothing; others free nothing that the other disk still uses.
        assert_eq!(group.destage(0, 0, &two).freed_bytes, 0);
        assert_eq!(group.destage(0, 0, &block(3)).freed_bytes, 0);
        assert_eq!(group.discard(1, 1 << 20, 4096), 4096);
        assert_eq!(group.forget_disk(1), 0);
        assert_eq!(group.forget_disk(0), 2048 + 4096);
        assert_eq!(group.space(), Space::default());
        assert_eq!(group.space().reduction_ratio(), 1.0);
    }

    #[test]
    fn recent_destages_are_observed() {
        let mut group = ReducedGroup::new(1);
        assert_eq!(group.observed(), None);
        group.destage(0, 0, &[block(0), block(0), block(0), block(1)].concat());
        let observed = group.observed().expect("four blocks");
        assert_eq!(observed.unique_share, 0.5);
        assert_eq!(observed.stored_bytes_per_destaged_byte, (2048.0 + 4096.0) / 16_384.0);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Destage { disk: usize, block: u64, kinds: Vec<u8> },
        Discard { disk: usize, block: u64, blocks: u64 },
        Forget { disk: usize },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Around the boundary of two pieces of the address map.
        let place = || (0..2usize, prop_oneof![0..8u64, 1020..1030u64, Just(1u64 << 30)]);
        let step = prop_oneof![
            6 => (place(), proptest::collection::vec(0..12u8, 1..6)).prop_map(
                |((disk, block), kinds)| Step::Destage { disk, block, kinds }
            ),
            2 => (place(), 1..8u64)
                .prop_map(|((disk, block), blocks)| Step::Discard { disk, block, blocks }),
            1 => (0..2usize).prop_map(|disk| Step::Forget { disk }),
        ];
        proptest::collection::vec(step, 1..40)
    }

    proptest! {
        /// Against the bytes themselves: the space is that of the different blocks, after every step.
        #[test]
        fn space_is_exact(steps in steps()) {
            let mut group = ReducedGroup::new(2);
            let mut content: BTreeMap<(usize, u64), u8> = BTreeMap::new();
            let mut scratch = Vec::new();
            let sizes: Vec<u64> = (0..12u8)
                .map(|kind| match compressed_length(&block(kind), &mut scratch) {
                    length if length <= COMPRESSED_BYTES => 2048,
                    _ => 4096,
                })
                .collect();
            for step in steps {
                let before = group.space().stored_bytes;
                let changed = match step {
                    Step::Destage { disk, block: first, kinds } => {
                        let bytes: Vec<u8> = kinds.iter().flat_map(|kind| block(*kind)).collect();
                        content.extend((first..).zip(&kinds).map(|(at, kind)| ((disk, at), *kind)));
                        let destaged = group.destage(disk, first * 4096, &bytes);
                        destaged.stored_bytes as i64 - destaged.freed_bytes as i64
                    }
                    Step::Discard { disk, block: first, blocks } => {
                        content.retain(|(on, at), _| *on != disk || !(first..first + blocks).contains(at));
                        -(group.discard(disk, first * 4096, blocks * 4096) as i64)
                    }
                    Step::Forget { disk } => {
                        content.retain(|(on, _), _| *on != disk);
                        -(group.forget_disk(disk) as i64)
                    }
                };
                let unique: BTreeSet<u8> = content.values().copied().collect();
                let stored: u64 = unique.iter().map(|kind| sizes[usize::from(*kind)]).sum();
                let space = group.space();
                prop_assert_eq!(space.logical_bytes, content.len() as u64 * 4096);
                prop_assert_eq!(space.unique_bytes, unique.len() as u64 * 4096);
                prop_assert_eq!(space.stored_bytes, stored);
                prop_assert_eq!(space.stored_bytes as i64 - before as i64, changed);
            }
        }
    }
}
