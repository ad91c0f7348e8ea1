//! How many rows are inserted, and where their values come from.
//!
//! Not here: who inserts which of them, and in what transactions.

use underlay_core::RootSeed;

/// What is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Rows, numbered from 1.
    pub rows: u32,
    /// Where their values come from.
    pub seed: RootSeed,
}

/// The rows of the study.
pub const STUDY_ROWS: u32 = 1_000_000;
/// As many rows as the column of numbers, a signed 32-bit integer, can distinguish.
pub const MAX_ROWS: u32 = i32::MAX as u32;
