//! A write that waits for room in the buffer.
//!
//! What is not here: whose turn it is, and when there is room (`write_path`).

use crate::scheduler::Waiting;

/// A write that waits for room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admission {
    pub(super) op: u32,
    pub(super) bytes: u64,
    pub(super) sequence: u64,
}

impl Admission {
    pub(super) fn op(&self) -> u32 {
        self.op
    }
}

impl Waiting for Admission {
    fn quantum_bytes(&self) -> u64 {
        self.bytes
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }
}
