//! Power loss: what is lost, and how members that may differ are made equal again.
//!
//! Devices without power-loss protection lose unflushed writes. Where enough members are known to hold a row, the others become
//! stale. Otherwise what happens depends on how the row is protected:
//!
//! * **Parity.** The row goes back to one content, the same on all members ([`DataCommand::RollBack`]). Members that lost
//!   different writes would have parity that does not fit, and if one of them is then unreachable, its block is lost,
//!   flushed or not. Real systems can roll back because a write buffer is a log: unflushed entries do not overwrite flushed
//!   ones, and each entry names the update of the row that it belongs to.
//! * **Mirrors.** The row is *in doubt*: its replicas may differ. As soon as the volume can serve, one of them is chosen as
//!   the truth before anything is read, and the others are copied from it. The same holds for writes of mirrors that were
//!   in flight.
//!
//! Rows with parity are in doubt only after this program's own host went down (see [`crate::cluster::Restart`]). Until all their data
//! is within reach, their parity is not used.

use super::Repair;
use crate::cluster::Cluster;
use crate::cluster::data_command::{Content, DataCommand, Piece, PieceMember};
use crate::cluster::event::Notice;
use crate::cluster::geometry::{Geometry, Role, SetKind};
use crate::cluster::ids::{ComponentId, HostId, VolumeId};
use crate::cluster::membership::Condition;
use crate::cluster::object::{Component, Layout};
use crate::cluster::objects::Objects;
use crate::cluster::requests::Requests;
use crate::cluster::storage::Storage;
use rand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use underlay_core::Bytes;

impl Objects {
    fn is_unsure(&self, id: ComponentId, row: u64) -> bool {
        let unsure = self.component(id).and_then(|component| component.unsure.as_ref());
        unsure.is_some_and(|unsure| unsure.contains(row))
    }
}

impl Storage {
    /// Whether the component's content of a row is current, and its host has power.
    fn is_sound(&self, id: ComponentId, row: u64) -> bool {
        self.objects.component(id).is_some_and(|component| {
            component.reachable
                && component.is_current(row)
                && self.membership.condition(self.inventory.host_of(component.group))
                    == Condition::Up
        })
    }

    fn is_mirrored(&self, volume: VolumeId) -> bool {
        let object = self.objects.object(volume, Layout::Present);
        object.is_some_and(|object| matches!(object.geometry.kind, SetKind::Mirror { .. }))
    }

    /// Whether enough other slots hold a row that a component has lost together with those that crashed with it. Of a mirror they
    /// may be out of reach; with parity, who was away before may never return, and the loser would be missing as well.
    fn judge_loss(&self, loser: ComponentId, row: u64, crashed: &BTreeSet<ComponentId>) -> Loss {
        let Some(component) = self.objects.component(loser) else { return Loss::Nowhere };
        let Some(object) = self.objects.object(component.volume, Layout::Present) else {
            return Loss::Nowhere;
        };
        if !component.is_current(row) {
            // No content of the volume's; but a copy of the row that is under way begins again.
            return Loss::HeldByOthers;
        }
        if object.in_doubt[component.set as usize].contains(row) {
            return Loss::Nowhere;
        }
        let is_mirror = matches!(object.geometry.kind, SetKind::Mirror { .. });
        let holds = |id: ComponentId| {
            self.objects.component(id).is_some_and(|other| {
                let host = self.inventory.host_of(other.group);
                let powered = self.membership.has_power(host);
                let flushed = other.volatile.as_ref().is_none_or(|rows| !rows.contains(row));
                let counts = is_mirror || other.reachable && powered || crashed.contains(&id);
                other.is_current(row) && (powered || flushed) && counts
            })
        };
        let others = object.set(component.set).iter().enumerate().filter(|(slot, components)| {
            *slot != usize::from(component.slot) && components.components().any(holds)
        });
        if others.count() >= usize::from(object.geometry.kind.data_units()) {
            Loss::HeldByOthers
        } else {
            Loss::Nowhere
        }
    }
}

