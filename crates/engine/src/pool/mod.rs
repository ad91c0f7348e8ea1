//! Buffer pools: which pages are in memory, and which one gives way.
//!
//! [`ClockSweep`] is PostgreSQL's, and with other counts the second-chance approximation of the kernel's page cache. A pool
//! knows pages by number and what the caller does with them; it does no I/O and knows no time but what it is
//! given.

mod clock_sweep;

pub use clock_sweep::ClockSweep;

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
    /// Every frame is being read into: nothing can give way.
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
}
