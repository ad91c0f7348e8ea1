//! Where the bytes of one component are: a trait, and memory as its simplest form.

use std::collections::BTreeMap;
use underlay_model::cluster::{ComponentId, DeviceId};

/// Blocks are the unit of checksums and of what a store keeps.
pub const BLOCK_BYTES: usize = 4096;

/// The bytes of one component, and a checksum per block. What was never written, or was discarded, reads as zeros, and
/// its checksum as 0.
///
/// Calls are made one after the other, with ranges inside the length. A store does not order or cache anything on behalf of
/// the data plane: what was written is what is read next.
pub trait BlockStore {
    /// Length in bytes, a multiple of [`BLOCK_BYTES`].
    fn len_bytes(&self) -> u64;

    /// Fills `buffer` from `offset`, both multiples of 512.
    ///
    /// # Errors
    /// When the medium fails; the block then counts as lost and is restored from other members.
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError>;

    /// Stores `bytes` at `offset`, both multiples of 512.
    ///
    /// # Errors
    /// When the medium fails; the blocks then count as lost.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError>;

    /// Forgets a range of whole blocks: it reads as zeros, its checksums as 0.
    ///
    /// # Errors
    /// When the medium fails.
    fn discard(&mut self, offset: u64, length: u64) -> Result<(), StoreError>;

    /// The checksums of the blocks from `first` on.
    ///
    /// # Errors
    /// When the medium fails.
    fn read_sums(&mut self, first: u64, sums: &mut [u32]) -> Result<(), StoreError>;

    /// Stores the checksums of the blocks from `first` on.
    ///
    /// # Errors
    /// When the medium fails.
    fn write_sums(&mut self, first: u64, sums: &[u32]) -> Result<(), StoreError>;
}

/// Makes and destroys the stores of components.
pub trait StoreMaker {
    /// What it makes.
    type Store: BlockStore;

    /// An empty store.
    ///
    /// # Errors
    /// When it cannot be made; the component then answers every read as lost.
    fn create(
        &mut self,
        component: ComponentId,
        device: DeviceId,
        length: u64,
    ) -> Result<Self::Store, StoreError>;

    /// Destroys a store with its content.
    fn remove(&mut self, component: ComponentId, store: Self::Store);
}

/// A store's medium failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("component {component}: could not {operation} {length} bytes at {offset}: {cause}")]
pub struct StoreError {
    /// The component.
    pub component: ComponentId,
    /// `read`, `write`, `discard`, `create`.
    pub operation: &'static str,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Why, in words.
    pub cause: String,
}

/// A component in memory; blocks that hold nothing cost nothing.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    length: u64,
    blocks: BTreeMap<u64, Block>,
}

#[derive(Clone, Debug)]
struct Block {
    bytes: Box<[u8; BLOCK_BYTES]>,
    sum: u32,
}

impl MemoryStore {
    /// An empty one.
    pub fn new(length: u64) -> MemoryStore {
        MemoryStore { length, blocks: BTreeMap::new() }
    }

    /// Bytes of blocks that hold something.
    pub fn allocated_bytes(&self) -> u64 {
        (self.blocks.len() * BLOCK_BYTES) as u64
    }

    /// Blocks that hold something, in ascending order.
    pub fn allocated_blocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.keys().copied()
    }

    fn block_mut(&mut self, block: u64) -> &mut Block {
        self.blocks
            .entry(block)
            .or_insert_with(|| Block { bytes: Box::new([0; BLOCK_BYTES]), sum: 0 })
    }
}

/// The parts of a byte range, by block: number, first byte within the block, and where in the range it lies.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset + done as u64;
        let within = (at % BLOCK_BYTES as u64) as usize;
        let step = (BLOCK_BYTES - within).min(length - done);
        let part = (at / BLOCK_BYTES as u64, within, done..done + step);
        done += step;
        Some(part)
    })
}

impl BlockStore for MemoryStore {
    fn len_bytes(&self) -> u64 {
        self.length
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        assert!(offset + buffer.len() as u64 <= self.length, "read beyond the end");
        for (block, within, range) in parts(offset, buffer.len()) {
            let target = &mut buffer[range];
            match self.blocks.get(&block) {
                Some(held) => target.copy_from_slice(&held.bytes[within..within + target.len()]),
                None => target.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        assert!(offset + bytes.len() as u64 <= self.length, "write beyond the end");
        for (block, within, range) in parts(offset, bytes.len()) {
            let source = &bytes[range];
            self.block_mut(block).bytes[within..within + source.len()].copy_from_slice(source);
        }
        Ok(())
    }

    fn discard(&mut self, offset: u64, length: u64) -> Result<(), StoreError> {
        assert!(offset + length <= self.length, "discard beyond the end");
        let block = BLOCK_BYTES as u64;
        assert!(offset.is_multiple_of(block) && length.is_multiple_of(block), "whole blocks");
        let (first, end) = (offset / block, (offset + length) / block);
        let mut after = self.blocks.split_off(&first);
        self.blocks.append(&mut after.split_off(&end));
        Ok(())
    }

    fn read_sums(&mut self, first: u64, sums: &mut [u32]) -> Result<(), StoreError> {
        for (block, sum) in (first..).zip(sums) {
            *sum = self.blocks.get(&block).map_or(0, |held| held.sum);
        }
        Ok(())
    }

    fn write_sums(&mut self, first: u64, sums: &[u32]) -> Result<(), StoreError> {
        for (block, sum) in (first..).zip(sums) {
            if *sum != 0 || self.blocks.contains_key(&block) {
                self.block_mut(block).sum = *sum;
            }
        }
        Ok(())
    }
}

/// Makes components in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryStores;

impl StoreMaker for MemoryStores {
    type Store = MemoryStore;

    fn create(
        &mut self,
        _component: ComponentId,
        _device: DeviceId,
        length: u64,
    ) -> Result<MemoryStore, StoreError> {
        Ok(MemoryStore::new(length))
    }

    fn remove(&mut self, _component: ComponentId, _store: MemoryStore) {}
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, BlockStore, MemoryStore};

    #[test]
    fn keeps_what_was_written_and_forgets_what_was_discarded() {
        let mut store = MemoryStore::new(16 * 4096);
        store.write(4096 - 512, &[7; 1024]).expect("memory");
        store.write_sums(0, &[1, 2, 0]).expect("memory");
        let mut bytes = [0; 2 * BLOCK_BYTES];
        store.read(0, &mut bytes).expect("memory");
        assert!(bytes[..3584].iter().all(|byte| *byte == 0));
        assert!(bytes[3584..4608].iter().all(|byte| *byte == 7));
        assert_eq!(store.allocated_blocks().collect::<Vec<_>>(), [0, 1]);
        store.discard(4096, 4096).expect("memory");
        let mut sums = [9; 3];
        store.read_sums(0, &mut sums).expect("memory");
        assert_eq!(sums, [1, 0, 0]);
        assert_eq!(store.allocated_bytes(), 4096);
    }
}
