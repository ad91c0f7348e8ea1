//! What written bytes look like: compressible by a factor, and partly duplicates, in blocks of 4 KiB.
//!
//! A block is one repeated word followed by noise. LZ4 stores the noise as it is and the rest in a few
//! bytes, so the length of the noise sets the ratio for any reduction unit of 4 KiB or more. (The other way
//! round, a compressor that skips faster and faster through noise would miss a part of the rest.) A duplicate is one of a few blocks that return again and again; every other block is unique. The bytes depend on
//! seed, address and version alone, so that what was written can be computed again when it is checked.
//!
//! Not here: which requests write (see `generator`), and the marks of verified blocks (see `blockio`).

use underlay_core::RootSeed;

/// The unit in which data is reduced: duplicates and ratios hold for aligned blocks of this size.
pub const BLOCK_BYTES: usize = 4096;
/// LZ4 cannot shrink a block of 4 KiB much further.
pub const COMPRESS_RATIO_MAX: f64 = 40.0;
/// Above this there is no unique data left to speak of.
pub const DUPLICATE_SHARE_MAX: f64 = 0.99;

/// Different contents among the duplicates.
const POOL: u64 = 64;
/// What LZ4 (block format) adds to the noise of a block: the word once, one match, and lengths in steps of 255.
const LZ4_OVERHEAD: f64 = 29.0;

/// What written bytes look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContentSpec {
    /// Uncompressed by LZ4-compressed size of each block of 4 KiB, 1 to 40. 1 = incompressible.
    pub compress_ratio: f64,
    /// Share of the blocks of 4 KiB whose content another block has too, 0 to 0.99.
    pub duplicate_share: f64,
}

impl ContentSpec {
    /// Noise: neither compressible nor duplicate.
    pub const NOISE: ContentSpec = ContentSpec { compress_ratio: 1.0, duplicate_share: 0.0 };
}

/// A rule that a [`ContentSpec`] violates.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ContentProblem {
    /// Outside of what LZ4 can do with 4 KiB.
    #[error("a compression ratio of {0} is out of range; choose 1 to 40")]
    CompressRatio(f64),
    /// Not a share.
    #[error("a duplicate share of {0} is out of range; choose 0 to 0.99")]
    DuplicateShare(f64),
}

/// Fills buffers.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    key: u64,
    /// Noise per 4096 bytes.
    noise: usize,
    /// Draws below this are duplicates.
    duplicates_below: u64,
}

impl Content {
    /// Bytes of that kind, different for each seed.
    ///
    /// # Errors
    /// When a value is out of its range.
    pub fn new(spec: ContentSpec, seed: RootSeed) -> Result<Content, ContentProblem> {
        if !(1.0..=COMPRESS_RATIO_MAX).contains(&spec.compress_ratio) {
            return Err(ContentProblem::CompressRatio(spec.compress_ratio));
        }
        if !(0.0..=DUPLICATE_SHARE_MAX).contains(&spec.duplicate_share) {
            return Err(ContentProblem::DuplicateShare(spec.duplicate_share));
        }
        let wanted = BLOCK_BYTES as f64 / spec.compress_ratio - LZ4_OVERHEAD;
        let compressible = spec.compress_ratio > 1.0;
        let noise = if compressible { wanted.round() as usize / 8 * 8 } else { BLOCK_BYTES };
        Ok(Content {
            key: seed.child("block.content", 0).0,
            noise,
            duplicates_below: (spec.duplicate_share * u64::MAX as f64) as u64,
        })
    }

