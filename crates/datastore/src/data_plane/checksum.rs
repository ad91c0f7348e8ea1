//! The checksum of a block: CRC-32C, as the published system uses (knowledge: software checksum, 4 KiB).
//!
//! 0 stands for "no data": a block without a checksum must be all zeros. A block whose content is known to be lost gets
//! a checksum that does not match its bytes, so that it is never used as data.

use super::block_store::BLOCK_BYTES;

/// The checksum of a block; never 0, and 0 for a block of zeros.
pub(super) fn sum_of(block: &[u8]) -> u32 {
    if is_zero(block) {
        return 0;
    }
    crc32c::crc32c(block).max(1)
}

/// Whether the block has that checksum.
pub(super) fn verifies(block: &[u8], sum: u32) -> bool {
    if sum == 0 { is_zero(block) } else { crc32c::crc32c(block).max(1) == sum }
}

/// A checksum that the block does not have.
pub(super) fn broken_sum(block: &[u8]) -> u32 {
    let sum = crc32c::crc32c(block).max(1);
    (!sum).max(1)
}

/// The checksums of whole blocks.
pub(super) fn sums_of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(BLOCK_BYTES).map(sum_of).collect()
}

/// Whether all bytes are 0.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    // Word by word: this runs over each block that is read.
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().all(|word| u64::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::{broken_sum, sum_of, verifies};

    #[test]
    fn a_flipped_bit_a_lost_block_and_zeros_are_told_apart() {
        let mut block = [0u8; 4096];
        assert_eq!(sum_of(&block), 0);
        assert!(verifies(&block, 0));
        block[9] = 4;
        let sum = sum_of(&block);
        assert!(verifies(&block, sum) && !verifies(&block, 0));
        assert!(!verifies(&block, broken_sum(&block)));
        block[9] ^= 1;
        assert!(!verifies(&block, sum));
        block[9] = 0;
        assert!(!verifies(&block, sum));
    }

    #[test]
    fn the_polynomial_is_castagnoli() {
        // The check value of CRC-32C (RFC 3720, appendix B.4: CRC of "123456789" in its usual presentation).
        assert_eq!(crc32c::crc32c(b"123456789"), 0xE306_9283);
    }
}
