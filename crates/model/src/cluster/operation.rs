//! What is in flight: requests of volumes, their parts, and the I/Os on components.
//!
//! ```text
//! request (FrontOperation) -> one part per row -> phases (reading, writing) of I/Os on components (Subrequest)
//! ```
//!
//! Copies of resync and policy changes are parts without a request.

use super::event::IoFailure;
use super::geometry::RowRange;
use super::ids::{ComponentId, GroupId, HostId, VolumeId};
use super::slab::Key;
use crate::agenda::Position;
use crate::disk_group::{GroupIo, GroupOutcome, GroupRequestId};
use crate::request::Operation;
use crate::scheduler::IoClass;
use crate::store::RequestId;
use underlay_core::Nanos;

/// A request of a volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrontOperation {
    pub(super) request: RequestId,
    pub(super) volume: VolumeId,
    pub(super) operation: Operation,
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) must_be_durable: bool,
    pub(super) arrived: Nanos,
    /// How many losses of unflushed writes the volume had suffered by then.
    pub(super) losses: u32,
    /// Whether congestion has held it back already.
    pub(super) held_back: bool,
    pub(super) parts_left: u32,
    /// Longest time in devices and network of one of its parts.
    pub(super) service: Nanos,
    /// Time that it spent in the storage stack of its volume's owner, without its turn.
    pub(super) stack: Nanos,
    pub(super) failure: Option<IoFailure>,
    /// By how much it may still end early, and by how much it was early before it went on as a flush.
    pub(super) head_start: Nanos,
    pub(super) early: Nanos,
    /// When its parts so far would have ended without a head start.
    pub(super) ends: Nanos,
}

/// Whose part it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A request's.
    Front { operation: Key, buffer_offset: u32 },
    /// One slice of filling a component.
    Resync { component: ComponentId, group: GroupId, epoch: u32 },
    /// One slice of a policy change.
    Reshape { epoch: u32, unit: u64 },
}

/// What a part is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Reading,
    Writing,
    Flushing,
}

/// Most components that are remembered as failed for one part; all there can be.
const FAILED_MAX: usize = 12;

/// Components that did not do their part. Hardly ever any: parts are copied a lot, and carry a pointer to nothing.
#[derive(Clone, Debug)]
pub(super) struct Failed(Option<Box<FailedEntries>>);

#[derive(Clone, Debug)]
struct FailedEntries {
    entries: [(ComponentId, FailedHow); FAILED_MAX],
    count: u8,
}

/// How a component failed a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailedHow {
    /// It cannot be reached, or its device failed.
    Gone,
    /// Its host lost power while it was writing: what was stored is unknown.
    Crashed,
}

impl Failed {
    /// None.
    pub(super) const NONE: Failed = Failed(None);

    /// Remembers one.
    pub(super) fn push(&mut self, component: ComponentId, how: FailedHow) {
        if self.contains(component) {
            return;
        }
        let failed = self.0.get_or_insert_with(|| {
            let nobody = (ComponentId(u32::MAX), FailedHow::Gone);
            Box::new(FailedEntries { entries: [nobody; FAILED_MAX], count: 0 })
        });
        if usize::from(failed.count) < FAILED_MAX {
            failed.entries[usize::from(failed.count)] = (component, how);
            failed.count += 1;
        }
    }

    /// Whether it is among them.
    pub(super) fn contains(&self, component: ComponentId) -> bool {
        self.0.is_some() && self.iter().any(|(failed, _)| failed == component)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ComponentId, FailedHow)> + '_ {
        let entries = self.0.as_ref().map(|failed| &failed.entries[..usize::from(failed.count)]);
        entries.into_iter().flatten().copied()
    }
}

