//! Parts of requests: what they read and write, and the moment they take effect.
//!
//! A write takes effect at one moment, when the last component has it: the data plane then stores it on all members at once.
//! Components that could not take it become stale there. Reads take effect when their data has arrived. A part that lost
//! a component on the way is tried again as long as the volume can serve; it never waits longer than the cluster needs
//! to notice a failure.

use super::cluster::Cluster;
use super::data_command::{DataCommand, Piece};
use super::event::IoFailure;
use super::geometry::{RowRange, SetKind};
use super::ids::{ComponentId, GroupId, HostId, VolumeId};
use super::object::Layout;
use super::operation::{Failed, FailedHow, Part, Phase, Purpose};
use super::policy::Checksum;
use super::row_plan::{
    SLOTS_MAX, UnitRange, parity_read, parity_write_reads, row_is_known, touched, touches,
};
use super::slab::Key;
use super::subrequest::Wanted;
use crate::request::Operation;
use crate::scheduler::IoClass;
use rand::{Rng, RngExt};
use underlay_core::Nanos;

/// How often a part is tried before the volume answers an error.
const ATTEMPTS_MAX: u8 = 16;

impl Cluster {
    /// Starts a part of a read, write or discard.
    pub(super) fn begin_part(&mut self, key: Key) {
        let Some(part) = self.parts.get(key).copied() else { return };
        let Some(object) = self.object(part.volume, Layout::Present) else {
            return self.end_part(key, Some(IoFailure::VolumeRemoved));
        };
        if object.side.is_none() {
            return self.fail_part(key, IoFailure::NoQuorum);
        }
        if self.replan(key) {
            return;
        }
        match part.operation {
            Operation::Read => self.begin_read(key, &part),
            _ => self.begin_write(key, &part),
        }
    }

    fn begin_read(&mut self, key: Key, part: &Part) {
        let mut avoid = part.avoid;
        for (component, how) in part.failed.iter() {
            avoid.push(component, how);
        }
        // Another copy if there is one, else the same again: a device may fail one read and not the next.
        let reads = [avoid, Failed::NONE].iter().find_map(|without| {
            let piece = self.piece(part.volume, Layout::Present, &part.range, without)?;
            self.reads_of(&piece, &part.range, IoClass::Vm)
        });
        let Some(reads) = reads else {
            return self.fail_part(key, IoFailure::NoCurrentCopy);
        };
        if let Some(entry) = self.parts.get_mut(key) {
            entry.avoid = avoid;
            entry.failed = Failed::NONE;
            entry.phase = Phase::Reading;
            entry.source = reads[0].component;
        }
        self.issue_all(key, part, &reads);
    }

    /// The I/Os that read a range of a row; none if too few members are current.
    pub(super) fn reads_of(
        &self,
        piece: &Piece,
        range: &RowRange,
        class: IoClass,
    ) -> Option<Wants> {
        let mut wants = Wants::new();
        let base = range.row * u64::from(piece.unit_bytes);
        let read = |component, range: UnitRange| Wanted {
            component,
            operation: Operation::Read,
            offset: base + u64::from(range.from),
            length: range.length(),
            class,
        };
        if let SetKind::Mirror { copies } = piece.kind {
            // An address always goes to the same replica, so that each holds its share in its caches.
            let first = (range.row % u64::from(copies)) as u8;
            let component = (0..copies).find_map(|step| piece.current((first + step) % copies))?;
            let all = UnitRange { from: range.start, to: range.start + range.length };
            wants.push(read(component, all));
            return Some(wants);
        }
        let current = |slot| piece.current(slot).is_some();
        let ranges = parity_read(piece.kind, piece.unit_bytes, range, current)?;
        push_ranges(&mut wants, piece, &ranges, read);
        Some(wants)
    }

    fn begin_write(&mut self, key: Key, part: &Part) {
        let Some(piece) = self.piece(part.volume, Layout::Present, &part.range, &Failed::NONE)
        else {
            return;
        };
        if !row_is_known(&piece) {
            return self.fail_part(key, IoFailure::NoCurrentCopy);
        }
        if part.operation == Operation::Write && !self.allocate(part, &piece) {
            return self.fail_part(key, IoFailure::NoSpace);
        }
        if let Some(entry) = self.parts.get_mut(key) {
            entry.failed = Failed::NONE;
        }
        let reads = self.reads_before_write(&piece, part);
        if reads.is_empty() {
            self.issue_writes(key, part);
        } else {
            if let Some(entry) = self.parts.get_mut(key) {
                entry.phase = Phase::Reading;
            }
            self.issue_all(key, part, &reads);
        }
    }

