//! The members of a row that can serve it: which components, and whether they suffice.
//!
//! What is not here: which bytes of them a request touches (`row_plan`).

use super::data_command::{Content, Piece, PieceMember};
use super::geometry::{Role, RowRange, SetKind};
use super::ids::VolumeId;
use super::object::{Layout, Object};
use super::objects::Objects;
use super::operation::Failed;
use super::storage::Storage;

impl Objects {
    /// The reachable components of a row, as the data plane needs them, without those that failed.
    #[inline]
    pub(super) fn piece(
        &self,
        volume: VolumeId,
        layout: Layout,
        range: &RowRange,
        without: &Failed,
    ) -> Option<Piece> {
        let object = self.object(volume, layout)?;
        if without.is_empty()
            && let Some(cached) = object.whole_set(range.set, self.shape())
        {
            let piece = cached.piece(range);
            debug_assert_eq!(piece, self.find_members(object, range, without));
            return Some(piece);
        }
        Some(self.find_members(object, range, without))
    }

    fn find_members(&self, object: &Object, range: &RowRange, without: &Failed) -> Piece {
        let geometry = &object.geometry;
        let mut piece = Piece::new(geometry.kind, geometry.unit_bytes, range.row, object.checksum)
            .with_range(range.start, range.length);
        // Parity that may not match its data would decode to bytes that were never written.
        let in_doubt = object.in_doubt[range.set as usize].contains(range.row);
        for (slot, components) in object.set(range.set).iter().enumerate() {
            for id in components.components() {
                let Some(component) = self.component(id) else { continue };
                if !component.reachable || without.contains(id) {
                    continue;
                }
                let is_doubtful = in_doubt
                    && matches!(geometry.kind, SetKind::Parity { .. })
                    && matches!(geometry.kind.role(range.row, slot as u8), Role::Parity(_));
                let is_current = component.is_current(range.row) && !is_doubtful;
                let content = if is_current { Content::Current } else { Content::Stale };
                piece.push(PieceMember { component: id, slot: slot as u8, content });
            }
        }
        piece
    }
}

impl Storage {
    /// The same at the moment when something takes effect: without components whose host has lost power meanwhile, even
    /// if that has not been noticed yet.
    #[inline]
    pub(super) fn piece_now(
        &self,
        volume: VolumeId,
        layout: Layout,
        range: &RowRange,
        without: &Failed,
    ) -> Option<Piece> {
        let mut piece = self.objects.piece(volume, layout, range, without)?;
        if !self.membership.all_have_power() {
            piece.retain(|id| {
                self.objects.component(id).is_some_and(|component| {
                    let host = self.inventory.host_of(component.group);
                    self.membership.has_power(host)
                })
            });
        }
        Some(piece)
    }
}

/// Whether the members suffice to know the whole row.
pub(super) fn row_is_known(piece: &Piece) -> bool {
    piece.current_slots().count_ones() >= u32::from(piece.kind.data_units())
}
