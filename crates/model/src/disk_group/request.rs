//! What a disk group is asked, and what it answers.

use crate::request::Operation;
use crate::scheduler::IoClass;
use underlay_core::Nanos;

/// Names a request among those in flight; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupRequestId(pub u64);

/// One request to a disk group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupIo {
    /// The caller's name for it.
    pub id: GroupRequestId,
    /// On whose behalf.
    pub class: IoClass,
    /// What is asked. A flush ignores disk and range: whatever was acknowledged is durable.
    pub operation: Operation,
    /// Index of the capacity device, from 0.
    pub disk: usize,
    /// First byte on that device. Ranges are widened to whole blocks of 4 KiB, discards narrowed to them.
    pub offset_bytes: u64,
    /// Number of bytes.
    pub length_bytes: u32,
}

/// An answered request. `at = submission + queue + service`, whenever it is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFinished {
    /// The caller's name for it.
    pub id: GroupRequestId,
    /// The moment of the answer.
    pub at: Nanos,
    /// How much earlier it was handed out; see [`super::DiskGroup::submit_early`].
    pub early: Nanos,
    /// Time spent waiting for others: for room in the buffer, for its turn, in the device.
    pub queue: Nanos,
    /// Time the request itself took.
    pub service: Nanos,
    /// How it ended.
    pub outcome: GroupOutcome,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupOutcome {
    /// Done; a write is durable.
    Ok,
    /// A device answered with an error. Members count from 0, the cache device.
    DeviceError {
        /// The member.
        device: usize,
    },
    /// A device is gone.
    DeviceLost {
        /// The member.
        device: usize,
    },
}

/// The state of a device of the group, as faults set it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemberState {
    /// As its profile says.
    Healthy,
    /// Everything takes `factor` times as long, at least 1.
    Slow {
        /// How many times as long.
        factor: f64,
    },
    /// Accepts requests and answers none, until its state is set again.
    Stuck,
    /// Answers with an error with this probability, 0 to 1.
    Erroring {
        /// Per request to the device.
        probability: f64,
    },
    /// Gone: every request to it is answered with that. A group whose cache device is gone, or any of its
    /// devices while it deduplicates, is gone as a whole.
    Lost,
}
