//! Power loss: what is lost, and how members that may differ are made equal again.
//!
//! A power cut can leave the members of a row different: writes in flight reached only some of them, and devices without
//! power-loss protection lose unflushed writes. Where enough members are known to hold a row, the others become stale.
//! Otherwise the row is *in doubt*. As soon as the volume can serve, one member is chosen as the truth before anything is
//! read, and the others are copied from it. Until then, parity of such a row is not used for decoding.

use super::Repair;
use crate::cluster::Cluster;
use crate::cluster::data_command::DataCommand;
use crate::cluster::event::Notice;
use crate::cluster::geometry::{Role, SetKind};
use crate::cluster::ids::{ComponentId, HostId, VolumeId};
use crate::cluster::object::{Component, Layout};
use crate::cluster::objects::Objects;
use crate::cluster::requests::Requests;
use crate::cluster::storage::Storage;
use crate::cluster::topology::Condition;
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
                && self.inventory.hosts[self.inventory.host_of(component.group).0 as usize]
                    .condition
                    == Condition::Up
        })
    }

    /// Whether enough other slots hold a row that a component has lost, within reach or not.
    fn judge_loss(&self, loser: ComponentId, row: u64) -> Loss {
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
        let holds = |id: ComponentId| {
            self.objects.component(id).is_some_and(|other| {
                let host = self.inventory.host_of(other.group);
                let powered = self.inventory.hosts[host.0 as usize].condition != Condition::Crashed;
                let flushed = other.volatile.as_ref().is_none_or(|rows| !rows.contains(row));
                other.is_current(row) && (powered || flushed)
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
        if known.len() < usize::from(kind.data_units()) {
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

    /// Components without power-loss protection lose some of what was not flushed.
    ///
    /// A row that enough others still hold is stale on the loser. Where they do not, its members may differ: a truth is
    /// chosen later, and the next flush reports the loss.
    fn lose_volatile_writes(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        crashed: &[ComponentId],
    ) {
        let mut losers: BTreeMap<ComponentId, Vec<u64>> = BTreeMap::new();
        for id in crashed {
            let volatile =
                storage.objects.component(*id).and_then(|component| component.volatile.as_ref());
            let rows: Vec<u64> = volatile.iter().flat_map(|volatile| volatile.rows()).collect();
            if !rows.is_empty() {
                let seed = storage.random.next_u64();
                storage.outbox.command(DataCommand::PowerCut { component: *id, seed });
                losers.insert(*id, rows);
            }
        }
        let verdicts: Vec<(ComponentId, u64, Loss)> = losers
            .iter()
            .flat_map(|(id, rows)| rows.iter().map(|row| (*id, *row)))
            .map(|(id, row)| (id, row, storage.judge_loss(id, row)))
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
                    self.mark_in_doubt(storage, requests, volume, set, row);
                }
            }
        }
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
        for host in hosts {
            self.storage.inventory.hosts[host.0 as usize].condition = Condition::Crashed;
        }
        self.storage.inventory.look_for_silence();
        let now = self.storage.clock.now();
        for index in 0..self.storage.inventory.groups.len() {
            if hosts.contains(&self.storage.inventory.groups[index].host) {
                self.storage.inventory.groups[index].engine.power_cut(now);
                self.storage.inventory.note_wakeup(index);
            }
        }
        self.requests.lose_power(hosts);
        let touched: Vec<(ComponentId, VolumeId)> = self
            .storage
            .objects
            .components
            .iter()
            .flatten()
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
