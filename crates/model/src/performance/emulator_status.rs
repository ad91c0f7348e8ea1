//! Status of the emulator that carries out a cluster's commands, measured together with the cluster.
//!
//! What is not here: the cluster itself and the names of measures.

use crate::cluster::GroupId;
use crate::reduction::Space;
use underlay_core::Nanos;

/// Counters of the data plane and of deduplication, and the cluster's clock. All 0 or none without
/// an emulator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmulatorStatus {
    /// Blocks that did not verify and were restored from other members, since the start.
    pub repaired_blocks: u64,
    /// Blocks that no member has any more, likewise.
    pub lost_blocks: u64,
    /// None where nothing is counted.
    pub reduction: Option<Reduced>,
    /// How far the cluster's clock has fallen behind the caller's clock in total.
    pub behind: Nanos,
    /// How many times as long copying takes on that clock as on the cluster's; none where they are the same.
    pub slowdown: Option<f64>,
}

/// What deduplication and compression made of the real bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reduced {
    /// Per disk group that reduces.
    pub groups: Vec<(GroupId, Space)>,
    /// Blocks that are not counted as they are now: in a write buffer, or about to be counted.
    pub uncounted_blocks: u64,
    /// Components whose counts are still being built after a restart.
    pub recalling: u64,
}

impl Reduced {
    /// All groups together. What two groups both hold is there twice.
    pub fn total(&self) -> Space {
        let mut total = Space::default();
        self.groups.iter().for_each(|(_, space)| total += *space);
        total
    }
}
