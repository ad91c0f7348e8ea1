//! Fills stale members of a row, and marks blocks as lost.

use super::block_store::{BLOCK_BYTES, BlockStore};
use super::finding::Finding;
use super::row::{BLOCK, Row, Span, data_spans};
use underlay_model::cluster::{ComponentId, SetKind};

impl<S: BlockStore> Row<'_, S> {
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
        debug_assert_eq!(blocks.bytes.len(), span.length as usize, "as much as is restored");
        debug_assert_eq!(
            blocks.good.len() * BLOCK_BYTES,
            blocks.bytes.len(),
            "each block is judged"
        );
        let (offset, checksum) = (self.offset(span), self.piece.checksum);
        if blocks.bytes.iter().all(|byte| *byte == 0) && blocks.all_good() {
            if let Some(held) = self.held(target) {
                held.discard(offset, u64::from(span.length));
            }
            return;
        }
        if let Some(held) = self.held(target) {
            let stored = held.write(offset, &blocks.bytes, checksum);
            self.components.note(stored);
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
        // Otherwise the judgement was of another range, and the wrong blocks are lost now.
        debug_assert_eq!(index, good.len(), "a judgement of each block");
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
}
