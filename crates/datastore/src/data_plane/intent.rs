//! The intents of a command: what it is about to store, recorded before it begins, so that a kill in between
//! leaves nothing half done.
//!
//! A component is bytes and checksums, and a row with parity is several components: no store can change them atomically. A
//! kill in between leaves a block with a wrong checksum, or parity that does not match its data. Usually other members
//! repair that. If there are none (a single copy, a row with a member missing), the block would be lost, or decoded to
//! bytes that were never written. So a store that outlives the process records what is about to happen, and completes it
//! before anything is read again. The published system's log does the same for writes with parity.
//!
//! Not here: where the intents are stored ([`IntentLog`] is a trait), and which commands take effect at
//! all.

use super::block_store::{BLOCK_BYTES, BlockStore, StoreError};
use super::checksum::verifies;
use underlay_model::cluster::ComponentId;

/// One thing that was about to happen to a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Whole blocks and their checksums were to be stored; here they are.
    Store {
        /// Where.
        component: ComponentId,
        /// First byte, a multiple of [`BLOCK_BYTES`].
        offset_bytes: u64,
        /// Whole blocks.
        bytes: Vec<u8>,
        /// A checksum per block.
        sums: Vec<u32>,
    },
    /// The same, of which only the checksums were noted: blocks that have them already are the new ones.
    Sums {
        /// Where.
        component: ComponentId,
        /// First byte, a multiple of [`BLOCK_BYTES`].
        offset_bytes: u64,
        /// A checksum per block.
        sums: Vec<u32>,
    },
    /// Whole blocks were to be forgotten.
    Discard {
        /// Where.
        component: ComponentId,
        /// First byte, a multiple of [`BLOCK_BYTES`].
        offset_bytes: u64,
        /// A multiple of [`BLOCK_BYTES`].
        length_bytes: u64,
    },
}

/// Keeps notes of the command that is under way, where they outlive the process.
///
/// Per command: any number of notes, [`IntentLog::begin`], the changes themselves, [`IntentLog::end`]. Notes without a `begin`
/// after them mean nothing.
pub trait IntentLog: std::fmt::Debug + Send {
    /// Notes blocks with their bytes; see [`Intent::Store`].
    fn store(&mut self, component: ComponentId, offset_bytes: u64, bytes: &[u8], sums: &[u32]);

    /// Notes blocks by their checksums alone; see [`Intent::Sums`].
    fn sums(&mut self, component: ComponentId, offset_bytes: u64, sums: &[u32]);

    /// Notes blocks to be forgotten.
    fn discard(&mut self, component: ComponentId, offset_bytes: u64, length_bytes: u64);

    /// Everything is noted: from now on it is completed after a kill.
    fn begin(&mut self);

    /// Everything has happened.
    fn end(&mut self);
}

impl Intent {
    /// Whom it concerns.
    pub fn component(&self) -> ComponentId {
        match self {
            Intent::Store { component, .. }
            | Intent::Sums { component, .. }
            | Intent::Discard { component, .. } => *component,
        }
    }

    /// Completes it, whether or not it had begun. Doing so twice does no harm.
    ///
    /// # Errors
    /// When the store's medium fails, or the range is not one of whole blocks within the store.
    pub fn complete<S: BlockStore>(&self, store: &mut S) -> Result<(), StoreError> {
        let block = BLOCK_BYTES as u64;
        let (offset, length) = match self {
            Intent::Store { offset_bytes, bytes, .. } => (*offset_bytes, bytes.len() as u64),
            Intent::Sums { offset_bytes, sums, .. } => (*offset_bytes, sums.len() as u64 * block),
            Intent::Discard { offset_bytes, length_bytes, .. } => (*offset_bytes, *length_bytes),
        };
        let fits = offset.checked_add(length).is_some_and(|end| end <= store.len_bytes());
        let whole = offset.is_multiple_of(block) && length.is_multiple_of(block);
        let summed = match self {
            Intent::Store { bytes, sums, .. } => bytes.len() == sums.len() * BLOCK_BYTES,
            Intent::Sums { .. } | Intent::Discard { .. } => true,
        };
        if !(fits && whole && summed) {
            let cause = "this is not a range of whole blocks of it".to_string();
            let component = self.component();
            return Err(StoreError { component, operation: "complete", offset, length, cause });
        }
        match self {
            Intent::Store { bytes, sums, .. } => {
                store.write(offset, bytes)?;
                store.write_sums(offset / block, sums)
            }
            Intent::Sums { sums, .. } => adopt(store, offset / block, sums),
            Intent::Discard { .. } => store.discard(offset, length),
        }
    }
}

/// Gives the blocks that have these checksums their checksums. The others were not stored yet, and still have their own.
fn adopt<S: BlockStore>(store: &mut S, first: u64, sums: &[u32]) -> Result<(), StoreError> {
    let mut bytes = [0; BLOCK_BYTES];
    for (number, sum) in (first..).zip(sums) {
        store.read(number * BLOCK_BYTES as u64, &mut bytes)?;
        if verifies(&bytes, *sum) {
            store.write_sums(number, &[*sum])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Intent, adopt};
    use crate::data_plane::block_store::{BLOCK_BYTES, BlockStore, MemoryStore};
    use crate::data_plane::checksum::sum_of;
    use underlay_model::cluster::ComponentId;

    const ONE: ComponentId = ComponentId(1);

    fn sum(store: &mut MemoryStore, block: u64) -> u32 {
        let mut sums = [0];
        store.read_sums(block, &mut sums).unwrap();
        sums[0]
    }

    #[test]
    fn blocks_that_were_stored_get_their_checksums_and_rot_does_not() {
        let mut store = MemoryStore::new(4 * BLOCK_BYTES as u64);
        let (old, new, rotten) = ([1; BLOCK_BYTES], [2; BLOCK_BYTES], [3; BLOCK_BYTES]);
        for (block, bytes) in [(0, new), (1, old), (2, rotten)] {
            store.write(block * BLOCK_BYTES as u64, &bytes).unwrap();
            store.write_sums(block, &[sum_of(&old)]).unwrap();
        }
        adopt(&mut store, 0, &[sum_of(&new); 3]).unwrap();
        assert_eq!(sum(&mut store, 0), sum_of(&new));
        assert_eq!(sum(&mut store, 1), sum_of(&old));
        assert_eq!(sum(&mut store, 2), sum_of(&old));
    }

    #[test]
    fn ranges_that_are_none_are_refused() {
        let mut store = MemoryStore::new(2 * BLOCK_BYTES as u64);
        let bytes = vec![5; BLOCK_BYTES];
        let good = |offset_bytes| Intent::Store {
            component: ONE,
            offset_bytes,
            bytes: bytes.clone(),
            sums: vec![sum_of(&bytes)],
        };
        good(BLOCK_BYTES as u64).complete(&mut store).unwrap();
        assert_eq!(sum(&mut store, 1), sum_of(&bytes));
        for offset in [1, 2 * BLOCK_BYTES as u64, u64::MAX - 4095] {
            assert!(good(offset).complete(&mut store).is_err(), "{offset}");
        }
        let unequal =
            Intent::Store { component: ONE, offset_bytes: 0, bytes: bytes.clone(), sums: vec![] };
        assert!(unequal.complete(&mut store).is_err());
        let odd = Intent::Discard { component: ONE, offset_bytes: 0, length_bytes: 512 };
        assert!(odd.complete(&mut store).is_err());
        let whole = Intent::Discard { component: ONE, offset_bytes: 0, length_bytes: 8192 };
        whole.complete(&mut store).unwrap();
        assert_eq!(store.allocated_bytes(), 0);
    }
}
