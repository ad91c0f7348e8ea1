//! Names of the parts of a cluster: small numbers, given in the order of creation and never reused.

use std::fmt;

/// A host, by position in [`super::ClusterSpec::hosts`]; hosts added later follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// A disk group, counted over all hosts in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// A device: its disk group and its place there, 0 = cache device, 1.. = capacity devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    /// The disk group.
    pub group: GroupId,
    /// 0 = the cache device, 1.. = the capacity devices.
    pub member: u8,
}

/// A volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(pub u32);

/// A component: the part of an object that lies on one capacity device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u32);

impl fmt::Display for ComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}
