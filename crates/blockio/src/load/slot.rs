//! A place in a worker's queue, and what is going on there.

use super::outcome::Operation;
use underlay_workload::block::{Access, BlockRequest};

/// A place in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// Index of the thread, among the worker's, that it belongs to.
    pub(super) thread: u32,
    /// What it does, or did last.
    pub(super) request: BlockRequest,
    /// What is in flight.
    pub(super) operation: Operation,
    /// When it was meant to start, ns since the load began.
    pub(super) intended: u64,
    /// When it did.
    pub(super) started: u64,
    /// Number of the write, or of the flush, when verifying.
    pub(super) mark: u64,
}

impl Slot {
    pub(super) fn new(thread: u32) -> Slot {
        let request =
            BlockRequest { stream: 0, access: Access::Read, offset_bytes: 0, length_bytes: 0 };
        Slot { thread, request, operation: Operation::Read, intended: 0, started: 0, mark: 0 }
    }
}
