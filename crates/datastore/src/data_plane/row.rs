//! One row of a set: read and decoded, with every block verified. Writing and filling it are in [`super::row_writing`] and
//! [`super::row_filling`].
//!
//! Mirrors read one replica, and the others if the checksum of a block is wrong. Rows with parity decode missing or damaged
//! blocks from the rest. Restored blocks are written back, so that reading a damaged block repairs it.

use super::block_store::{BLOCK_BYTES, BlockStore};
use super::components::Components;
use super::finding::Finding;
use super::held::{Blocks, Held};
use super::parity::{DATA_MAX, accumulate, reconstruct};
use underlay_model::cluster::{ComponentId, Content, Piece, Role, SetKind};

pub(super) const BLOCK: u64 = BLOCK_BYTES as u64;

/// A range of whole blocks within a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from: u32,
    pub(super) length: u32,
}

/// A row's members and the components they lie on.
pub(super) struct Row<'a, S> {
    pub(super) components: &'a mut Components<S>,
    pub(super) findings: &'a mut Vec<Finding>,
    pub(super) piece: &'a Piece,
    /// A component that is being filled, and its slot: it is not among the piece's.
    pub(super) filled: Option<(ComponentId, u8)>,
}

/// The slots and spans of a piece's range, in order; for mirrors the first slot stands for all.
pub(super) fn data_spans(piece: &Piece) -> impl Iterator<Item = (u8, Span)> + use<'_> {
    let unit = piece.unit_bytes;
    let (start, end) = (piece.start, piece.start + piece.length_bytes);
    (start / unit..end.div_ceil(unit)).map(move |index| {
        let from = start.max(index * unit) - index * unit;
        let to = end.min((index + 1) * unit) - index * unit;
        let slot = piece.kind.data_member(piece.row, index as u8);
        (slot, Span { from, length: to - from })
    })
}

