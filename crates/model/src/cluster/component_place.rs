//! Where a component is: its host, disk group and device.
//!
//! What is not here: the choice of a place for a new component (`placement`).

use super::ids::{ComponentId, GroupId, HostId};

/// Where a component is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) component: ComponentId,
    pub(super) group: GroupId,
    pub(super) host: HostId,
    /// Capacity device in the group, from 0.
    pub(super) disk: u8,
    /// Where it begins in the device's address space.
    pub(super) base: u64,
}
