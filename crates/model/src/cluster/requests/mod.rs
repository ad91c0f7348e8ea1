//! The requests in flight: operations of clients, their parts, and the I/Os on components.
//!
//! In reading order: requests of clients ([`front`]), their parts ([`part`], [`one_unit`]), the moment at which a part takes
//! effect ([`part_commit`]), and I/Os on components ([`subrequest`]). Copies are parts, too.
//!
//! What is not here: what is copied, when and why. [`crate::cluster::repair::Repair`] decides that.

mod front;

mod part;

mod part_commit;

mod one_unit;

mod subrequest;

use crate::cluster::geometry::RowRange;
use crate::cluster::ids::{HostId, VolumeId};
use crate::cluster::operation::{FrontOperation, Part, Phase, Purpose, SubState, Subrequest};
use crate::cluster::slab::Key;
use crate::cluster::slab::Slab;
use crate::cluster::storage::Storage;
use crate::disk_group::GroupRequestId;
use crate::request::Operation;

/// Everything in flight.
#[derive(Debug)]
pub(in crate::cluster) struct Requests {
    operations: Slab<FrontOperation>,
    parts: Slab<Part>,
    subs: Slab<Subrequest>,
}

impl Requests {
    /// Nothing in flight.
    pub(in crate::cluster) fn new() -> Requests {
        Requests { operations: Slab::new(), parts: Slab::new(), subs: Slab::new() }
    }

    /// Whether a request, a copy or a message is under way. What only waits for a timer does not count.
    pub(in crate::cluster) fn is_busy(&self) -> bool {
        debug_assert!(
            self.parts.len() > 0 || self.subs.len() == 0,
            "an I/O on a component belongs to a part"
        );
        self.operations.len() + self.parts.len() + self.subs.len() > 0
    }

    /// Adds a part that copies a range of a row: it reads first, and writes after [`Requests::begin_copy_write`].
    pub(in crate::cluster) fn begin_copy(
        &mut self,
        purpose: Purpose,
        volume: VolumeId,
        range: RowRange,
    ) -> Key {
        debug_assert!(range.length > 0, "a copy copies something");
        self.parts.insert(Part::new(purpose, volume, Operation::Write, range))
    }

    /// The copy has what it read and writes it from now on.
    pub(in crate::cluster) fn begin_copy_write(&mut self, copy: Key) {
        let Some(part) = self.parts.get_mut(copy) else { return };
        debug_assert!(part.phase == Phase::Reading, "a copy is written once");
        part.phase = Phase::Writing;
    }

    /// The copy is over, whether it succeeded or not.
    pub(in crate::cluster) fn end_copy(&mut self, copy: Key) {
        let ended = self.parts.remove(copy);
        debug_assert!(
            ended.is_some_and(|part| part.waiting == 0),
            "a copy ends after its last I/O"
        );
    }

    /// Hosts lost power: what their disk groups were doing is never answered.
    pub(in crate::cluster) fn lose_power(&mut self, hosts: &[HostId]) {
        self.subs.for_each_mut(|sub| {
            let inside = matches!(sub.state, SubState::InGroup | SubState::ParkedAnswer(_));
            if inside && hosts.contains(&sub.host) {
                sub.state = SubState::Vanished;
            }
        });
    }

    /// Gives a request to a disk group.
    #[inline]
    pub(in crate::cluster) fn submit_to_group(&mut self, storage: &mut Storage, sub: Key) {
        let Some(entry) = self.subs.get_mut(sub) else { return };
        entry.state = SubState::InGroup;
        let io = entry.group_io(GroupRequestId(sub.to_u64()));
        let (group, head_start) = (entry.group, entry.head_start);
        storage.inventory.submit(group, storage.clock.now(), io, head_start);
    }
}
