//! The requests in flight: operations of clients, their parts, and the I/Os on components that these consist of.
//!
//! The steps of a request are in the modules `front`, `part`, `one_unit`, `part_commit` and `subrequest`. Copies are parts,
//! too; what is copied and why, [`super::repair::Repair`] decides.

use super::operation::SubState;
use super::operation::{FrontOperation, Part, Subrequest};
use super::slab::Key;
use super::slab::Slab;
use super::storage::Storage;
use crate::disk_group::GroupRequestId;

/// Everything in flight.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) operations: Slab<FrontOperation>,
    pub(super) parts: Slab<Part>,
    pub(super) subs: Slab<Subrequest>,
}

impl Requests {
    /// Nothing in flight.
    pub(super) fn new() -> Requests {
        Requests { operations: Slab::new(), parts: Slab::new(), subs: Slab::new() }
    }

    /// Whether a request, a copy or a message is under way. What only waits for a timer does not count.
    pub(super) fn is_busy(&self) -> bool {
        self.operations.len() + self.parts.len() + self.subs.len() > 0
    }

    /// Gives a request to a disk group.
    pub(super) fn submit_to_group(&mut self, storage: &mut Storage, sub: Key) {
        let Some(entry) = self.subs.get_mut(sub) else { return };
        entry.state = SubState::InGroup;
        let io = entry.group_io(GroupRequestId(sub.to_u64()));
        let (index, head_start) = (entry.group.0 as usize, entry.head_start);
        storage.inventory.groups[index].engine.submit_early(storage.clock.now(), io, head_start);
        storage.inventory.note_wakeup(index);
    }
}