    /// What a write of a row with parity must read first.
    fn reads_before_write(&self, piece: &Piece, part: &Part) -> Wants {
        let mut wants = Wants::new();
        if matches!(piece.kind, SetKind::Mirror { .. }) {
            return wants;
        }
        let current = |slot| piece.current(slot).is_some();
        let base = part.range.row * u64::from(piece.unit_bytes);
        let Some(ranges) = parity_write_reads(piece.kind, piece.unit_bytes, &part.range, current)
        else {
            return wants;
        };
        push_ranges(&mut wants, piece, &ranges, |component, range| Wanted {
            component,
            operation: Operation::Read,
            offset: base + u64::from(range.from),
            length: range.length(),
            class: IoClass::Vm,
        });
        wants
    }

    /// Sends the writes of a part to all reachable members of both layouts.
    fn issue_writes(&mut self, key: Key, part: &Part) {
        if let Some(entry) = self.parts.get_mut(key) {
            entry.phase = Phase::Writing;
        }
        let (offset, length) = self.volume_range(part.volume, &part.range);
        let mut wants = self.writes_of(part.volume, Layout::Present, &part.range, part.operation);
        if let Some(next) = self.object(part.volume, Layout::Next) {
            for range in next.geometry.split(offset, length) {
                let more = self.writes_of(part.volume, Layout::Next, &range, part.operation);
                wants.extend(&more);
            }
        }
        self.issue_all(key, part, &wants);
    }

    /// Where in the volume a range of the present layout lies.
    fn volume_range(&self, volume: VolumeId, range: &RowRange) -> (u64, u32) {
        let base = self
            .object(volume, Layout::Present)
            .map_or(0, |object| object.geometry.row_offset(range.set, range.row));
        (base + u64::from(range.start), range.length)
    }

    /// The I/Os that write a range of a row on all reachable members.
    pub(super) fn writes_of(
        &self,
        volume: VolumeId,
        layout: Layout,
        range: &RowRange,
        operation: Operation,
    ) -> Wants {
        let mut wants = Wants::new();
        let Some(piece) = self.piece(volume, layout, range, &Failed::NONE) else { return wants };
        let ranges = touched(piece.kind, piece.unit_bytes, range);
        let base = range.row * u64::from(piece.unit_bytes);
        for member in piece.members() {
            let range = ranges[usize::from(member.slot)];
            if !range.is_empty() {
                wants.push(Wanted {
                    component: member.component,
                    operation,
                    offset: base + u64::from(range.from),
                    length: range.length(),
                    class: IoClass::Vm,
                });
            }
        }
        wants
    }

    /// Sends I/Os; a part without any goes on at once.
    fn issue_all(&mut self, key: Key, part: &Part, wants: &Wants) {
        let Some(volume) = self.volume(part.volume) else { return };
        let owner = volume.owner;
        let lead = if part.attempts == 0 && part.service == Nanos::ZERO {
            let summed = volume.object.checksum == Checksum::On;
            let blocks = if summed { u64::from(part.range.length / 4096) } else { 0 };
            Nanos(self.settings.checksum_overhead_per_4k.0 * blocks) + self.settings.owner_overhead
        } else {
            Nanos::ZERO
        };
        self.issue_from(key, owner, lead, wants);
    }

    /// Sends I/Os from a host; a part without any goes on at once.
    pub(super) fn issue_from(&mut self, key: Key, client: HostId, lead: Nanos, wants: &Wants) {
        // Held up by one, so that the phase cannot end before all are sent.
        if let Some(part) = self.parts.get_mut(key) {
            part.waiting += 1;
            part.phase_service = lead;
        }
        for wanted in wants.iter() {
            self.issue(key, client, lead, wanted);
        }
        let Some(part) = self.parts.get_mut(key) else { return };
        part.waiting -= 1;
        if part.waiting == 0 {
            self.part_phase_ended(key);
        }
    }

