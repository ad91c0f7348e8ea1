//! The hosts and disk groups of a cluster: what there is, what works, who answers, and when a group is to be called.
//!
//! What is not here: what lies on the devices ([`super::objects::Objects`]) and the settings. The inventory decides nothing.

use super::ids::{GroupId, HostId};
use super::network::Network;
use super::spec::NetworkSpec;
use super::topology::{Group, Host};
use super::wakeups::Wakeups;
use underlay_core::RootSeed;

/// Hosts, disk groups and the network between them.
#[derive(Debug)]
pub(super) struct Inventory {
    pub(super) network: Network,
    pub(super) hosts: Vec<Host>,
    pub(super) groups: Vec<Group>,
    /// When each group wants to be called.
    pub(super) wakeups: Wakeups,
    /// Whether a host is without power; a short cut for the usual case.
    pub(super) any_crashed: bool,
    /// Whether a host does not answer all others; likewise.
    pub(super) any_silent: bool,
    /// Number of the next side of a partition.
    pub(super) next_side: u32,
    /// Number of the last change of a host.
    pub(super) host_epoch: u32,
    /// Seeds the disk groups.
    pub(super) seed: RootSeed,
}

impl Inventory {
    /// No hosts.
    pub(super) fn new(network: NetworkSpec, seed: RootSeed) -> Inventory {
        Inventory {
            network: Network::new(network),
            hosts: Vec::new(),
            groups: Vec::new(),
            wakeups: Wakeups::new(),
            any_crashed: false,
            any_silent: false,
            next_side: 1,
            host_epoch: 0,
            seed,
        }
    }

    /// Asks the group when it wants to be called next; needed after each call that may change it.
    #[inline]
    pub(super) fn note_wakeup(&mut self, index: usize) {
        let at = self.groups[index].engine.wakeup().0;
        if at != self.wakeups.at(index) {
            self.wakeups.set(index, at);
        }
    }

    #[inline]
    pub(super) fn host_of(&self, group: GroupId) -> HostId {
        self.groups[group.0 as usize].host
    }
}
