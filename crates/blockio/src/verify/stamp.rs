//! The mark at the end of each unit of a verified request.
//!
//! At the end, because content begins with its compressible part (see `workload::block::content`). Little-endian:
//! magic, run, unit, write (8 bytes each), thread, target (4 bytes each), checksum (8 bytes) over everything before
//! it in the unit.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Length of a stamp.
pub(super) const STAMP_BYTES: usize = 48;
const MAGIC: u64 = u64::from_le_bytes(*b"UNDLBLK1");

/// Who wrote a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Identity of the run.
    pub run: u64,
    /// Number of the unit on its target: where it belongs.
    pub unit: u64,
    /// Number of the write on its target, from 1.
    pub write: u64,
    /// Thread of the workload.
    pub thread: u32,
    /// Number of the target in its run.
    pub target: u32,
}

/// Puts the stamp at the end of a unit whose content is complete.
pub(super) fn put(bytes: &mut [u8], stamp: &Stamp) {
    let (content, mark) = bytes.split_at_mut(bytes.len() - STAMP_BYTES);
    let words = [MAGIC, stamp.run, stamp.unit, stamp.write];
    for (place, word) in mark.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    mark[32..36].copy_from_slice(&stamp.thread.to_le_bytes());
    mark[36..40].copy_from_slice(&stamp.target.to_le_bytes());
    let sum = checksum(content, &mark[..40]);
    mark[40..].copy_from_slice(&sum.to_le_bytes());
}

/// The stamp of a unit; `None` when there is none, or the unit is not what it was written with.
pub(super) fn take(bytes: &[u8]) -> Option<Stamp> {
    let (content, mark) = bytes.split_at(bytes.len() - STAMP_BYTES);
    let word = |at: usize| u64::from_le_bytes(mark[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(mark[at..at + 4].try_into().expect("four bytes"));
    if word(0) != MAGIC || word(40) != checksum(content, &mark[..40]) {
        return None;
    }
    Some(Stamp {
        run: word(8),
        unit: word(16),
        write: word(24),
        thread: half(32),
        target: half(36),
    })
}

fn checksum(content: &[u8], mark: &[u8]) -> u64 {
    xxh3_64_with_seed(content, xxh3_64_with_seed(mark, 0))
}

#[cfg(test)]
mod tests {
    use super::{Stamp, put, take};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        /// A stamp comes back as it was put, and any changed bit is noticed.
        #[test]
        fn any_change_is_noticed(
            run: u64, unit: u64, write: u64, thread: u32, sectors in 1usize..9,
            fill in any::<u8>(), byte in any::<proptest::sample::Index>(), bit in 0u32..8,
        ) {
            let stamp = Stamp { run, unit, write, thread, target: 3 };
            let mut bytes = vec![fill; sectors * 512];
            put(&mut bytes, &stamp);
            prop_assert_eq!(take(&bytes), Some(stamp));
            let at = byte.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(take(&bytes), None);
        }
    }

    #[test]
    fn zeros_and_noise_have_no_stamp() {
        assert_eq!(take(&[0; 4096]), None);
        assert_eq!(take(&[0x5A; 512]), None);
    }
}