    /// Starts a flush of all disk groups that hold components of the volume.
    pub(super) fn begin_flush(&mut self, key: Key) {
        let Some(part) = self.parts.get(key).copied() else { return };
        let Some(object) = self.object(part.volume, Layout::Present) else {
            return self.end_part(key, Some(IoFailure::VolumeRemoved));
        };
        if object.side.is_none() {
            return self.end_part(key, Some(IoFailure::NoQuorum));
        }
        if !self.all_sets_reachable(part.volume) {
            return self.end_part(key, Some(IoFailure::NoCurrentCopy));
        }
        let mut groups: Vec<GroupId> = Vec::new();
        let mut wants = Wants::new();
        for id in object.components() {
            let Some(component) = self.component(id) else { continue };
            if component.reachable && !groups.contains(&component.group) {
                groups.push(component.group);
                wants.push(Wanted {
                    component: id,
                    operation: Operation::Flush,
                    offset: 0,
                    length: 0,
                    class: IoClass::Vm,
                });
            }
        }
        if let Some(entry) = self.parts.get_mut(key) {
            entry.phase = Phase::Flushing;
            entry.failed = Failed::NONE;
        }
        self.issue_all(key, &part, &wants);
    }

    /// All I/Os of a phase are done.
    pub(super) fn part_phase_ended(&mut self, key: Key) {
        let Some(part) = self.parts.get(key).copied() else { return };
        if part.phase != Phase::Flushing && self.replan(key) {
            return;
        }
        match (part.purpose, part.phase) {
            (Purpose::Front { .. }, Phase::Flushing) => self.commit_flush(key, &part),
            (Purpose::Front { .. }, Phase::Reading) if !part.failed.is_empty() => self.retry(key),
            (Purpose::Front { operation, buffer_offset }, Phase::Reading) => match part.operation {
                Operation::Read => self.commit_read(key, &part, operation, buffer_offset),
                _ => self.issue_writes(key, &part),
            },
            (Purpose::Front { operation, buffer_offset }, Phase::Writing) => {
                self.commit_write(key, &part, operation, buffer_offset);
            }
            (Purpose::Resync { .. }, _) => self.resync_phase_ended(key, &part),
            (Purpose::Reshape { .. }, _) => self.reshape_phase_ended(key, &part),
        }
    }

    fn retry(&mut self, key: Key) {
        let Some(part) = self.parts.get_mut(key) else { return };
        part.attempts += 1;
        if part.attempts >= ATTEMPTS_MAX {
            return self.fail_part(key, IoFailure::NoCurrentCopy);
        }
        match part.operation {
            Operation::Flush => self.begin_flush(key),
            _ => self.begin_part(key),
        }
    }

    fn commit_read(&mut self, key: Key, part: &Part, operation: Key, buffer_offset: u32) {
        let Some(mut piece) =
            self.piece_now(part.volume, Layout::Present, &part.range, &Failed::NONE)
        else {
            return;
        };
        // What was read from may have been lost since: then it is read again elsewhere.
        let parity = matches!(piece.kind, SetKind::Parity { .. });
        let known =
            if parity { row_is_readable(&piece, &part.range) } else { row_is_known(&piece) };
        if !known {
            return self.retry(key);
        }
        piece.prefer(part.source);
        let Some(front) = self.operations.get(operation) else {
            return self.end_part(key, None);
        };
        let request = front.request;
        self.command(DataCommand::Read { request, buffer_offset, piece });
        self.end_part(key, None);
    }

    fn commit_write(&mut self, key: Key, part: &Part, operation: Key, buffer_offset: u32) {
        let Some(piece) = self.piece_now(part.volume, Layout::Present, &part.range, &part.failed)
        else {
            return self.end_part(key, Some(IoFailure::VolumeRemoved));
        };
        if !row_is_known(&piece) {
            return self.retry(key);
        }
        let Some(front) = self.operations.get(operation) else {
            return self.end_part(key, None);
        };
        let request = front.request;
        self.apply_write(part, Layout::Present, &part.range, &piece, request, buffer_offset);
        self.apply_to_next_layout(part, request, buffer_offset);
        self.end_part(key, None);
    }

