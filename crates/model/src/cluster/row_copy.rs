//! A row that is being copied slice by slice.
//!
//! What is not here: the choice of the next slice, and what its end means.

/// A row of which slices are in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowCopy {
    pub(super) row: u64,
    /// Bytes of which the copy has begun.
    pub(super) begun: u32,
    /// Slices in flight.
    pub(super) in_flight: u32,
    /// A slice failed, or a write was missed: the row stays stale.
    pub(super) spoiled: bool,
}
