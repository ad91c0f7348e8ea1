//! Repair: brings volumes back to what their policies promise after changes of the cluster.
//!
//! The modules `membership`, `power_loss`, `replacement`, `resync`, `reshape` and `rebalance` hold the steps. What is being
//! copied at a moment is noted at the components themselves; here is only what concerns all of them.

use super::rebalance::Balance;
use super::resync::ResyncState;

/// The state of repair that belongs to no single component.
#[derive(Debug, Default)]
pub(super) struct Repair {
    pub(super) resync: ResyncState,
    pub(super) rebalancing: Balance,
}