    /// The write reaches the data, and those who missed it become stale.
    fn apply_write(
        &mut self,
        part: &Part,
        layout: Layout,
        range: &RowRange,
        piece: &Piece,
        request: crate::store::RequestId,
        buffer_offset: u32,
    ) {
        let piece = *piece;
        let discard = part.operation == Operation::Discard;
        if discard {
            self.command(DataCommand::Discard { piece });
        } else {
            self.command(DataCommand::Write { request, buffer_offset, piece });
        }
        let whole_row = range.length == piece.unit_bytes * u32::from(piece.kind.data_units());
        let Some(object) = self.object(part.volume, layout) else { return };
        let mut members = [ComponentId(u32::MAX); SLOTS_MAX * 2];
        let mut slots = [0u8; SLOTS_MAX * 2];
        let mut count = 0;
        for (slot, components) in object.set(range.set).iter().enumerate() {
            for id in components.components() {
                (members[count], slots[count]) = (id, slot as u8);
                count += 1;
            }
        }
        for (id, slot) in members[..count].iter().zip(&slots[..count]) {
            if !touches(piece.kind, piece.unit_bytes, range, *slot) {
                continue;
            }
            let took = piece.members().iter().any(|member| member.component == *id);
            if !took {
                self.mark_stale(*id, range.row);
            } else if discard && whole_row {
                self.release(*id, range.row);
            } else {
                self.occupy(*id, range.row);
                if let Some(component) = self.component_mut(*id)
                    && let Some(unflushed) = &mut component.unflushed
                {
                    unflushed.insert(range.row);
                }
            }
        }
    }

    /// The same for the layout that a policy change is filling.
    fn apply_to_next_layout(
        &mut self,
        part: &Part,
        request: crate::store::RequestId,
        buffer_offset: u32,
    ) {
        let Some(geometry) = self.object(part.volume, Layout::Next).map(|object| object.geometry)
        else {
            return;
        };
        let (offset, length) = self.volume_range(part.volume, &part.range);
        let mut at = buffer_offset;
        let mut complete = true;
        for range in geometry.split(offset, length) {
            let Some(piece) = self.piece_now(part.volume, Layout::Next, &range, &part.failed)
            else {
                return;
            };
            complete &= piece.members().len() == usize::from(geometry.kind.members());
            if complete {
                self.apply_write(part, Layout::Next, &range, &piece, request, at);
            }
            at += range.length;
        }
        if !complete {
            self.abandon_reshape(part.volume);
        }
    }

    fn commit_flush(&mut self, key: Key, part: &Part) {
        if !part.failed.is_empty() {
            // Whoever failed is gone by now; the others are asked again.
            return self.retry(key);
        }
        let Some(object) = self.object(part.volume, Layout::Present) else {
            return self.end_part(key, Some(IoFailure::VolumeRemoved));
        };
        if !self.unflushed_rows_are_known(part.volume) {
            return self.end_part(key, Some(IoFailure::NoCurrentCopy));
        }
        let volatile: Vec<ComponentId> = object
            .components()
            .filter(|id| {
                self.component(*id)
                    .is_some_and(|component| component.reachable && component.unflushed.is_some())
            })
            .collect();
        for component in volatile {
            if let Some(state) = self.component_mut(component)
                && let Some(unflushed) = &mut state.unflushed
            {
                unflushed.clear();
            }
            self.command(DataCommand::Persist { component });
        }
        let lost = self.volume_mut(part.volume).is_some_and(|volume| {
            let unreported = volume.losses != volume.losses_reported;
            volume.losses_reported = volume.losses;
            unreported || part.losses != volume.losses
        });
        self.end_part(key, lost.then_some(IoFailure::UnflushedLost));
    }

    /// Whether everything that is volatile on components out of reach is also held by those within reach: only then
    /// flushing the latter makes it durable.
    fn unflushed_rows_are_known(&self, volume: VolumeId) -> bool {
        let Some(object) = self.object(volume, Layout::Present) else { return false };
        object.components().filter_map(|id| self.component(id)).all(|component| {
            let Some(unflushed) = component.unflushed.as_ref().filter(|_| !component.reachable)
            else {
                return true;
            };
            unflushed.iter().filter(|row| component.is_current(*row)).all(|row| {
                let range = RowRange { set: component.set, row, start: 0, length: 0 };
                self.piece(volume, Layout::Present, &range, &Failed::NONE)
                    .is_some_and(|piece| row_is_known(&piece))
            })
        })
    }

    /// A part cannot be done. What a power cut left of a write stays.
    fn fail_part(&mut self, key: Key, failure: IoFailure) {
        if let Some(part) = self.parts.get(key).copied() {
            self.leave_torn_writes(&part);
        }
        self.end_part(key, Some(failure));
    }