impl Repair {
    /// The row's members may differ; settled as soon as a member can be chosen as the truth.
    pub(in crate::cluster) fn mark_in_doubt(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        volume: VolumeId,
        set: u32,
        row: u64,
    ) {
        if let Some(object) = storage.objects.object_mut(volume, Layout::Present) {
            object.in_doubt[set as usize].insert(row);
        }
        storage.objects.shape_changed();
        storage.outbox.state_changed();
        self.settle_doubts(storage, requests, volume);
    }

    /// Chooses a truth for rows in doubt: the first current replica, or the data units of a row with parity.
    pub(in crate::cluster) fn settle_doubts(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        volume: VolumeId,
    ) {
        let Some(object) = storage.objects.object(volume, Layout::Present) else { return };
        if object.side.is_none() {
            return;
        }
        for set in 0..object.geometry.sets {
            let Some(object) = storage.objects.object(volume, Layout::Present) else { return };
            let rows: Vec<u64> = object.in_doubt[set as usize].iter().collect();
            for row in rows {
                self.settle(storage, requests, volume, set, row);
            }
        }
    }

    fn settle(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        volume: VolumeId,
        set: u32,
        row: u64,
    ) {
        let Some(object) = storage.objects.object(volume, Layout::Present) else { return };
        let kind = object.geometry.kind;
        let members: Vec<(u8, ComponentId)> = object
            .set(set)
            .iter()
            .enumerate()
            .flat_map(|(slot, components)| components.components().map(move |id| (slot as u8, id)))
            .collect();
        let sound: Vec<(u8, ComponentId)> =
            members.iter().copied().filter(|(_, id)| storage.is_sound(*id, row)).collect();
        let known: BTreeSet<u8> = sound.iter().map(|(slot, _)| *slot).collect();
        let can_be_settled = match kind {
            SetKind::Mirror { .. } => !known.is_empty(),
            // Parity is the only source of unreachable data, so it is recomputed only if all data
            // is present.
            SetKind::Parity { data, .. } => {
                (0..data).all(|index| known.contains(&kind.data_member(row, index)))
            }
        };
        if !can_be_settled {
            return;
        }
        // A block that one member is known to have lost may be whole on another one.
        let truth = sound
            .iter()
            .find(|(_, id)| !storage.objects.is_unsure(*id, row))
            .unwrap_or(&sound[0])
            .1;
        if let Some(object) = storage.objects.object_mut(volume, Layout::Present) {
            debug_assert!(
                object.in_doubt[set as usize].contains(row),
                "only a row in doubt is settled"
            );
            object.in_doubt[set as usize].remove(row);
        }
        storage.objects.shape_changed();
        for (slot, id) in members {
            let differs = match kind {
                SetKind::Mirror { .. } => id != truth,
                SetKind::Parity { .. } => matches!(kind.role(row, slot), Role::Parity(_)),
            };
            if differs {
                self.mark_stale(storage, requests, id, row);
            }
        }
    }

    /// What is left of a row with parity does not tell what it held: all members go back to one content of it.
    fn roll_back(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        volume: VolumeId,
        set: u32,
        row: u64,
    ) {
        let Some(object) = storage.objects.object(volume, Layout::Present) else { return };
        let Geometry { kind, unit_bytes, .. } = object.geometry;
        let row_bytes = unit_bytes * u32::from(kind.data_units());
        let mut piece = Piece::new(kind, unit_bytes, row, object.checksum).with_range(0, row_bytes);
        let mut behind: Vec<ComponentId> = Vec::new();
        for (slot, components) in object.set(set).iter().enumerate() {
            for id in components.components() {
                if storage.objects.component(id).is_some_and(|it| it.is_current(row)) {
                    let content = Content::Current;
                    piece.push(PieceMember { component: id, slot: slot as u8, content });
                } else {
                    behind.push(id);
                }
            }
        }
        debug_assert!(row < object.geometry.rows_per_set(), "row {row} is beyond the component");
        debug_assert!(
            piece.members().len() + behind.len() >= usize::from(kind.members()),
            "each slot has a component"
        );
        // A copy of the row that is under way has some of what is taken back: it begins again.
        for id in behind {
            self.mark_stale(storage, requests, id, row);
        }
        let seed = storage.random.next_u64();
        storage.outbox.command(DataCommand::RollBack { piece, seed });
    }

