//! Moments in the rows, of which the population has only one: that of the load.
//!
//! Not here: how a moment is written; that is the engine's.

/// A moment in whole seconds since 1970-01-01 00:00:00 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixSeconds(pub i64);

/// The date of every row of the population: 2026-01-01 00:00:00 UTC. Fixed, so that equal parameters
/// generate equal bytes.
pub const LOADED_AT: UnixSeconds = UnixSeconds(1_767_225_600);
