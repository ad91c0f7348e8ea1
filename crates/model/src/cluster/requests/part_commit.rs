//! Commit and failure of parts: the data commands of reads, writes and flushes, and torn writes after a crash.
//!
//! What is not here: the I/Os that precede a commit (`part`, `subrequest`).

use super::Requests;
use crate::cluster::data_command::{Content, DataCommand, Piece, PieceMember};
use crate::cluster::event::IoFailure;
use crate::cluster::geometry::{RowRange, SetKind};
use crate::cluster::ids::{ComponentId, VolumeId};
use crate::cluster::object::{Layout, Object};
use crate::cluster::objects::Objects;
use crate::cluster::operation::{Aim, Failed, FailedHow, Part, Phase, Purpose};
use crate::cluster::repair::Repair;
use crate::cluster::row_members::row_is_known;
use crate::cluster::row_plan::{SLOTS_MAX, parity_read, touched};
use crate::cluster::slab::Key;
use crate::cluster::storage::Storage;
use crate::cluster::volatile::Volatile;
use crate::request::Operation;
use crate::store::RequestId;
use rand::{Rng, RngExt};

/// The bytes of a request that one row of a layout takes.
struct RowWrite {
    layout: Layout,
    range: RowRange,
    piece: Piece,
    request: RequestId,
    /// Where the bytes begin in the request's buffer.
    buffer_offset: u32,
}

impl Objects {
    /// Whether everything that is volatile on components out of reach is also held by those within reach: only then
    /// flushing the latter makes it durable.
    fn unflushed_rows_are_known(&self, volume: VolumeId) -> bool {
        let Some(object) = self.object(volume, Layout::Present) else { return false };
        object.components().filter_map(|id| self.component(id)).all(|component| {
            let Some(volatile) = component.volatile.as_ref().filter(|_| !component.reachable)
            else {
                return true;
            };
            volatile.rows().filter(|row| component.is_current(*row)).all(|row| {
                let range = RowRange { set: component.set, row, start: 0, length: 0 };
                self.piece(volume, Layout::Present, &range, &Failed::NONE)
                    .is_some_and(|piece| row_is_known(&piece))
            })
        })
    }

    /// Whether all members with the row's content that a write touches are among those of the piece.
    fn has_all_touched(&self, piece: &Piece, volume: VolumeId, range: &RowRange) -> bool {
        let Some(object) = self.object(volume, Layout::Present) else { return false };
        let ranges = touched(piece.kind, piece.unit_bytes, range);
        let slots = object.set(range.set).iter().zip(&ranges);
        let mut members =
            slots.filter(|(_, range)| !range.is_empty()).flat_map(|(slot, _)| slot.components());
        members.all(|id| {
            let is_current = self.component(id).is_some_and(|it| it.is_current(piece.row));
            !is_current || piece.members().iter().any(|member| member.component == id)
        })
    }

    fn add_unreachable(&self, piece: &mut Piece, id: ComponentId) {
        let Some(component) = self.component(id) else { return };
        if piece.members().iter().any(|member| member.component == id) {
            return;
        }
        let content =
            if component.is_current(piece.row) { Content::Current } else { Content::Stale };
        piece.push(PieceMember { component: id, slot: component.slot, content });
    }
}

impl Requests {
    pub(in crate::cluster) fn commit_read(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        part: &Aim,
        operation: Key,
        buffer_offset: u32,
    ) {
        let Some(mut piece) =
            storage.piece_now(part.volume, Layout::Present, &part.range, &Failed::NONE)
        else {
            return;
        };
        // What was read from may have been lost since: then it is read again elsewhere.
        let parity = matches!(piece.kind, SetKind::Parity { .. });
        let known =
            if parity { row_is_readable(&piece, &part.range) } else { row_is_known(&piece) };
        if !known {
            return self.retry(storage, repair, key);
        }
        if let Some(entry) = self.parts.get(key) {
            piece.prefer(entry.source);
        }
        let Some(front) = self.operations.get(operation) else {
            return self.end_part(storage, repair, key, None);
        };
        let request = front.request;
        storage.outbox.command(DataCommand::Read { request, buffer_offset, piece });
        self.end_part(storage, repair, key, None);
    }

