//! An entry of the cache in `whole_set`: a set with the places of its members.
//!
//! What is not here: when an entry is made and whether it still holds.

use super::component_place::Target;
use super::data_command::Piece;
use super::geometry::{RowRange, SetKind};
use super::ids::GroupId;
use super::row_plan::SLOTS_MAX;

/// One set of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedSet {
    /// The shape of the cluster under which the entry was made.
    pub(super) shape: u64,
    pub(super) is_whole: bool,
    /// All members, and no range.
    pub(super) piece: Piece,
    /// Where the component of each slot is.
    pub(super) targets: [Target; SLOTS_MAX],
}

impl CachedSet {
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
