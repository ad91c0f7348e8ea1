//! What has been copied so far, over all components.
//!
//! What is not here: the copy of one component, which is recorded at the component.

use super::resync_rate::ResyncRate;
use crate::cluster::event::ResyncReason;
use underlay_core::Nanos;

/// What has been copied so far.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct ResyncState {
    /// Tells slices of an earlier copy from those of the present one.
    epochs: u32,
    /// Bytes written by copies, per [`ResyncReason::ALL`].
    pub(in crate::cluster) copied_bytes: [u64; 4],
    /// Slices written by copies, likewise.
    pub(in crate::cluster) slices: [u64; 4],
    pub(in crate::cluster) rate: ResyncRate,
    /// Whether a retry is scheduled.
    pub(in crate::cluster) retry_scheduled: bool,
}

impl ResyncState {
    /// Number of a copy that begins.
    pub(in crate::cluster) fn next_epoch(&mut self) -> u32 {
        self.epochs = self.epochs.wrapping_add(1);
        self.epochs
    }

    /// Counts a slice.
    pub(in crate::cluster) fn count(&mut self, now: Nanos, reason: ResyncReason, bytes: u64) {
        self.copied_bytes[reason as usize] += bytes;
        self.slices[reason as usize] += 1;
        self.rate.count(now, bytes);
    }
}
