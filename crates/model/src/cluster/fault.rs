//! What can go wrong, or be put right, at a moment in time.
//!
//! * **Device slow, stuck, erroring**: the device behaves so until it is returned. A stuck device counts as failed after
//!   the device timeout, an erroring one after one failed write or too many failed reads.
//! * **Device lost**: failed at once; what it held is rebuilt elsewhere without delay. Losing the cache device loses the
//!   group (it holds the only copy of what was not destaged), and so does any device of a group that deduplicates.
//! * **Host lost**: power gone. Requests to it fail after the detection time; its components are absent and are rebuilt
//!   after the repair delay. What its devices had acknowledged stays, except on devices without power-loss protection.
//! * **Host frozen**: it answers nothing until it is returned, and loses nothing.
//! * **Host partitioned**: these hosts reach each other and no other host. A volume is available on the side that has more
//!   than half of its votes; without such a side it answers errors.
//! * **Power cut**: all hosts at the same moment; writes in flight are lost, torn or kept, replica by replica.
//! * **Bit rot, torn write**: a component's bytes change without an error being reported. Only checksums tell.

use super::ids::{ComponentId, DeviceId, HostId};

/// One fault, or one repair.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Each request takes `factor` times as long.
    DeviceSlow {
        /// The device.
        device: DeviceId,
        /// More than 1 is slower.
        factor: f64,
    },
    /// Requests are accepted and never answered.
    DeviceStuck {
        /// The device.
        device: DeviceId,
    },
    /// Each request fails with this probability.
    DeviceErroring {
        /// The device.
        device: DeviceId,
        /// 0 to 1.
        probability: f64,
    },
    /// The device is gone.
    DeviceLost {
        /// The device.
        device: DeviceId,
    },
    /// The device is healthy again.
    DeviceReturned {
        /// The device.
        device: DeviceId,
        /// What it holds.
        content: ReturnedContent,
    },
    /// The host lost power or crashed.
    HostLost {
        /// The host.
        host: HostId,
    },
    /// The host answers nothing.
    HostFrozen {
        /// The host.
        host: HostId,
    },
    /// These hosts form a side of their own.
    HostsPartitioned {
        /// All hosts of the side.
        hosts: Vec<HostId>,
    },
    /// The host runs, and reaches the others, again.
    HostReturned {
        /// The host.
        host: HostId,
    },
    /// All hosts lose power at the same moment.
    PowerCut,
    /// All hosts that lost power run again.
    PowerOn,
    /// One bit of a stored byte flips silently.
    BitRot {
        /// The component.
        component: ComponentId,
        /// The byte, from the component's start.
        offset_bytes: u64,
        /// The bit, 0 to 7.
        bit: u8,
    },
    /// The next write to the component stores only its first bytes and reports success.
    TornWrite {
        /// The component.
        component: ComponentId,
        /// Bytes that are stored, a multiple of 512.
        keep_bytes: u32,
    },
}

/// What a returned device holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnedContent {
    /// What it held when it went: only what changed since is copied.
    Kept,
    /// Nothing: it is a new one.
    Blank,
}

/// Why a fault could not be injected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultProblem {
    /// No such host.
    #[error("host {0} does not exist")]
    NoHost(u32),
    /// No such device.
    #[error("device {member} of disk group {group} does not exist")]
    NoDevice {
        /// The disk group.
        group: u32,
        /// The place in it.
        member: u8,
    },
    /// No such component.
    #[error("component {0} does not exist")]
    NoComponent(ComponentId),
    /// An argument out of range.
    #[error("{what} is {value}; {rule}")]
    Argument {
        /// The argument.
        what: &'static str,
        /// What it is.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// The fault does not apply to the present state.
    #[error("{host} is {state}; {remedy}")]
    HostState {
        /// The host, in words.
        host: String,
        /// Its state.
        state: &'static str,
        /// What to do first.
        remedy: &'static str,
    },
}