    /// Components without power-loss protection lose some of what was not flushed.
    ///
    /// A row that enough others still hold is stale on the loser. Where they do not, the row goes back to one content, or a truth is
    /// chosen later; the next flush reports the loss.
    fn lose_volatile_writes(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        crashed: &[ComponentId],
    ) {
        let mut losers: BTreeMap<ComponentId, Vec<u64>> = BTreeMap::new();
        let mut cuts: Vec<DataCommand> = Vec::new();
        for id in crashed {
            let volatile =
                storage.objects.component(*id).and_then(|component| component.volatile.as_ref());
            let rows: Vec<u64> = volatile.iter().flat_map(|volatile| volatile.rows()).collect();
            if !rows.is_empty() {
                let seed = storage.random.next_u64();
                cuts.push(DataCommand::PowerCut { component: *id, seed });
                losers.insert(*id, rows);
            }
        }
        let together: BTreeSet<ComponentId> = crashed.iter().copied().collect();
        let verdicts: Vec<(ComponentId, u64, Loss)> = losers
            .iter()
            .flat_map(|(id, rows)| rows.iter().map(|row| (*id, *row)))
            .map(|(id, row)| (id, row, storage.judge_loss(id, row, &together)))
            .collect();
        for id in losers.keys() {
            if let Some(component) = storage.objects.component_mut(*id)
                && let Some(volatile) = &mut component.volatile
            {
                volatile.forget();
            }
        }
        let mut volumes: BTreeMap<VolumeId, BTreeSet<(u32, u64)>> = BTreeMap::new();
        for (id, row, loss) in verdicts {
            let Some(Component { volume, set, .. }) = storage.objects.component(id) else {
                continue;
            };
            let (volume, set) = (*volume, *set);
            match loss {
                Loss::HeldByOthers => self.mark_stale(storage, requests, id, row),
                Loss::Nowhere => {
                    volumes.entry(volume).or_default().insert((set, row));
                    if storage.is_mirrored(volume) {
                        self.mark_in_doubt(storage, requests, volume, set, row);
                    }
                }
            }
        }
        // Who is stale must be known before its bytes are something else.
        storage.emit_changed_state();
        for (volume, rows) in &volumes {
            if !storage.is_mirrored(*volume) {
                for (set, row) in rows {
                    self.roll_back(storage, requests, *volume, *set, *row);
                }
            }
        }
        cuts.into_iter().for_each(|cut| storage.outbox.command(cut));
        let unit_bytes = storage.settings.stripe_unit.0;
        for (volume, rows) in volumes {
            let Some(state) = storage.objects.volume_mut(volume) else { continue };
            state.losses = state.losses.wrapping_add(1);
            let row_bytes = u64::from(state.object.geometry.kind.data_units()) * unit_bytes;
            let most = Bytes(rows.len() as u64 * row_bytes);
            storage.outbox.notice(storage.clock.now(), Notice::UnflushedLost { volume, most });
        }
    }
}

impl Cluster {
    /// Hosts lost power at the same moment.
    pub(in crate::cluster) fn crash(&mut self, hosts: &[HostId]) {
        self.storage.membership.lose_power(hosts);
        self.storage.inventory.power_cut(hosts, self.storage.clock.now());
        self.requests.lose_power(hosts);
        let touched: Vec<(ComponentId, VolumeId)> = self
            .storage
            .objects
            .components()
            .filter(|component| hosts.contains(&self.storage.inventory.host_of(component.group)))
            .map(|component| (component.id, component.volume))
            .collect();
        let volumes: BTreeSet<VolumeId> = touched.iter().map(|(_, volume)| *volume).collect();
        for volume in volumes {
            self.repair.abandon_reshape(&mut self.storage, volume);
        }
        let crashed: Vec<ComponentId> = touched.into_iter().map(|(id, _)| id).collect();
        self.repair.lose_volatile_writes(&mut self.storage, &mut self.requests, &crashed);
    }
}

/// What the loss of a row on one component means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    HeldByOthers,
    Nowhere,
}
