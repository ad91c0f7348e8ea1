//! What network to stand for, and what passed it.
//!
//! It deliberately moves no bytes.

use std::time::Duration;

/// A network, in the host's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkSpec {
    /// What it adds to a round trip, half of it each way.
    pub round_trip: Duration,
    /// What each direction carries; `None` = any amount.
    pub bytes_per_second: Option<u64>,
}
