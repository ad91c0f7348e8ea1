//! One row of a set: read, written, decoded, with every block verified.
//!
//! Mirrors read one replica and turn to the others when a block does not verify. Rows with parity decode what is missing or
//! broken from the rest. What was restored is written back, so that a broken block is repaired by being read.

use super::block_store::{BLOCK_BYTES, BlockStore};
use super::checksum::broken_sum;
use super::finding::Finding;
use super::held::{Blocks, Held, sums_for};
use super::parity::{DATA_MAX, accumulate, reconstruct};
use super::plane::Components;
use crate::cluster::{Checksum, ComponentId, Content, Piece, Role, SetKind};

const BLOCK: u64 = BLOCK_BYTES as u64;

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
fn data_spans(piece: &Piece) -> impl Iterator<Item = (u8, Span)> + use<'_> {
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
        all
    }

    /// Fills `buffer` with the piece's range from the components that come first, if all of it is there and good; otherwise
    /// what is in it means nothing, and [`Row::read`] finds and restores what can be had.
    pub(super) fn read_straight(&mut self, buffer: &mut [u8]) -> bool {
        let piece = self.piece;
        let mirror = matches!(piece.kind, SetKind::Mirror { .. });
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

    fn held(&mut self, component: ComponentId) -> Option<&mut Held<S>> {
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
            .or_else(|| self.decode(slot, one))
            .or_else(|| self.copy_from_behind(one, &broken));
        let Some(bytes) = found else { return };
        blocks.bytes[index * BLOCK_BYTES..][..BLOCK_BYTES].copy_from_slice(&bytes);
        blocks.good[index] = true;
        let (offset, checksum) = (self.offset(one), self.piece.checksum);
        for component in broken {
            if let Some(held) = self.held(component) {
                held.write(offset, &bytes, checksum);
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

    /// Stores the piece's range on all members.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        match self.piece.kind {
            SetKind::Mirror { .. } => {
                let span = Span { from: self.piece.start, length: self.piece.length_bytes };
                let (offset, checksum) = (self.offset(span), self.piece.checksum);
                let sums = sums_for(bytes, checksum);
                // Without checksums there is nothing that bytes could be out of step with.
                let noted = checksum == Checksum::On;
                if let Some(log) = self.components.intents().filter(|_| noted) {
                    for member in self.piece.members() {
                        log.sums(member.component, offset, &sums);
                    }
                    log.begin();
                }
                for member in self.piece.members() {
                    if let Some(held) = self.components.get_mut(member.component) {
                        held.write_summed(offset, bytes, &sums, checksum);
                    }
                }
                if let Some(log) = self.components.intents().filter(|_| noted) {
                    log.end();
                }
            }
            SetKind::Parity { .. } => self.write_with_parity(bytes),
        }
    }

    fn write_component(&mut self, component: ComponentId, span: Span, sums: &[u32], bytes: &[u8]) {
        let (offset, checksum) = (self.offset(span), self.piece.checksum);
        if let Some(held) = self.held(component) {
            held.write_summed(offset, bytes, sums, checksum);
        }
    }

    fn write_with_parity(&mut self, bytes: &[u8]) {
        let spans: Vec<_> = data_spans(self.piece).collect();
        let from = spans.iter().map(|(_, span)| span.from).min().unwrap_or(0);
        let to = spans.iter().map(|(_, span)| span.from + span.length).max().unwrap_or(0);
        let mut at = 0;
        let mut new: Vec<(u8, Span, &[u8])> = Vec::new();
        for (slot, span) in &spans {
            let length = span.length as usize;
            new.push((*slot, *span, &bytes[at..at + length]));
            at += length;
        }
        // All parity is computed before anything is written: the old data is part of it.
        let all = Span { from, length: to - from };
        let parity = match self.parity_by_difference(&new, all) {
            Some(parity) => parity,
            None => self.parity_of_all(&new, all),
        };
        let checksum = self.piece.checksum;
        let mut writes: Vec<(u8, Span, Vec<u32>, &[u8])> = Vec::new();
        for (slot, span, bytes) in new {
            writes.push((slot, span, sums_for(bytes, checksum), bytes));
        }
        for (index, parity) in parity.iter().enumerate() {
            let slot = self.piece.kind.parity_member(self.piece.row, index as u8);
            let mut sums = sums_for(&parity.bytes, checksum);
            let blocks = parity.bytes.chunks_exact(BLOCK_BYTES);
            for ((sum, block), good) in sums.iter_mut().zip(blocks).zip(&parity.good) {
                if !good {
                    *sum = broken_sum(block);
                }
            }
            writes.push((slot, all, sums, &parity.bytes));
        }
        self.store_together(&writes);
    }

    /// Stores what belongs together on all members: after a kill in between it is completed.
    fn store_together(&mut self, writes: &[(u8, Span, Vec<u32>, &[u8])]) {
        let piece = self.piece;
        let each = || {
            writes.iter().flat_map(|write| {
                let members = piece.members().iter().filter(|member| member.slot == write.0);
                members.map(move |member| (member.component, write))
            })
        };
        if self.components.intents().is_some() {
            for (component, (_, span, sums, bytes)) in each() {
                let offset = self.offset(*span);
                if let Some(log) = self.components.intents() {
                    log.store(component, offset, bytes, sums);
                }
            }
        }
        if let Some(log) = self.components.intents() {
            log.begin();
        }
        for (component, (_, span, sums, bytes)) in each() {
            self.write_component(component, *span, sums, bytes);
        }
        if let Some(log) = self.components.intents() {
            log.end();
        }
    }

    /// Says that the content of a slot is lost in that span.
    pub(super) fn break_slot(&mut self, slot: u8, span: Span) {
        let offset = self.offset(span);
        let piece = self.piece;
        for member in piece.members() {
            if member.slot == slot
                && let Some(held) = self.held(member.component)
            {
                held.break_sums(offset, span.length as usize);
            }
        }
    }

    /// The new parity from the old one and what changes; none if something of that is missing or broken.
    fn parity_by_difference(
        &mut self,
        new: &[(u8, Span, &[u8])],
        all: Span,
    ) -> Option<Vec<Blocks>> {
        let (kind, row) = (self.piece.kind, self.piece.row);
        let mut parities = Vec::new();
        for index in 0..kind.spare_members() {
            let component = self.piece.current(kind.parity_member(row, index))?;
            let old = self.read_component(component, all);
            if !old.all_good() {
                return None;
            }
            parities.push(old);
        }
        for (slot, span, bytes) in new {
            let component = self.piece.current(*slot)?;
            let Role::Data(data) = kind.role(row, *slot) else { return None };
            let mut difference = self.read_component(component, *span);
            if !difference.all_good() {
                return None;
            }
            super::parity::add(&mut difference.bytes, bytes);
            let at = (span.from - all.from) as usize;
            for (index, parity) in parities.iter_mut().enumerate() {
                let target = &mut parity.bytes[at..at + bytes.len()];
                accumulate(target, &difference.bytes, usize::from(data), index);
            }
        }
        Some(parities)
    }

    /// The new parity from all data units, decoded where necessary.
    fn parity_of_all(&mut self, new: &[(u8, Span, &[u8])], all: Span) -> Vec<Blocks> {
        let (kind, row) = (self.piece.kind, self.piece.row);
        let spare = usize::from(kind.spare_members());
        let empty = Blocks { bytes: Vec::new(), good: Vec::new() };
        let mut parities = vec![empty; spare];
        for block in 0..all.length / BLOCK as u32 {
            let one = Span { from: all.from + block * BLOCK as u32, length: BLOCK as u32 };
            let known = self.whole_row(one, None);
            let units = self.overwritten(known, new, one);
            for (index, parity) in parities.iter_mut().enumerate() {
                match &units {
                    Some(units) => parity.bytes.extend(parity_of(units, index)),
                    None => parity.bytes.extend([0; BLOCK_BYTES]),
                }
                parity.good.push(units.is_some());
            }
        }
        debug_assert!(kind.parity_member(row, 0) < kind.members());
        parities
    }

    /// The data units of one block of the row after the write; none if an untouched one cannot be known.
    fn overwritten(
        &mut self,
        known: Vec<Option<Vec<u8>>>,
        new: &[(u8, Span, &[u8])],
        one: Span,
    ) -> Option<Vec<Vec<u8>>> {
        let (kind, row) = (self.piece.kind, self.piece.row);
        let data = usize::from(kind.data_units());
        let old = self.complete(known.clone(), data);
        (0..data as u8)
            .map(|index| {
                let slot = kind.data_member(row, index);
                let written = new.iter().find(|(touched, span, _)| {
                    *touched == slot && span.from <= one.from && one.from < span.from + span.length
                });
                match written {
                    Some((_, span, bytes)) => {
                        let at = (one.from - span.from) as usize;
                        Some(bytes[at..at + BLOCK_BYTES].to_vec())
                    }
                    None => match &old {
                        Some(units) => Some(units[usize::from(index)].clone()),
                        None => known[usize::from(slot)].clone(),
                    },
                }
            })
            .collect()
    }

    /// Makes the range zero on all members.
    pub(super) fn discard(&mut self) {
        let kind = self.piece.kind;
        let whole = self.piece.unit_bytes * u32::from(kind.data_units());
        let all_of_it = self.piece.length_bytes == whole;
        if matches!(kind, SetKind::Parity { .. }) && !all_of_it {
            return self.write(&vec![0; self.piece.length_bytes as usize]);
        }
        let span = match kind {
            SetKind::Mirror { .. } => {
                Span { from: self.piece.start, length: self.piece.length_bytes }
            }
            SetKind::Parity { .. } => Span { from: 0, length: self.piece.unit_bytes },
        };
        let (offset, length) = (self.offset(span), u64::from(span.length));
        let piece = self.piece;
        if let Some(log) = self.components.intents() {
            for member in piece.members() {
                log.discard(member.component, offset, length);
            }
            log.begin();
        }
        for member in piece.members() {
            if let Some(held) = self.held(member.component) {
                held.discard(offset, length);
            }
        }
        if let Some(log) = self.components.intents() {
            log.end();
        }
    }

    /// Restores a span of a slot on `target` from the members; what is lost stays marked as lost.
    ///
    /// What is restored is durable at once: a component that counts as current must not fall back behind its copy.
    pub(super) fn resync(&mut self, target: ComponentId, slot: u8) {
        self.filled = Some((target, slot));
        self.restore_span(target, slot);
        if let Some(held) = self.held(target) {
            held.persist();
        }
    }

    fn restore_span(&mut self, target: ComponentId, slot: u8) {
        let span = Span { from: self.piece.start, length: self.piece.length_bytes };
        let blocks = self.read_slot(slot, span);
        let (offset, checksum) = (self.offset(span), self.piece.checksum);
        if blocks.bytes.iter().all(|byte| *byte == 0) && blocks.all_good() {
            if let Some(held) = self.held(target) {
                held.discard(offset, u64::from(span.length));
            }
            return;
        }
        if let Some(held) = self.held(target) {
            held.write(offset, &blocks.bytes, checksum);
        }
        for (index, _) in blocks.good.iter().enumerate().filter(|(_, good)| !**good) {
            let at = offset + (index * BLOCK_BYTES) as u64;
            if let Some(held) = self.held(target) {
                held.break_sums(at, BLOCK_BYTES);
            }
            self.findings.push(Finding::Lost { component: target, offset_bytes: at });
        }
    }

    /// Marks blocks of the piece's range as lost on all members, data and parity.
    pub(super) fn break_range(&mut self, good: &[bool]) {
        let mut index = 0;
        for (slot, span) in data_spans(self.piece) {
            for block in 0..span.length / BLOCK as u32 {
                if !good[index] {
                    let one = Span { from: span.from + block * BLOCK as u32, length: BLOCK as u32 };
                    self.break_everywhere(slot, one);
                }
                index += 1;
            }
        }
    }

    fn break_everywhere(&mut self, slot: u8, one: Span) {
        match self.piece.kind {
            SetKind::Mirror { copies } => {
                for slot in 0..copies {
                    self.break_slot(slot, one);
                }
            }
            SetKind::Parity { parity, .. } => {
                self.break_slot(slot, one);
                for index in 0..parity {
                    self.break_slot(self.piece.kind.parity_member(self.piece.row, index), one);
                }
            }
        }
    }
}

pub(super) fn parity_of(units: &[Vec<u8>], index: usize) -> Vec<u8> {
    let mut parity = vec![0; BLOCK_BYTES];
    for (number, unit) in units.iter().enumerate() {
        accumulate(&mut parity, unit, number, index);
    }
    parity
}
