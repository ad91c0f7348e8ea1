//! Rolls a row with parity back to a content that it had since the last flush: the same one on all members, so that any
//! member can still be decoded from the others.
//!
//! The changes of one command are rolled back on all members or on none. A write may be torn at the same offset in all
//! units, because parity matches there, too. A member that no longer has its undo data keeps the others from rolling back
//! further.
//!
//! Not here: which rows are rolled back, and what happens to stale members. The cluster decides both.

use super::block_store::BlockStore;
use super::held::Cut;
use super::row::Row;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::BTreeSet;
use std::ops::Range;
use underlay_model::cluster::ComponentId;

const SECTOR: u64 = 512;

impl<S: BlockStore> Row<'_, S> {
    /// Takes the row back to one of its contents, as the seed decides. After a kill in between it is completed.
    pub(super) fn roll_back(&mut self, seed: u64) {
        let unit = u64::from(self.piece.unit_bytes);
        let range = self.piece.row * unit..(self.piece.row + 1) * unit;
        let members: Vec<ComponentId> =
            self.piece.members().iter().map(|member| member.component).collect();
        if let Some(cut) = self.choose_cut(&members, &range, seed) {
            self.take_back(&members, &range, &cut);
        }
        for component in members {
            if let Some(held) = self.held(component) {
                held.settle(&range);
            }
        }
    }

    /// None if nothing is to be taken back.
    fn choose_cut(
        &mut self,
        members: &[ComponentId],
        range: &Range<u64>,
        seed: u64,
    ) -> Option<Cut> {
        let mut moments: BTreeSet<u64> = BTreeSet::new();
        let mut settled = 0;
        for component in members {
            let Some(held) = self.held(*component) else { continue };
            let (more, until) = held.taken_back(range);
            moments.extend(more);
            settled = settled.max(until);
        }
        let moments: Vec<u64> = moments.into_iter().filter(|moment| *moment > settled).collect();
        debug_assert!(moments.is_sorted(), "commands are numbered as they are carried out");
        let mut random = Pcg64::seed_from_u64(seed);
        let moment = *moments.get(random.random_range(0..=moments.len()))?;
        let sectors = (range.end - range.start) / SECTOR;
        let torn_at = match random.random_range(0..2) {
            0 => 0,
            _ => random.random_range(0..sectors),
        };
        Some(Cut { moment, from: range.start + torn_at * SECTOR })
    }

    fn take_back(&mut self, members: &[ComponentId], range: &Range<u64>, cut: &Cut) {
        let mut changes = Vec::new();
        for component in members {
            let change = self.held(*component).and_then(|held| held.rolled_back(range, cut));
            changes.extend(change.map(|change| (*component, change)));
        }
        if let Some(log) = self.components.intents() {
            for (component, (offset, bytes, sums)) in &changes {
                log.store(*component, *offset, bytes, sums);
            }
            log.begin();
        }
        for (component, (offset, bytes, sums)) in &changes {
            if let Some(held) = self.held(*component) {
                held.put_all_back(*offset, bytes, sums);
            }
        }
        if let Some(log) = self.components.intents() {
            log.end();
        }
    }
}
