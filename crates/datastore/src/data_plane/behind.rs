//! Recovers blocks that no current member has from members that are stale.
//!
//! Staleness is known per row, but most blocks of such a row have not changed. A current member whose block is damaged
//! still has the block's checksum: if the stale members yield a block with that checksum, it is the right one. Blocks that
//! are marked as lost have a checksum that no content has, and volumes without checksums have none, so neither can be
//! recovered in this way.

use super::block_store::BlockStore;
use super::checksum::verifies;
use super::row::{Row, Span, parity_of};
use underlay_model::cluster::{Checksum, ComponentId, Content, Role, SetKind};

impl<S: BlockStore> Row<'_, S> {
    /// The block of a mirror from a member that is behind, if it is what one of the broken current ones held.
    pub(super) fn copy_from_behind(
        &mut self,
        one: Span,
        broken: &[ComponentId],
    ) -> Option<Vec<u8>> {
        let mirror = matches!(self.piece.kind, SetKind::Mirror { .. });
        if !mirror || self.piece.checksum == Checksum::Off {
            return None;
        }
        let sums: Vec<u32> = broken.iter().filter_map(|id| self.sum_at(*id, one)).collect();
        self.behind(None).into_iter().find_map(|component| {
            let bytes = self.read_component(component, one).bytes;
            sums.iter().any(|sum| verifies(&bytes, *sum)).then_some(bytes)
        })
    }

    /// The data units of a row with parity, one block each, with what members that are behind hold in place of what is
    /// missing, if all current members come out as they are, or were before they broke.
    ///
    /// As many current blocks as there are data units, each known by itself or by its checksum, leave no other row (the code
    /// is maximum distance separable). Fewer would not tell two members that are behind, and agree, from the truth.
    pub(super) fn complete_from_behind(&mut self, one: Span) -> Option<Vec<Vec<u8>>> {
        let (kind, row) = (self.piece.kind, self.piece.row);
        if self.piece.checksum == Checksum::Off {
            return None;
        }
        let current = self.whole_row(one, None);
        let mut known = current.clone();
        let mut broken: Vec<(u8, u32)> = Vec::new();
        for slot in 0..kind.members() {
            if known[usize::from(slot)].is_some() {
                continue;
            }
            match self.sources(slot).first() {
                Some(current) => broken.push((slot, self.sum_at(*current, one)?)),
                None => {
                    known[usize::from(slot)] =
                        self.behind(Some(slot)).into_iter().find_map(|component| {
                            let blocks = self.read_component(component, one);
                            blocks.all_good().then_some(blocks.bytes)
                        });
                }
            }
        }
        let units = self.complete(known, usize::from(kind.data_units()))?;
        let block_of = |slot: u8| match kind.role(row, slot) {
            Role::Data(index) => units[usize::from(index)].clone(),
            Role::Parity(index) => parity_of(&units, usize::from(index)),
        };
        let sound = || {
            (0..kind.members())
                .zip(&current)
                .filter_map(|(slot, block)| Some((slot, block.as_ref()?)))
        };
        let is_determined = sound().count() + broken.len() >= usize::from(kind.data_units());
        let is_right = is_determined
            && sound().all(|(slot, block)| block_of(slot) == *block)
            && broken.iter().all(|(slot, sum)| verifies(&block_of(*slot), *sum));
        is_right.then_some(units)
    }

    fn sum_at(&mut self, component: ComponentId, one: Span) -> Option<u32> {
        let offset = self.offset(one);
        self.components.get_mut(component)?.sum_at(offset)
    }

    /// Components with old content: of a slot, or of any.
    fn behind(&self, slot: Option<u8>) -> Vec<ComponentId> {
        let members = self.piece.members().iter();
        let stale = members.filter(|member| member.content == Content::Stale);
        let all = stale.map(|member| (member.component, member.slot)).chain(self.filled);
        all.filter(|(_, of)| slot.is_none_or(|slot| slot == *of)).map(|(id, _)| id).collect()
    }
}
