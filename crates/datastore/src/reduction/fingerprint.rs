//! One block: its fingerprint, and what it takes when it is compressed.

use sha2::{Digest, Sha256};

pub use underlay_model::reduction::BLOCK_BYTES;

/// A block whose compressed form fits takes this much, any other all of [`BLOCK_BYTES`].
pub const COMPRESSED_BYTES: usize = 2048;

/// What a stored block is known by, and whether it is stored compressed: 63 bits of its SHA-256, and one bit.
///
/// Among n different blocks, two have the same print with a probability of n^2 / 2^64: 2^-8 for a whole TiB of them. The bytes
/// stay where the data plane keeps them, so even that would cost nothing but one wrong count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Print(u64);

impl Print {
    /// Nothing is stored.
    pub const NOTHING: Print = Print(0);

    /// The print of a block that is not all zeros. It says that the block is not compressed.
    pub(super) fn of(block: &[u8]) -> Print {
        let digest = Sha256::digest(block);
        let first: [u8; 8] = digest[..8].try_into().expect("eight bytes of 32");
        // Zero would mean that nothing is stored.
        Print((u64::from_le_bytes(first) & !1).max(2))
    }

    /// The same block, stored compressed.
    pub(super) const fn compressed(self) -> Print {
        Print(self.0 | 1)
    }

    /// The block, however it is stored.
    pub(super) const fn fingerprint(self) -> u64 {
        self.0 >> 1
    }

    pub(super) const fn is_compressed(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether nothing is stored.
    pub const fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// Bytes that the block takes on a capacity device.
    pub const fn stored_bytes(self) -> u64 {
        match (self.is_nothing(), self.is_compressed()) {
            (true, _) => 0,
            (false, true) => COMPRESSED_BYTES as u64,
            (false, false) => BLOCK_BYTES as u64,
        }
    }

    /// As a number, for keeping it.
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// What [`Print::to_raw`] gave.
    pub const fn from_raw(raw: u64) -> Print {
        Print(raw)
    }
}

/// Length of a block's LZ4 form (block format, without a header). `scratch` is memory for it, kept by the
/// caller so that nothing is allocated per block.
pub fn compressed_length(block: &[u8], scratch: &mut Vec<u8>) -> usize {
    let most = lz4_flex::block::get_maximum_output_size(block.len());
    if scratch.len() < most {
        scratch.resize(most, 0);
    }
    // Memory for the largest possible output cannot be too small.
    lz4_flex::block::compress_into(block, scratch).unwrap_or(block.len())
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, COMPRESSED_BYTES, Print, compressed_length};
    use rand::Rng;
    use underlay_core::RootSeed;

    #[test]
    fn prints_are_those_of_sha_256() {
        // SHA-256 of the empty string begins with e3b0c44298fc1c14 (FIPS 180-4 examples).
        let print = Print::of(&[]);
        assert_eq!(print.to_raw(), 0xe3b0_c442_98fc_1c14_u64.swap_bytes() & !1);
        assert_eq!((print.stored_bytes(), print.compressed().stored_bytes()), (4096, 2048));
        assert_eq!(print.compressed().fingerprint(), print.fingerprint());
        assert!(Print::NOTHING.is_nothing() && Print::NOTHING.stored_bytes() == 0);
    }

    #[test]
    fn only_what_can_be_compressed_is() {
        let mut scratch = Vec::new();
        let mut random = RootSeed(1).stream("test", 0);
        let mut block = vec![0u8; BLOCK_BYTES];
        assert!(compressed_length(&block, &mut scratch) < 64);
        block.iter_mut().for_each(|byte| *byte = random.next_u64() as u8);
        assert!(compressed_length(&block, &mut scratch) > COMPRESSED_BYTES);
        // Half noise, half nothing: just above the limit; a little less noise: below it.
        block[BLOCK_BYTES / 2..].fill(0);
        assert!(compressed_length(&block, &mut scratch) > COMPRESSED_BYTES);
        block[BLOCK_BYTES / 2 - 64..].fill(0);
        let length = compressed_length(&block, &mut scratch);
        assert!(length <= COMPRESSED_BYTES, "{length}");
        let back = lz4_flex::block::decompress(&scratch[..length], BLOCK_BYTES).expect("our own");
        assert_eq!(back, block);
    }
}
