//! Faults and repairs of a cluster, as users and studies name them.
//!
//! What a study changes of a cluster while it serves is here too.
//!
//! Hosts are named as in the cluster's description; devices `HOST/GROUP/cache` and `HOST/GROUP/disk0`, `disk1` and so on.

use serde::{Deserialize, Serialize};
use underlay_model::cluster::Policy;
use underlay_model::{DeviceProfile, DiskGroupSpec};

/// One fault, or one repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum ClusterFault {
    /// Everything the device does takes longer.
    DeviceSlow {
        /// The device.
        device: String,
        /// How many times as long.
        factor: f64,
    },
    /// The device accepts requests and answers none.
    DeviceStuck {
        /// The device.
        device: String,
    },
    /// The device fails requests with this probability.
    DeviceErroring {
        /// The device.
        device: String,
        /// 0 to 1.
        probability: f64,
    },
    /// The device is gone.
    DeviceLost {
        /// The device.
        device: String,
    },
    /// The device works again, with what it held.
    DeviceReturned {
        /// The device.
        device: String,
    },
    /// An empty device is in its place.
    DeviceReplaced {
        /// The device.
        device: String,
    },
    /// The host lost its power, or crashed.
    HostLost {
        /// The host.
        host: String,
    },
    /// The host answers nothing, and loses nothing.
    HostFrozen {
        /// The host.
        host: String,
    },
    /// These hosts reach each other and no other host.
    HostsPartitioned {
        /// The hosts.
        hosts: Vec<String>,
    },
    /// The host runs, and reaches the others, again.
    HostReturned {
        /// The host.
        host: String,
    },
    /// A bit of a stored byte flips silently.
    BitRot {
        /// Number of the component.
        component: u32,
        /// The byte, from the component's start.
        offset_bytes: u64,
        /// 0 to 7.
        bit: u8,
    },
    /// Bits of one copy of a volume flip silently, each in another block that holds data.
    VolumeBitRot {
        /// The volume.
        volume: String,
        /// How many.
        bits: u32,
        /// Which.
        seed: u64,
    },
    /// The next write to one copy of a volume stores only its first bytes, and reports success.
    VolumeTornWrite {
        /// The volume.
        volume: String,
        /// Bytes that are stored, a multiple of 512.
        keep_bytes: u32,
    },
    /// The next write to a component stores only its first bytes, and reports success.
    TornWrite {
        /// Number of the component.
        component: u32,
        /// Bytes that are stored, a multiple of 512.
        keep_bytes: u32,
    },
}

/// A change of what a cluster is made of, or of what its volumes ask of it.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterChange {
    /// Another policy; what it needs is copied while the volumes serve.
    Policy {
        /// The volume; `None` = every volume.
        volume: Option<String>,
        /// The whole new policy.
        policy: Policy,
    },
    /// One disk group more, which rebalancing may fill.
    DiskGroup {
        /// The host that gets it.
        host: String,
        /// The group; its name is new on that host.
        group: Box<DiskGroupSpec>,
    },
    /// One capacity device more in a disk group, which rebalancing may fill.
    Device {
        /// The disk group, `HOST/GROUP`.
        group: String,
        /// The device.
        profile: Box<DeviceProfile>,
    },
}

/// Something that happened in a datastore: for a time line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DatastoreNotice {
    /// How long ago, in nanoseconds, when it was asked for.
    pub ago_ns: u64,
    /// `fault`, `host`, `device`, `component`, `resync`, `volume` or `data`.
    pub kind: String,
    /// What happened.
    pub text: String,
}