    fn leave_torn_writes(&mut self, part: &Part) {
        let Purpose::Front { operation, buffer_offset } = part.purpose else { return };
        let planned_for = self.volume(part.volume).map(|volume| volume.layout);
        if part.operation != Operation::Write
            || part.phase != Phase::Writing
            || planned_for != Some(part.layout)
        {
            return;
        }
        let Some(request) = self.operations.get(operation).map(|front| front.request) else {
            return;
        };
        let crashed: Vec<ComponentId> = part
            .failed
            .iter()
            .filter(|(_, how)| *how == FailedHow::Crashed)
            .map(|(id, _)| id)
            .collect();
        if crashed.is_empty() {
            return;
        }
        let Some(mut piece) =
            self.piece_now(part.volume, Layout::Present, &part.range, &Failed::NONE)
        else {
            return;
        };
        for id in &crashed {
            self.add_unreachable(&mut piece, *id);
        }
        if let SetKind::Parity { .. } = piece.kind {
            // Data and parity are stored by one entry in the log: all or nothing.
            if row_is_known(&piece) && self.random.random_range(0..2) == 0 {
                self.apply_write(
                    part,
                    Layout::Present,
                    &part.range,
                    &piece,
                    request,
                    buffer_offset,
                );
            }
            return;
        }
        for component in crashed {
            let sectors = part.range.length / 512;
            let keep_bytes = match self.random.random_range(0..3) {
                0 => continue,
                1 => part.range.length,
                _ => (self.random.next_u32() % sectors.max(1)) * 512,
            };
            self.command(DataCommand::WriteTorn {
                request,
                buffer_offset,
                piece,
                component,
                keep_bytes,
            });
            self.occupy(component, part.range.row);
        }
        self.mark_in_doubt(part.volume, part.range.set, part.range.row);
    }

    fn add_unreachable(&self, piece: &mut Piece, id: ComponentId) {
        use super::data_command::{Content, PieceMember};
        let Some(component) = self.component(id) else { return };
        if piece.members().iter().any(|member| member.component == id) {
            return;
        }
        let content =
            if component.is_current(piece.row) { Content::Current } else { Content::Stale };
        piece.push(PieceMember { component: id, slot: component.slot, content });
    }

    fn end_part(&mut self, key: Key, failure: Option<IoFailure>) {
        let Some(part) = self.parts.remove(key) else { return };
        if let Purpose::Front { operation, .. } = part.purpose {
            self.part_of_operation_ended(operation, part.service, failure);
        }
    }
}

/// Whether a range of a row with parity can be read or decoded.
fn row_is_readable(piece: &Piece, range: &RowRange) -> bool {
    let current = |slot| piece.current(slot).is_some();
    parity_read(piece.kind, piece.unit_bytes, range, current).is_some()
}

fn push_ranges(
    wants: &mut Wants,
    piece: &Piece,
    ranges: &[UnitRange; SLOTS_MAX],
    wanted: impl Fn(ComponentId, UnitRange) -> Wanted,
) {
    for slot in 0..piece.kind.members() {
        let range = ranges[usize::from(slot)];
        if let (false, Some(component)) = (range.is_empty(), piece.current(slot)) {
            wants.push(wanted(component, range));
        }
    }
}

/// A short list of I/Os; longer ones (flushes of wide volumes, policy changes) spill to the heap.
#[derive(Clone, Debug)]
pub(super) struct Wants {
    few: [Option<Wanted>; 4],
    more: Vec<Wanted>,
}

impl Wants {
    /// None.
    pub(super) fn new() -> Wants {
        Wants { few: [None; 4], more: Vec::new() }
    }

    /// Adds one.
    pub(super) fn push(&mut self, wanted: Wanted) {
        match self.few.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(wanted),
            None => self.more.push(wanted),
        }
    }

    /// Adds all of another list.
    pub(super) fn extend(&mut self, other: &Wants) {
        for wanted in other.iter() {
            self.push(*wanted);
        }
    }

    /// The same on behalf of another class.
    pub(super) fn of_class(mut self, class: IoClass) -> Wants {
        for wanted in self.few.iter_mut().flatten().chain(&mut self.more) {
            wanted.class = class;
        }
        self
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.few[0].is_none()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Wanted> {
        self.few.iter().flatten().chain(&self.more)
    }
}

impl std::ops::Index<usize> for Wants {
    type Output = Wanted;
    fn index(&self, index: usize) -> &Wanted {
        self.iter().nth(index).expect("the caller knows that there is one")
    }
}
