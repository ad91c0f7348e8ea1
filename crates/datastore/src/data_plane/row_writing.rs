//! Writes one row of a set: all members together, with parity computed from the old content or from the whole
//! row.
//!
//! If there is an intent log ([`super::intent`]), the write is recorded there first. The cluster has decided which members
//! take the write.

use super::block_store::{BLOCK_BYTES, BlockStore, StoreError};
use super::checksum::broken_sum;
use super::held::{Blocks, sums_for};
use super::parity::accumulate;
use super::row::{BLOCK, Row, Span, data_spans, parity_of};
use underlay_model::cluster::{Checksum, ComponentId, Role, SetKind};

impl<S: BlockStore> Row<'_, S> {
    /// Stores the piece's range on all members.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        // Members that got fewer bytes would keep old ones that nothing marks as such.
        debug_assert_eq!(bytes.len(), self.piece.length_bytes as usize, "a piece is written whole");
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
                    self.store_on(member.component, offset, bytes, &sums);
                }
                if let Some(log) = self.components.intents().filter(|_| noted) {
                    log.end();
                }
            }
            SetKind::Parity { .. } => self.write_with_parity(bytes),
        }
    }

    /// Whether a power cut can take what is written to some members, and cannot from others: a row with parity goes back as a
    /// whole, so all of them remember what was there.
    fn goes_back_together(&mut self) -> bool {
        let piece = self.piece;
        let mut takes = [false; 2];
        for member in piece.members() {
            if let Some(held) = self.held(member.component) {
                takes[usize::from(held.is_volatile())] = true;
            }
        }
        matches!(piece.kind, SetKind::Parity { .. }) && takes == [true; 2]
    }

    /// Has a member remember what is there although no power cut takes what will replace it.
    fn remember(&mut self, component: ComponentId, offset: u64, length: usize) {
        if let Some(held) = self.held(component).filter(|held| !held.is_volatile()) {
            held.remember_anyway(offset, length);
        }
    }

    /// Stores bytes on one member, and notes when it does not take them.
    fn store_on(&mut self, component: ComponentId, offset: u64, bytes: &[u8], sums: &[u32]) {
        let checksum = self.piece.checksum;
        let stored = match self.components.get_mut(component) {
            Some(held) => held.write_summed(offset, bytes, sums, checksum),
            None => Err(StoreError {
                component,
                operation: "write",
                offset,
                length: bytes.len() as u64,
                cause: "it could not be made".to_string(),
            }),
        };
        self.components.note(stored);
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
        debug_assert_eq!(at, bytes.len(), "the units of a piece take all of its bytes");
        // All parity is computed before anything is written: the old data is part of it.
        let all = Span { from, length: to - from };
        // By difference only the changed units and parity are read. The whole row is read when one
        // of these is missing or damaged.
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
                // Parity of a block that cannot be known must not verify: it would be decoded to
                // wrong data.
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
        debug_assert!(
            writes.iter().all(|(_, span, _, bytes)| bytes.len() == span.length as usize),
            "the log would complete a write with bytes of its neighbours"
        );
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
        let together = self.goes_back_together();
        for (component, (_, span, sums, bytes)) in each() {
            let offset = self.offset(*span);
            // Members without volatile data would otherwise have nothing to go back to when the
            // others do.
            if together {
                self.remember(component, offset, bytes.len());
            }
            self.store_on(component, offset, bytes, sums);
        }
        if let Some(log) = self.components.intents() {
            log.end();
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
            debug_assert!(
                all.from <= span.from && span.from + span.length <= all.from + all.length,
                "parity covers every unit that changes"
            );
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
        debug_assert!(
            parities.iter().all(|parity| parity.bytes.len() == all.length as usize),
            "a block of parity stands at the place of its data"
        );
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
        // A hole in a data unit changes its parity, so a part of a row is zeroed by a write.
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
        let together = self.goes_back_together();
        for member in piece.members() {
            if together {
                self.remember(member.component, offset, length as usize);
            }
            if let Some(held) = self.held(member.component) {
                held.discard(offset, length);
            }
        }
        if let Some(log) = self.components.intents() {
            log.end();
        }
    }
}