impl<S: BlockStore> Row<'_, S> {
    /// Reads the piece's range; tells which blocks are good.
    pub(super) fn read(&mut self) -> Blocks {
        let mut all = Blocks { bytes: Vec::new(), good: Vec::new() };
        for (slot, span) in data_spans(self.piece) {
            let part = self.read_slot(slot, span);
            all.bytes.extend(part.bytes);
            all.good.extend(part.good);
        }
        // The caller copies by the length it asked for; a span too few would shift what follows.
        debug_assert_eq!(all.bytes.len(), self.piece.length_bytes as usize, "all of the range");
        all
    }

    /// Fills `buffer` with the piece's range from the components that come first, if all of it is there and good; otherwise
    /// what is in it means nothing, and [`Row::read`] finds and restores what can be had.
    pub(super) fn read_straight(&mut self, buffer: &mut [u8]) -> bool {
        let piece = self.piece;
        let mirror = matches!(piece.kind, SetKind::Mirror { .. });
        debug_assert_eq!(buffer.len(), piece.length_bytes as usize, "a buffer for the range");
        let mut rest = buffer;
        data_spans(piece).all(|(slot, span)| {
            let (part, more) = std::mem::take(&mut rest).split_at_mut(span.length as usize);
            rest = more;
            let mut members = piece.members().iter();
            let source = members.find(|member| {
                member.content == Content::Current && (mirror || member.slot == slot)
            });
            let offset = self.offset(span);
            let held = source.and_then(|member| self.held(member.component));
            held.is_some_and(|held| held.read_into(offset, part, piece.checksum))
        })
    }

    pub(super) fn offset(&self, span: Span) -> u64 {
        self.piece.row * u64::from(self.piece.unit_bytes) + u64::from(span.from)
    }

    pub(super) fn held(&mut self, component: ComponentId) -> Option<&mut Held<S>> {
        self.components.get_mut(component)
    }

    pub(super) fn read_component(&mut self, component: ComponentId, span: Span) -> Blocks {
        let (offset, checksum) = (self.offset(span), self.piece.checksum);
        let length = span.length as usize;
        match self.held(component) {
            Some(held) => held.read(offset, length, checksum),
            None => Blocks { bytes: vec![0; length], good: vec![false; length / BLOCK_BYTES] },
        }
    }

    /// What a slot holds in that span, from wherever it can be had.
    pub(super) fn read_slot(&mut self, slot: u8, span: Span) -> Blocks {
        let sources = self.sources(slot);
        let mut blocks = match sources.first() {
            Some(first) => self.read_component(*first, span),
            None => Blocks {
                bytes: vec![0; span.length as usize],
                good: vec![false; span.length as usize / BLOCK_BYTES],
            },
        };
        if blocks.all_good() {
            return blocks;
        }
        for index in 0..blocks.good.len() {
            if !blocks.good[index] {
                self.restore_block(slot, span, index, &sources, &mut blocks);
            }
        }
        blocks
    }

    /// Components with the current content of a slot; for mirrors of any slot, the preferred one first.
    pub(super) fn sources(&self, slot: u8) -> Vec<ComponentId> {
        let mirror = matches!(self.piece.kind, SetKind::Mirror { .. });
        self.piece
            .members()
            .iter()
            .filter(|member| member.content == Content::Current)
            .filter(|member| mirror || member.slot == slot)
            .map(|member| member.component)
            .collect()
    }

    /// Restores one block of a slot from other members, and repairs the broken ones.
    fn restore_block(
        &mut self,
        slot: u8,
        span: Span,
        index: usize,
        sources: &[ComponentId],
        blocks: &mut Blocks,
    ) {
        let one = Span { from: span.from + (index * BLOCK_BYTES) as u32, length: BLOCK as u32 };
        let mut broken: Vec<ComponentId> = sources.first().copied().into_iter().collect();
        let mut found = None;
        for source in sources.iter().skip(1) {
            let other = self.read_component(*source, one);
            if other.all_good() {
                found = Some(other.bytes);
                break;
            }
            broken.push(*source);
        }
        let found = found
            // In order of cost. Stale members come last: their block is right only if its checksum
            // matches.
            .or_else(|| self.decode(slot, one))
            .or_else(|| self.copy_from_behind(one, &broken));
        let Some(bytes) = found else { return };
        blocks.bytes[index * BLOCK_BYTES..][..BLOCK_BYTES].copy_from_slice(&bytes);
        blocks.good[index] = true;
        let (offset, checksum) = (self.offset(one), self.piece.checksum);
        for component in broken {
            let Some(held) = self.held(component) else { continue };
            let stored = held.write(offset, &bytes, checksum);
            // Reported only when it is stored: a device that refuses the repair still has the
            // damaged block.
            if self.components.note(stored) {
                self.findings.push(Finding::Repaired { component, offset_bytes: offset });
            }
        }
    }

    /// Computes a block of a slot from the other slots of a row with parity.
    fn decode(&mut self, slot: u8, one: Span) -> Option<Vec<u8>> {
        let kind = self.piece.kind;
        let SetKind::Parity { data, parity } = kind else { return None };
        let row = self.piece.row;
        let known = self.whole_row(one, Some(slot));
        let complete = self.complete(known, usize::from(data));
        let data_units = complete.or_else(|| self.complete_from_behind(one))?;
        match kind.role(row, slot) {
            Role::Data(index) => Some(data_units[usize::from(index)].clone()),
            Role::Parity(index) if index < parity => {
                Some(parity_of(&data_units, usize::from(index)))
            }
            Role::Parity(_) => None,
        }
    }

    /// One block of each slot, as far as it is current and verifies.
    pub(super) fn whole_row(&mut self, one: Span, except: Option<u8>) -> Vec<Option<Vec<u8>>> {
        (0..self.piece.kind.members())
            .map(|slot| {
                if except == Some(slot) {
                    return None;
                }
                self.sources(slot).into_iter().find_map(|component| {
                    let blocks = self.read_component(component, one);
                    blocks.all_good().then_some(blocks.bytes)
                })
            })
            .collect()
    }

    /// All data units of a row's block from what is known of its slots.
    pub(super) fn complete(
        &self,
        mut known: Vec<Option<Vec<u8>>>,
        data: usize,
    ) -> Option<Vec<Vec<u8>>> {
        let (kind, row) = (self.piece.kind, self.piece.row);
        debug_assert_eq!(known.len(), usize::from(kind.members()), "something of each slot");
        let parities: Vec<Option<Vec<u8>>> = (0..kind.spare_members())
            .map(|index| known[usize::from(kind.parity_member(row, index))].take())
            .collect();
        let mut present = [false; DATA_MAX];
        let mut units: Vec<Vec<u8>> = (0..data as u8)
            .map(|index| {
                let unit = known[usize::from(kind.data_member(row, index))].take();
                present[usize::from(index)] = unit.is_some();
                unit.unwrap_or_else(|| vec![0; BLOCK_BYTES])
            })
            .collect();
        let p = parities.first().and_then(|parity| parity.as_deref());
        let q = parities.get(1).and_then(|parity| parity.as_deref());
        reconstruct(&mut units, &present[..data], p, q).then_some(units)
    }
}

pub(super) fn parity_of(units: &[Vec<u8>], index: usize) -> Vec<u8> {
    // A unit that is shorter would leave its part of the parity as if it were zeros.
    debug_assert!(units.iter().all(|unit| unit.len() == BLOCK_BYTES), "one block of each unit");
    let mut parity = vec![0; BLOCK_BYTES];
    for (number, unit) in units.iter().enumerate() {
        accumulate(&mut parity, unit, number, index);
    }
    parity
}
