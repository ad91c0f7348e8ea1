//! What a touch of a page found, and how many of each a pool has answered.
//!
//! Not here: which page gives way.

use crate::page::PageId;

/// What a touch of a page found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// It is in memory, in that frame.
    Hit(u32),
    /// It was not, and has a frame now.
    Missed {
        /// The frame.
        frame: u32,
        /// The page that left it, and whether it must be written.
        evicted: Option<(PageId, bool)>,
    },
    /// Nothing can give way: every frame is being read into, or waits to be written.
    Full,
}

/// Touches that a pool has answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Touches of pages in memory.
    pub hits: u64,
    /// Touches of others.
    pub misses: u64,
    /// Pages that left to make room.
    pub evictions: u64,
    /// Those of them that were dirty.
    pub dirty_evictions: u64,
    /// Clean pages that became dirty, those included that entered as dirty ones.
    pub dirtied: u64,
}
