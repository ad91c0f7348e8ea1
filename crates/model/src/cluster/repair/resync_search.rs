//! The next slice to copy into a component, and the members it is read from.
//!
//! What is not here: when a slice is copied (`resync`).

use crate::cluster::data_command::{Content, DataCommand, Piece};
use crate::cluster::geometry::{RowRange, SetKind};
use crate::cluster::ids::ComponentId;
use crate::cluster::operation::{Failed, FailedHow};
use crate::cluster::row_copy::RowCopy;
use crate::cluster::row_members::row_is_known;
use crate::cluster::row_plan::{SLOTS_MAX, UnitRange, decode};
use crate::cluster::storage::Storage;
use crate::cluster::wants::{Wanted, Wants};
use crate::request::Operation;
use crate::scheduler::IoClass;

/// How the search for the next slice of a component ended.
pub(in crate::cluster) enum Next {
    Slice(RowRange),
    /// Everything has begun.
    Waiting,
    /// Nothing can begin.
    Blocked,
    /// Nothing is stale.
    Complete,
}

impl Storage {
    /// Finds the next slice to copy of a component, and notes that it has begun.
    pub(in crate::cluster) fn next_slice(&mut self, id: ComponentId) -> Next {
        let unit_bytes = self.settings.stripe_unit.0 as u32;
        let slice_bytes = self.settings.resync_slice.0 as u32;
        let Some(component) = self.objects.component_mut(id) else { return Next::Complete };
        let set = component.set;
        let Some(copy) = &mut component.copy else { return Next::Complete };
        let open = copy.rows.iter_mut().find(|copied| !copied.spoiled && copied.begun < unit_bytes);
        if let Some(copied) = open {
            let start = copied.begun;
            let length = slice_bytes.min(unit_bytes - start);
            copied.begun += length;
            copied.in_flight += 1;
            return Next::Slice(RowRange { set, row: copied.row, start, length });
        }
        self.open_next_row(id)
    }

    /// Finds the next stale row that has a source, and begins it.
    fn open_next_row(&mut self, id: ComponentId) -> Next {
        let first = self.objects.component(id).and_then(|component| component.copy.as_ref());
        let mut from = first.map_or(0, |copy| copy.cursor);
        let mut wrapped = false;
        loop {
            let Some(component) = self.objects.component(id) else { return Next::Complete };
            let Some(copy) = &component.copy else { return Next::Complete };
            if component.stale.is_empty() {
                return if copy.rows.is_empty() { Next::Complete } else { Next::Waiting };
            }
            let Some(row) = component.stale.next_from(from) else {
                if wrapped {
                    return if copy.rows.is_empty() { Next::Blocked } else { Next::Waiting };
                }
                (from, wrapped) = (0, true);
                continue;
            };
            from = row + 1;
            if copy.rows.iter().any(|copied| copied.row == row) {
                continue;
            }
            match self.source_of(id, row) {
                Source::None => {}
                Source::Nothing => self.row_holds_nothing(id, row),
                Source::Members if !self.has_room(id, row) => {}
                Source::Members => {
                    self.occupy(id, row);
                    if let Some(component) = self.objects.component_mut(id)
                        && let Some(copy) = &mut component.copy
                    {
                        copy.cursor = row + 1;
                        copy.rows.push(RowCopy { row, begun: 0, in_flight: 0, spoiled: false });
                    }
                    return self.next_slice(id);
                }
            }
        }
    }

    fn source_of(&self, id: ComponentId, row: u64) -> Source {
        let Some(piece) = self.sources(id, row) else { return Source::None };
        let Some(component) = self.objects.component(id) else { return Source::None };
        let own_slot = piece.current(component.slot).is_some();
        if !own_slot && !row_is_known(&piece) {
            return Source::None;
        }
        let written = |id: ComponentId| {
            self.objects.component(id).is_some_and(|component| component.written.contains(row))
        };
        let anything = piece
            .members()
            .iter()
            .any(|member| member.content == Content::Current && written(member.component));
        if anything { Source::Members } else { Source::Nothing }
    }

    /// The other members of a component's row.
    pub(in crate::cluster) fn sources(&self, id: ComponentId, row: u64) -> Option<Piece> {
        let component = self.objects.component(id)?;
        let range = RowRange { set: component.set, row, start: 0, length: 0 };
        let mut target = Failed::NONE;
        target.push(id, FailedHow::Gone);
        self.piece_now(component.volume, component.layout, &range, &target)
    }

    /// A row that holds data nowhere is zero everywhere.
    fn row_holds_nothing(&mut self, id: ComponentId, row: u64) {
        let unit_bytes = self.settings.stripe_unit.0;
        self.outbox.command(DataCommand::Zero {
            component: id,
            offset_bytes: row * unit_bytes,
            length_bytes: unit_bytes,
        });
        self.release(id, row);
        if let Some(component) = self.objects.component_mut(id) {
            component.stale.remove(row);
            if component.stale.is_empty() {
                self.objects.shape_changed();
            }
        }
    }

    /// The I/Os that read what a slice needs.
    pub(in crate::cluster) fn slice_reads(&self, id: ComponentId, range: &RowRange) -> Wants {
        let mut wants = Wants::new();
        let (Some(piece), Some(component)) =
            (self.sources(id, range.row), self.objects.component(id))
        else {
            return wants;
        };
        let slice = UnitRange { from: range.start, to: range.start + range.length };
        let mut ranges = [UnitRange::default(); SLOTS_MAX];
        if piece.current(component.slot).is_some() {
            ranges[usize::from(component.slot)] = slice;
        } else if let SetKind::Mirror { copies } = piece.kind {
            let first = (range.row % u64::from(copies)) as u8;
            let slot = (0..copies)
                .map(|step| (first + step) % copies)
                .find(|slot| piece.current(*slot).is_some());
            if let Some(slot) = slot {
                ranges[usize::from(slot)] = slice;
            }
        } else {
            ranges = decode(piece.kind, piece.current_slots(), slice, ranges).unwrap_or(ranges);
        }
        for slot in 0..piece.kind.members() {
            let slice = ranges[usize::from(slot)];
            if let (false, Some(component)) = (slice.is_empty(), piece.current(slot)) {
                wants.push(Wanted {
                    component,
                    operation: Operation::Read,
                    offset: range.row * u64::from(piece.unit_bytes) + u64::from(slice.from),
                    length: slice.length(),
                    class: IoClass::Resync,
                });
            }
        }
        wants
    }
}

/// Where a row can be copied from.
enum Source {
    /// Not enough members are current.
    None,
    /// It holds nothing.
    Nothing,
    /// The members.
    Members,
}
