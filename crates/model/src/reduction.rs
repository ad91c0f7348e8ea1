//! Figures of deduplication and compression that the models and the performance catalogue use.
//!
//! What is not here: fingerprints, references and compression of real bytes. The `datastore` crate has the bytes and
//! computes these figures from them.

use std::ops::AddAssign;

/// Granularity of deduplication, bytes.
pub const BLOCK_BYTES: usize = 4096;

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

impl AddAssign for Space {
    fn add_assign(&mut self, other: Space) {
        self.logical_bytes += other.logical_bytes;
        self.unique_bytes += other.unique_bytes;
        self.stored_bytes += other.stored_bytes;
        self.compressed_blocks += other.compressed_blocks;
    }
}

/// What recent destages were like, for [`crate::DiskGroup::set_reduction_observed`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// Stored bytes per destaged byte, 0 to 1.
    pub stored_bytes_per_destaged_byte: f64,
    /// Share of blocks that were new to the group, 0 to 1.
    pub unique_share: f64,
}
