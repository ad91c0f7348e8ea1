//! Blocks that no current member has any more, found on members that are behind.
//!
//! Being behind is known per row, and most blocks of the row have not changed meanwhile. A current member whose block is
//! broken has kept the checksum of what it held: if what the others say gives a block with that checksum, it is the block.
//! What was marked as lost has a checksum that nothing has, and volumes without checksums have none: neither finds anything.

use super::block_store::BlockStore;
use super::checksum::verifies;
use super::row::{Row, Span, parity_of};
use crate::cluster::{Checksum, ComponentId, Content, Role, SetKind};

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
    /// missing, if all blocks that are broken on current members come out as they were.
    pub(super) fn complete_from_behind(&mut self, one: Span) -> Option<Vec<Vec<u8>>> {
        let (kind, row) = (self.piece.kind, self.piece.row);
        if self.piece.checksum == Checksum::Off {
            return None;
        }
        let mut known = self.whole_row(one, None);
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
        let as_it_was = |(slot, sum): &(u8, u32)| match kind.role(row, *slot) {
            Role::Data(index) => verifies(&units[usize::from(index)], *sum),
            Role::Parity(index) => verifies(&parity_of(&units, usize::from(index)), *sum),
        };
        // With nothing to compare with it would be a guess.
        let is_right = !broken.is_empty() && broken.iter().all(as_it_was);
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