    /// Fills `bytes`, which belong at `offset_bytes` of a volume, as version `version` of them. Both are multiples
    /// of 512. A block of 4 KiB that is written whole is as the spec says; parts of one are as compressible.
    pub fn fill(&self, offset_bytes: u64, version: u64, bytes: &mut [u8]) {
        let mut offset = offset_bytes;
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = (offset % BLOCK_BYTES as u64) as usize;
            let length = (BLOCK_BYTES - within).min(rest.len());
            let (piece, after) = rest.split_at_mut(length);
            self.fill_block(offset, version, piece);
            offset += length as u64;
            rest = after;
        }
    }

    fn fill_block(&self, offset: u64, version: u64, piece: &mut [u8]) {
        let mut state = mix(mix(self.key ^ offset) ^ version);
        if self.duplicates_below > 0 && mix(state) < self.duplicates_below {
            state = mix(self.key ^ (mix(state ^ 1) % POOL));
        }
        let noise = (self.noise * piece.len() / BLOCK_BYTES).next_multiple_of(8).min(piece.len());
        let (plain, noisy) = piece.split_at_mut(piece.len() - noise);
        for word in noisy.as_chunks_mut::<8>().0 {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            *word = mix(state).to_le_bytes();
        }
        // Not zero: zeros are what storage recognises without compressing anything.
        let repeated = (mix(state) | 1).to_le_bytes();
        plain.as_chunks_mut::<8>().0.fill(repeated);
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, Content, ContentProblem, ContentSpec};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use std::collections::HashMap;
    use underlay_core::RootSeed;

    const BLOCKS: u64 = 4_000;

    fn content(compress_ratio: f64, duplicate_share: f64) -> Content {
        Content::new(ContentSpec { compress_ratio, duplicate_share }, RootSeed(3)).unwrap()
    }

    /// As a volume would hold them after every block was written once, in requests of `request` blocks.
    fn volume(content: &Content, request: u64) -> Vec<u8> {
        let mut bytes = vec![0; BLOCKS as usize * BLOCK_BYTES];
        let size = request as usize * BLOCK_BYTES;
        for (index, chunk) in bytes.chunks_mut(size).enumerate() {
            content.fill((index * size) as u64, 7, chunk);
        }
        bytes
    }

    fn ratio(bytes: &[u8], unit: usize) -> f64 {
        let compressed = |chunk| lz4_flex::block::compress(chunk).len().min(unit);
        bytes.len() as f64 / bytes.chunks(unit).map(compressed).sum::<usize>() as f64
    }

    fn duplicate_share(bytes: &[u8]) -> f64 {
        let mut copies: HashMap<&[u8], u64> = HashMap::new();
        for block in bytes.chunks(BLOCK_BYTES) {
            *copies.entry(block).or_default() += 1;
        }
        let repeated: u64 = copies.values().filter(|count| **count > 1).sum();
        repeated as f64 / BLOCKS as f64
    }

    #[test]
    fn lz4_finds_the_ratio_asked_for() {
        for wanted in [1.0, 1.1, 1.5, 2.0, 3.0, 4.0, 10.0, 20.0, 40.0] {
            let bytes = volume(&content(wanted, 0.0), 2);
            let found = ratio(&bytes, BLOCK_BYTES);
            assert!((found / wanted - 1.0).abs() < 0.02, "{found} instead of {wanted}");
            assert_eq!(duplicate_share(&bytes), 0.0);
        }
    }

    #[test]
    fn larger_units_of_compression_find_no_more() {
        for wanted in [1.0, 2.0, 4.0] {
            let found = ratio(&volume(&content(wanted, 0.0), 1), 64 << 10);
            assert!((found / wanted - 1.0).abs() < 0.05, "{found} instead of {wanted}");
        }
    }

    #[test]
    fn as_many_blocks_are_duplicates_as_asked_for() {
        for wanted in [0.0, 0.1, 0.5, 0.9] {
            let bytes = volume(&content(2.0, wanted), 4);
            let found = duplicate_share(&bytes);
            assert!((found - wanted).abs() < 0.03, "{found} instead of {wanted}");
            let found = ratio(&bytes, BLOCK_BYTES);
            assert!((found / 2.0 - 1.0).abs() < 0.02, "duplicates compress like others: {found}");
        }
    }

    #[test]
    fn a_rewrite_changes_a_unique_block() {
        let content = content(1.0, 0.0);
        let (mut before, mut after) = ([0; BLOCK_BYTES], [0; BLOCK_BYTES]);
        content.fill(8192, 1, &mut before);
        content.fill(8192, 2, &mut after);
        assert!(before != after);
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let refused = |compress_ratio, duplicate_share| {
            Content::new(ContentSpec { compress_ratio, duplicate_share }, RootSeed(1)).unwrap_err()
        };
        assert_eq!(refused(0.5, 0.0), ContentProblem::CompressRatio(0.5));
        assert_eq!(refused(41.0, 0.0), ContentProblem::CompressRatio(41.0));
        assert_eq!(refused(1.0, 1.0), ContentProblem::DuplicateShare(1.0));
    }

    proptest! {
        /// Cutting a request into two that meet at a block boundary changes nothing.
        #[test]
        fn bytes_depend_on_address_and_version_alone(
            first in 0u64..1000, blocks in 2usize..9, cut in 1usize..8, version: u64, ratio in 1.0f64..40.0,
        ) {
            let content = content(ratio, 0.3);
            let at = first * BLOCK_BYTES as u64;
            let cut = (cut % blocks) * BLOCK_BYTES;
            let (mut whole, mut parts) = (vec![0; blocks * BLOCK_BYTES], vec![0; blocks * BLOCK_BYTES]);
            content.fill(at, version, &mut whole);
            content.fill(at, version, &mut parts[..cut]);
            content.fill(at + cut as u64, version, &mut parts[cut..]);
            prop_assert_eq!(&whole, &parts);
        }

        /// Requests of single sectors are as compressible as their length allows.
        #[test]
        fn sectors_are_filled_too(sector in 0u64..64, version: u64) {
            let content = content(2.0, 0.0);
            let mut bytes = [0; 512];
            content.fill(sector * 512, version, &mut bytes);
            let compressed = lz4_flex::block::compress(&bytes).len();
            prop_assert!((240..300).contains(&compressed), "{}", compressed);
        }
    }
}
