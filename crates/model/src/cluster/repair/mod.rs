//! Repair: brings volumes back to what their policies promise after changes of the cluster.
//!
//! In reading order: what follows from membership ([`reachability`]), lost power ([`power_loss`]), components
//! replaced ([`replacement`]), copies ([`resync_state`], [`resync`], [`resync_search`], [`resync_rate`]), policy changes
//! ([`reshape`]) and moves between devices ([`rebalance`]). A copy in progress is recorded at its component; here is only
//! what concerns all of them.
//!
//! What is not here: how a slice is read and written. That is a part of [`super::requests::Requests`], which calls back when
//! a phase of it has ended.

mod reachability;

mod power_loss;

mod replacement;

mod resync_state;

mod resync;

mod resync_rate;

mod resync_search;

mod reshape;

mod rebalance;

use resync_state::ResyncState;

/// The state of repair that belongs to no single component.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Repair {
    resync: ResyncState,
    rebalancing: Balance,
}

/// What rebalancing is doing.
#[derive(Clone, Copy, Debug, Default)]
struct Balance {
    /// The variance was exceeded and has not been halved yet.
    evening_out: bool,
}

impl Repair {
    /// What has been copied so far.
    pub(in crate::cluster) fn copied(&self) -> &ResyncState {
        &self.resync
    }

    /// Number of a copy that begins.
    pub(in crate::cluster) fn next_epoch(&mut self) -> u32 {
        self.resync.next_epoch()
    }
}
