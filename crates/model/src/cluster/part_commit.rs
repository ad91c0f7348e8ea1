//! The moment at which a part of a request takes effect, or turns out not to.

use super::cluster::Cluster;
use super::data_command::{Content, DataCommand, Piece, PieceMember};
use super::event::IoFailure;
use super::geometry::{RowRange, SetKind};
use super::ids::{ComponentId, VolumeId};
use super::object::{Layout, Object};
use super::operation::{Aim, Failed, FailedHow, Part, Phase, Purpose};
use super::row_plan::{SLOTS_MAX, parity_read, row_is_known, touched};
use super::slab::Key;
use super::volatile::Volatile;
use crate::request::Operation;
use crate::store::RequestId;
use rand::{Rng, RngExt};

impl Cluster {
    pub(super) fn commit_read(&mut self, key: Key, part: &Aim, operation: Key, buffer_offset: u32) {
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
        if let Some(entry) = self.parts.get(key) {
            piece.prefer(entry.source);
        }
        let Some(front) = self.operations.get(operation) else {
            return self.end_part(key, None);
        };
        let request = front.request;
        self.outbox.command(DataCommand::Read { request, buffer_offset, piece });
        self.end_part(key, None);
    }

    pub(super) fn commit_write(
        &mut self,
        key: Key,
        part: &Aim,
        operation: Key,
        buffer_offset: u32,
    ) {
        if self.commit_one_unit_write(key, part, operation, buffer_offset) {
            return;
        }
        let failed = self.parts.get(key).map_or(Failed::NONE, |entry| entry.failed.clone());
        let Some(piece) = self.piece_now(part.volume, Layout::Present, &part.range, &failed) else {
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
        self.apply_to_next_layout(part, &failed, request, buffer_offset);
        self.end_part(key, None);
    }

    /// Those who miss the write become stale, and it reaches the data of the others.
    fn apply_write(
        &mut self,
        part: &Aim,
        layout: Layout,
        range: &RowRange,
        piece: &Piece,
        request: RequestId,
        buffer_offset: u32,
    ) {
        let piece = *piece;
        let discard = part.operation == Operation::Discard;
        let whole_row = range.length == piece.unit_bytes * u32::from(piece.kind.data_units());
        let Some(object) = self.object(part.volume, layout) else { return };
        let ranges = touched(piece.kind, piece.unit_bytes, range);
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
            self.row_changed(*id, range.row, discard && whole_row);
        }
        for (id, _) in members.iter().filter(|(_, took)| !took) {
            self.mark_stale(*id, range.row);
        }
        if matches!(piece.kind, SetKind::Parity { .. }) {
            // Whoever misses it must be known as stale in what is stored before the others change: after a kill in between
            // a row would else be decoded from members of which some have the write and some have not. Members
            // of a mirror need no more than being brought in line, whichever is chosen.
            self.tell_of_change();
        }
        self.outbox.command(if discard {
            DataCommand::Discard { piece }
        } else {
            DataCommand::Write { request, buffer_offset, piece }
        });
    }

    /// The same for the layout that a policy change is filling.
    fn apply_to_next_layout(
        &mut self,
        part: &Aim,
        failed: &Failed,
        request: RequestId,
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
            let Some(piece) = self.piece_now(part.volume, Layout::Next, &range, failed) else {
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

    pub(super) fn commit_flush(&mut self, key: Key) {
        let Some(part) = self.parts.get(key).cloned() else { return };
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
        // What the next layout holds must be as durable when it takes over.
        let next = self.object(part.volume, Layout::Next);
        let volatile: Vec<ComponentId> = object
            .components()
            .chain(next.into_iter().flat_map(Object::components))
            .filter(|id| {
                self.component(*id)
                    .is_some_and(|component| component.reachable && component.volatile.is_some())
            })
            .collect();
        self.mark_what_missed_the_flush(part.volume);
        for component in volatile {
            let state = self.component_mut(component);
            let volatile = state.and_then(|state| state.volatile.as_mut());
            for row in volatile.map_or(Vec::new(), Volatile::flush) {
                self.release(component, row);
            }
            self.outbox.command(DataCommand::Persist { component });
        }
        let lost = self.volume_mut(part.volume).is_some_and(|volume| {
            let unreported = volume.losses != volume.losses_reported;
            volume.losses_reported = volume.losses;
            unreported || part.losses != volume.losses
        });
        self.end_part(key, lost.then_some(IoFailure::UnflushedLost));
    }

    /// Rows that are volatile on components out of reach are durable only on the others from now on: if the former
    /// lose their power, what they hold must not be taken for what was flushed.
    fn mark_what_missed_the_flush(&mut self, volume: VolumeId) {
        let Some(object) = self.object(volume, Layout::Present) else { return };
        let missed: Vec<(ComponentId, u64)> = object
            .components()
            .filter_map(|id| self.component(id))
            .filter(|component| !component.reachable)
            .flat_map(|component| {
                let rows = component.volatile.iter().flat_map(Volatile::rows);
                rows.filter(|row| component.is_current(*row)).map(|row| (component.id, row))
            })
            .collect();
        for (id, row) in missed {
            self.mark_stale(id, row);
        }
    }

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

    /// A part cannot be done. What a power cut left of a write stays.
    pub(super) fn fail_part(&mut self, key: Key, failure: IoFailure) {
        if let Some(part) = self.parts.get(key).cloned() {
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
                    &part.aim(),
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
            self.outbox.command(DataCommand::WriteTorn {
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
        let Some(component) = self.component(id) else { return };
        if piece.members().iter().any(|member| member.component == id) {
            return;
        }
        let content =
            if component.is_current(piece.row) { Content::Current } else { Content::Stale };
        piece.push(PieceMember { component: id, slot: component.slot, content });
    }
}

/// Whether a range of a row with parity can be read or decoded.
fn row_is_readable(piece: &Piece, range: &RowRange) -> bool {
    parity_read(piece.kind, piece.unit_bytes, range, piece.current_slots()).is_some()
}
