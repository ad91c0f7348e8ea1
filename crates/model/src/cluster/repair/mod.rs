//! Repair: brings volumes back to what their policies promise after changes of the cluster.
//!
//! In reading order: what follows from membership ([`reachability`]), lost power ([`power_loss`]), components made and
//! replaced ([`replacement`]), copies ([`resync`], [`resync_search`], [`resync_rate`]), policy changes ([`reshape`]) and moves
//! between devices ([`rebalance`]). A copy in progress is recorded at its component; here is only what concerns all of them.
//!
//! What is not here: how a slice is read and written. That is a part of [`super::requests::Requests`], which calls back when
//! a phase of it has ended.

mod reachability;

mod power_loss;

mod replacement;

mod resync;

mod resync_rate;

mod resync_search;

mod reshape;

mod rebalance;

use rebalance::Balance;
use resync::ResyncState;

pub(in crate::cluster) use replacement::NewComponent;

/// The state of repair that belongs to no single component.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Repair {
    resync: ResyncState,
    rebalancing: Balance,
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