    pub(in crate::cluster) fn commit_write(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        part: &Aim,
        operation: Key,
        buffer_offset: u32,
    ) {
        if self.commit_one_unit_write(storage, repair, key, part, operation, buffer_offset) {
            return;
        }
        let failed = self.parts.get(key).map_or(Failed::NONE, |entry| entry.failed.clone());
        let Some(piece) = storage.piece_now(part.volume, Layout::Present, &part.range, &failed)
        else {
            return self.end_part(storage, repair, key, Some(IoFailure::VolumeRemoved));
        };
        if !row_is_known(&piece) {
            return self.retry(storage, repair, key);
        }
        let Some(front) = self.operations.get(operation) else {
            return self.end_part(storage, repair, key, None);
        };
        let request = front.request;
        let write =
            RowWrite { layout: Layout::Present, range: part.range, piece, request, buffer_offset };
        self.apply_write(storage, repair, part, &write);
        self.apply_to_next_layout(storage, repair, part, &failed, request, buffer_offset);
        self.end_part(storage, repair, key, None);
    }

    /// Those who miss the write become stale, and it reaches the data of the others.
    fn apply_write(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        part: &Aim,
        write: &RowWrite,
    ) {
        let RowWrite { layout, range, piece, request, buffer_offset } = *write;
        let discard = part.operation == Operation::Discard;
        let whole_row = range.length == piece.unit_bytes * u32::from(piece.kind.data_units());
        let Some(object) = storage.objects.object(part.volume, layout) else { return };
        let ranges = touched(piece.kind, piece.unit_bytes, &range);
        let mut members = [(ComponentId(u32::MAX), false); SLOTS_MAX * 2];
        let mut count = 0;
        for (components, range) in object.set(range.set).iter().zip(&ranges) {
            if range.is_empty() {
                continue;
            }
            for id in components.components() {
                let took = piece.members().iter().any(|member| member.component == id);
                members[count] = (id, took);
                count += 1;
            }
        }
        let members = &members[..count];
        // Space first: a copy that begins for those who missed it must see that there is something to copy.
        for (id, _) in members.iter().filter(|(_, took)| *took) {
            storage.row_changed(*id, range.row, discard && whole_row);
        }
        for (id, _) in members.iter().filter(|(_, took)| !took) {
            repair.mark_stale(storage, self, *id, range.row);
        }
        if matches!(piece.kind, SetKind::Parity { .. }) {
            // Members that miss it must be stored as stale before the others change: after a kill in between a row would
            // else be decoded from members of which some have the write and some have not. Members of a mirror need no
            // more than being brought in line, whichever is chosen.
            storage.emit_changed_state();
        }
        storage.outbox.command(if discard {
            DataCommand::Discard { request, piece }
        } else {
            DataCommand::Write { request, buffer_offset, piece }
        });
    }

    /// The same for the layout that a policy change is filling.
    fn apply_to_next_layout(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        part: &Aim,
        failed: &Failed,
        request: RequestId,
        buffer_offset: u32,
    ) {
        let Some(geometry) =
            storage.objects.object(part.volume, Layout::Next).map(|object| object.geometry)
        else {
            return;
        };
        let (offset, length) = storage.objects.volume_range(part.volume, &part.range);
        let mut at = buffer_offset;
        let mut complete = true;
        for range in geometry.split(offset, length) {
            let Some(piece) = storage.piece_now(part.volume, Layout::Next, &range, failed) else {
                return;
            };
            complete &= piece.members().len() == usize::from(geometry.kind.members());
            if complete {
                let write =
                    RowWrite { layout: Layout::Next, range, piece, request, buffer_offset: at };
                self.apply_write(storage, repair, part, &write);
            }
            at += range.length;
        }
        if !complete {
            repair.abandon_reshape(storage, part.volume);
        }
    }

