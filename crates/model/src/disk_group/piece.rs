//! A piece of an operation: as it waits for its device, and as it was sent.

use super::request::GroupOutcome;
use crate::request::Operation;
use crate::scheduler::{Lane, Waiting};
use underlay_core::Nanos;

/// A part of an operation that waits for a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Index of the operation it belongs to.
    pub(crate) op: u32,
    pub(crate) operation: Operation,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u32,
    /// Most bytes sent at once.
    pub(crate) quantum_max_bytes: u32,
    pub(crate) sequence: u64,
    pub(crate) since: Nanos,
}

impl Waiting for Piece {
    fn quantum_bytes(&self) -> u64 {
        // What moves no bytes still costs a command.
        u64::from(self.length_bytes.min(self.quantum_max_bytes)).max(4096)
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// What was sent to a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) op: u32,
    pub(crate) lane: Lane,
    pub(crate) operation: Operation,
    pub(crate) bytes: u32,
    pub(crate) service: Nanos,
    /// Since when it waited.
    pub(crate) since: Nanos,
    /// Whether the device answers with an error.
    pub(crate) failed: bool,
    /// Whether the rest of the piece still waits.
    pub(crate) more: bool,
    /// How much earlier than it comes its answer is handed out.
    pub(crate) early: Nanos,
}

impl Sent {
    /// How it ends at the member it was sent to.
    pub(crate) fn outcome(&self, member: usize) -> GroupOutcome {
        if self.failed { GroupOutcome::DeviceError { device: member } } else { GroupOutcome::Ok }
    }
}
