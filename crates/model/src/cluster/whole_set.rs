//! A cache of complete sets: what every request would look up again is looked up once.
//!
//! Nearly all requests go to sets whose slots have one reachable component each, with nothing stale. Which sets these are, and
//! where their components are, changes only if a component is added, removed, falls behind or catches up. Each such change
//! increments the *shape* of the cluster; entries of an earlier shape are not used.

use super::data_command::{Content, Piece, PieceMember};
use super::geometry::{RowRange, SetKind};
use super::ids::{ComponentId, GroupId, HostId, VolumeId};
use super::object::Object;
use super::requests::Target;
use super::row_plan::SLOTS_MAX;
use super::storage::Storage;

/// What is known of one set of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetNote {
    /// The shape of the cluster it was noted under.
    shape: u64,
    is_whole: bool,
    /// All members, and no range.
    piece: Piece,
    /// Where the component of each slot is.
    targets: [Target; SLOTS_MAX],
}

impl SetNote {
    /// A range of a row, with all members.
    pub(super) fn piece(&self, range: &RowRange) -> Piece {
        self.piece.of_row(range.row, range.start, range.length)
    }

    /// How the set's rows are protected.
    pub(super) fn kind(&self) -> SetKind {
        self.piece.kind
    }

    /// Length of its stripe units.
    pub(super) fn unit_bytes(&self) -> u32 {
        self.piece.unit_bytes
    }

    /// Where the component of a slot is.
    pub(super) fn target(&self, slot: usize) -> Target {
        self.targets[slot]
    }

    /// The disk groups of the members.
    pub(super) fn groups(&self) -> impl Iterator<Item = GroupId> {
        let targets = &self.targets[..self.piece.members().len()];
        targets.iter().map(|target| target.group)
    }
}

impl Object {
    /// What is known of a set, if nothing of it is missing under that shape of the cluster.
    #[inline]
    pub(super) fn whole_set(&self, set: u32, shape: u64) -> Option<&SetNote> {
        self.notes.get(set as usize).filter(|note| note.shape == shape && note.is_whole)
    }
}

impl Storage {
    /// Looks at the sets of a volume's present layout again, if the cluster's shape has changed since.
    #[inline]
    pub(super) fn note_sets(&mut self, volume: VolumeId) {
        let shape = self.objects.shape();
        let is_noted = self
            .objects
            .volume(volume)
            .is_none_or(|state| state.object.notes.first().is_some_and(|note| note.shape == shape));
        if !is_noted {
            self.note_sets_anew(volume);
        }
    }

    #[cold]
    fn note_sets_anew(&mut self, volume: VolumeId) {
        let Some(state) = self.objects.volume(volume) else { return };
        let sets = 0..state.object.geometry.sets;
        let notes = sets.map(|set| self.note(&state.object, set)).collect();
        if let Some(state) = self.objects.volume_mut(volume) {
            state.object.notes = notes;
        }
    }

    fn note(&self, object: &Object, set: u32) -> SetNote {
        let geometry = &object.geometry;
        let piece = Piece::new(geometry.kind, geometry.unit_bytes, 0, object.checksum);
        let nowhere = Target {
            component: ComponentId(u32::MAX),
            group: GroupId(0),
            host: HostId(0),
            disk: 0,
            base: 0,
        };
        let targets = [nowhere; SLOTS_MAX];
        let mut note = SetNote { shape: self.objects.shape(), is_whole: true, piece, targets };
        if !object.in_doubt[set as usize].is_empty() {
            return SetNote { is_whole: false, ..note };
        }
        for (index, slot) in object.set(set).iter().enumerate() {
            let component = self.objects.component(slot.current);
            let is_whole = component.is_some_and(|component| {
                slot.replacement.is_none() && component.reachable && component.stale.is_empty()
            });
            let target = self.target(slot.current).filter(|_| is_whole);
            let Some(target) = target else { return SetNote { is_whole: false, ..note } };
            note.targets[index] = target;
            note.piece.push(PieceMember {
                component: slot.current,
                slot: index as u8,
                content: Content::Current,
            });
        }
        note
    }
}
