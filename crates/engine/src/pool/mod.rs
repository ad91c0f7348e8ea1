//! Buffer pools: which pages are in memory, and which one gives way.
//!
//! [`MidpointLru`] is InnoDB's; [`ClockSweep`] is PostgreSQL's, and with other counts the
//! second-chance approximation of the kernel's page cache. A pool knows pages by number and what
//! the caller does with them; it does no I/O and knows no time but what it is given.

mod clock_sweep;
mod midpoint_lru;
mod places;
mod touch;

pub use clock_sweep::ClockSweep;
pub use midpoint_lru::MidpointLru;
pub use places::{EntryPerFrame, EntryPerPage};
pub use touch::{PoolCounters, Touched};

use crate::page::PageId;
use underlay_core::Nanos;

/// The buffer pool of an engine.
#[derive(Clone, Debug)]
pub(crate) enum Pool {
    /// PostgreSQL's.
    Clock(ClockSweep),
    /// InnoDB's.
    Midpoint(MidpointLru),
}

impl Pool {
    #[inline]
    pub(crate) fn touch(
        &mut self,
        now: Nanos,
        page: PageId,
        writes: bool,
        position: u64,
    ) -> Touched {
        match self {
            Pool::Clock(pool) => pool.touch(page, writes),
            Pool::Midpoint(pool) => pool.touch(now, page, writes, position),
        }
    }

    pub(crate) fn look_ahead(&self, pages: impl Iterator<Item = PageId> + Clone) {
        match self {
            Pool::Clock(pool) => pool.look_ahead(pages),
            Pool::Midpoint(pool) => pool.look_ahead(pages),
        }
    }

    pub(crate) fn set_loading(&mut self, frame: u32, is_loading: bool) {
        match self {
            Pool::Clock(pool) => pool.set_loading(frame, is_loading),
            Pool::Midpoint(pool) => pool.set_loading(frame, is_loading),
        }
    }

    pub(crate) fn is_loading(&self, frame: u32) -> bool {
        match self {
            Pool::Clock(pool) => pool.is_loading(frame),
            Pool::Midpoint(pool) => pool.is_loading(frame),
        }
    }

    /// Whether a page cannot be changed, because it is being written: InnoDB keeps a latch of it meanwhile.
    #[inline]
    pub(crate) fn is_latched(&self, page: PageId) -> bool {
        match self {
            Pool::Clock(_) => false,
            Pool::Midpoint(pool) => pool.is_writing(page),
        }
    }

    pub(crate) fn dirty(&self) -> u32 {
        match self {
            Pool::Clock(pool) => pool.dirty(),
            Pool::Midpoint(pool) => pool.dirty(),
        }
    }

    pub(crate) fn take_counters(&mut self) -> PoolCounters {
        match self {
            Pool::Clock(pool) => pool.take_counters(),
            Pool::Midpoint(pool) => pool.take_counters(),
        }
    }
}
