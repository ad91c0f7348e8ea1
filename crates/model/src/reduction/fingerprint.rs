//! One block: its fingerprint, and what it takes when it is compressed.

use sha2::{Digest, Sha256};

/// Granularity of deduplication.
pub const BLOCK_BYTES: usize = 4096;
/// A block whose compressed form fits takes this much, any other all of [`BLOCK_BYTES`].
pub const COMPRESSED_BYTES: usize = 2048;

/// What a block is known by: the first 128 bits of its SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub(super) [u64; 2]);

impl Fingerprint {
    /// The fingerprint of a block.
    pub fn of(block: &[u8]) -> Fingerprint {
        let digest = Sha256::digest(block);
        let word = |at: usize| {
            let bytes: [u8; 8] = digest[at..at + 8].try_into().expect("eight bytes of 32");
            u64::from_le_bytes(bytes)
        };
        Fingerprint([word(0), word(8)])
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
    use super::{BLOCK_BYTES, COMPRESSED_BYTES, Fingerprint, compressed_length};
    use rand::Rng;
    use underlay_core::RootSeed;

    #[test]
    fn fingerprints_are_those_of_sha_256() {
        // SHA-256 of the empty string begins with e3b0c44298fc1c14 9afbf4c8996fb924 (FIPS 180-4 examples).
        let expected =
            [0xe3b0_c442_98fc_1c14_u64.swap_bytes(), 0x9afb_f4c8_996f_b924_u64.swap_bytes()];
        assert_eq!(Fingerprint::of(&[]), Fingerprint(expected));
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