    pub(in crate::cluster) fn commit_flush(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
    ) {
        let Some(part) = self.parts.get(key).cloned() else { return };
        if !part.failed.is_empty() {
            // Members that failed have been removed by now; the others are asked again.
            return self.retry(storage, repair, key);
        }
        let Some(object) = storage.objects.object(part.volume, Layout::Present) else {
            return self.end_part(storage, repair, key, Some(IoFailure::VolumeRemoved));
        };
        if !storage.objects.unflushed_rows_are_known(part.volume) {
            return self.end_part(storage, repair, key, Some(IoFailure::NoCurrentCopy));
        }
        // What the next layout holds must be as durable when it takes over.
        let next = storage.objects.object(part.volume, Layout::Next);
        let volatile: Vec<ComponentId> = object
            .components()
            .chain(next.into_iter().flat_map(Object::components))
            .filter(|id| {
                storage
                    .objects
                    .component(*id)
                    .is_some_and(|component| component.reachable && component.volatile.is_some())
            })
            .collect();
        self.mark_what_missed_the_flush(storage, repair, part.volume);
        for component in volatile {
            let state = storage.objects.component_mut(component);
            let volatile = state.and_then(|state| state.volatile.as_mut());
            for row in volatile.map_or(Vec::new(), Volatile::flush) {
                storage.release(component, row);
            }
            storage.outbox.command(DataCommand::Persist { component });
        }
        let lost = storage.objects.volume_mut(part.volume).is_some_and(|volume| {
            let unreported = volume.losses != volume.losses_reported;
            volume.losses_reported = volume.losses;
            unreported || part.losses != volume.losses
        });
        self.end_part(storage, repair, key, lost.then_some(IoFailure::UnflushedLost));
    }

    /// Rows that are volatile on components out of reach are durable only on the others from now on: if the former
    /// lose their power, what they hold must not be taken for what was flushed.
    fn mark_what_missed_the_flush(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        volume: VolumeId,
    ) {
        let Some(object) = storage.objects.object(volume, Layout::Present) else { return };
        let missed: Vec<(ComponentId, u64)> = object
            .components()
            .filter_map(|id| storage.objects.component(id))
            .filter(|component| !component.reachable)
            .flat_map(|component| {
                let rows = component.volatile.iter().flat_map(Volatile::rows);
                rows.filter(|row| component.is_current(*row)).map(|row| (component.id, row))
            })
            .collect();
        for (id, row) in missed {
            repair.mark_stale(storage, self, id, row);
        }
    }

    /// A part cannot be done. What a power cut left of a write stays.
    pub(in crate::cluster) fn fail_part(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        failure: IoFailure,
    ) {
        if let Some(part) = self.parts.get(key).cloned() {
            self.leave_torn_writes(storage, repair, &part);
        }
        self.end_part(storage, repair, key, Some(failure));
    }

    fn leave_torn_writes(&mut self, storage: &mut Storage, repair: &mut Repair, part: &Part) {
        let Purpose::Front { operation, buffer_offset } = part.purpose else { return };
        let planned_for = storage.objects.volume(part.volume).map(|volume| volume.layout);
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
            storage.piece_now(part.volume, Layout::Present, &part.range, &Failed::NONE)
        else {
            return;
        };
        for id in &crashed {
            storage.objects.add_unreachable(&mut piece, *id);
        }
        if let SetKind::Parity { .. } = piece.kind {
            // Data and parity are stored by one entry in the log: all or nothing. Nothing unless all have it: nobody was promised that
            // it happened, and it must not put anybody behind.
            let is_whole = storage.objects.has_all_touched(&piece, part.volume, &part.range);
            if is_whole && row_is_known(&piece) && storage.random.random_range(0..2) == 0 {
                let (layout, range) = (Layout::Present, part.range);
                let write = RowWrite { layout, range, piece, request, buffer_offset };
                self.apply_write(storage, repair, &part.aim(), &write);
            }
            return;
        }
        for component in crashed {
            let sectors = part.range.length / 512;
            let keep_bytes = match storage.random.random_range(0..3) {
                0 => continue,
                1 => part.range.length,
                _ => (storage.random.next_u32() % sectors.max(1)) * 512,
            };
            storage.outbox.command(DataCommand::WriteTorn {
                request,
                buffer_offset,
                piece,
                component,
                keep_bytes,
            });
            storage.occupy(component, part.range.row);
        }
        repair.mark_in_doubt(storage, self, part.volume, part.range.set, part.range.row);
    }
}

/// Whether a range of a row with parity can be read or decoded.
fn row_is_readable(piece: &Piece, range: &RowRange) -> bool {
    parity_read(piece.kind, piece.unit_bytes, range, piece.current_slots()).is_some()
}