/// A part of a request in one row, or a slice of a copy.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) purpose: Purpose,
    pub(super) volume: VolumeId,
    pub(super) operation: Operation,
    /// For slices of a resync, `start` counts within the unit.
    pub(super) range: RowRange,
    /// Number of the layout that `range` belongs to: a policy change may end meanwhile.
    pub(super) layout: u32,
    pub(super) phase: Phase,
    /// For flushes: how many losses the volume had suffered when it began.
    pub(super) losses: u32,
    /// I/Os in flight.
    pub(super) waiting: u32,
    /// Attempts so far, for parts that are tried again after a failure.
    pub(super) attempts: u8,
    /// The component a mirror read was sent to.
    pub(super) source: ComponentId,
    /// Components that failed the present phase.
    pub(super) failed: Failed,
    /// Components that failed earlier attempts of a read.
    pub(super) avoid: Failed,
    /// Service in earlier phases, and the longest one in the present phase.
    pub(super) service: Nanos,
    pub(super) phase_service: Nanos,
    /// By how much it may still end early, and by how much its earlier phases were early.
    pub(super) head_start: Nanos,
    pub(super) early: Nanos,
    /// When the I/Os so far of the present phase would have ended without a head start.
    pub(super) phase_ends: Nanos,
    /// The last of the answers that are on their way and not waited for one by one.
    pub(super) last_answer: Position,
}

/// What a part is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    pub(super) volume: VolumeId,
    pub(super) operation: Operation,
    pub(super) range: RowRange,
}

impl Part {
    /// What it is to do.
    pub(super) fn aim(&self) -> Aim {
        Aim { volume: self.volume, operation: self.operation, range: self.range }
    }

    /// A part that has not begun.
    pub(super) fn new(
        purpose: Purpose,
        volume: VolumeId,
        operation: Operation,
        range: RowRange,
    ) -> Part {
        Part {
            purpose,
            volume,
            operation,
            range,
            layout: 0,
            phase: Phase::Reading,
            losses: 0,
            waiting: 0,
            attempts: 0,
            source: ComponentId(u32::MAX),
            failed: Failed::NONE,
            avoid: Failed::NONE,
            service: Nanos::ZERO,
            phase_service: Nanos::ZERO,
            head_start: Nanos::ZERO,
            early: Nanos::ZERO,
            phase_ends: Nanos::ZERO,
            last_answer: Position::default(),
        }
    }
}

/// Where an I/O on a component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubState {
    /// On the way to the host.
    Travelling,
    /// Reached a host that does not answer.
    Parked,
    /// In the disk group.
    InGroup,
    /// Was in the disk group when its host lost power.
    Vanished,
    /// Done, but the host does not answer.
    ParkedAnswer(GroupOutcome),
    /// Its answer is on the way back.
    Returning(GroupOutcome),
}

/// One I/O on one component.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subrequest {
    pub(super) part: Key,
    pub(super) component: ComponentId,
    pub(super) group: GroupId,
    pub(super) disk: u8,
    pub(super) host: HostId,
    /// Where the answer goes.
    pub(super) client: HostId,
    pub(super) class: IoClass,
    pub(super) operation: Operation,
    /// In the device's address space.
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) state: SubState,
    /// By how much it may still be early, and by how much it is.
    pub(super) head_start: Nanos,
    pub(super) early: Nanos,
}

impl Subrequest {
    /// Takes as much of a way without contention as its head start allows, and tells how much.
    pub(super) fn use_head_start(&mut self, at_most: Nanos) -> Nanos {
        let early = self.head_start.min(at_most);
        self.be_early(early);
        early
    }

    /// Part of its head start is used.
    pub(super) fn be_early(&mut self, by: Nanos) {
        self.head_start = self.head_start.saturating_sub(by);
        self.early += by;
    }

    /// As the disk group wants it.
    pub(super) fn group_io(&self, id: GroupRequestId) -> GroupIo {
        GroupIo {
            id,
            class: self.class,
            operation: self.operation,
            disk: usize::from(self.disk),
            offset_bytes: self.offset,
            length_bytes: self.length,
        }
    }
}
