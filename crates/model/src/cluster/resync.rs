//! Filling stale components: slice by slice, from the other members, within a window per disk group.
//!
//! One engine serves all reasons: a component that returned copies the rows it missed, a new one copies all rows that hold
//! data. Rows that hold data nowhere cost nothing. A slice reads its sources, writes its target, and takes effect in
//! the data plane at one moment; writes of the volume go to the target all the while, so that a row is current as soon as
//! all its slices are. What is left is the set of stale rows, which survives interruptions and restarts.

use super::cluster::Cluster;
use super::data_command::DataCommand;
use super::event::{Notice, ResyncReason};
use super::geometry::RowRange;
use super::ids::{ComponentId, GroupId, VolumeId};
use super::object::{Copy, Layout};
use super::operation::{Part, Phase, Purpose};
use super::resync_pace::ResyncPace;
use super::resync_search::Next;
use super::row_plan::row_is_known;
use super::slab::Key;
use super::timers::Timer;
use super::wants::Wanted;
use super::wants::Wants;
use crate::request::Operation;
use crate::scheduler::IoClass;
use underlay_core::{Bytes, Nanos};

/// A row of which slices are in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowCopy {
    pub(super) row: u64,
    /// Bytes of which the copy has begun.
    pub(super) begun: u32,
    /// Slices in flight.
    pub(super) in_flight: u32,
    /// A slice failed, or a write was missed: the row stays stale.
    pub(super) spoiled: bool,
}

/// What has been copied so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ResyncState {
    /// Tells slices of an earlier copy from those of the present one.
    epochs: u32,
    /// Bytes written by copies, per [`ResyncReason::ALL`].
    pub(super) copied_bytes: [u64; 4],
    /// Slices written by copies, likewise.
    pub(super) slices: [u64; 4],
    pub(super) pace: ResyncPace,
    /// Whether a retry is scheduled.
    pub(super) retry_scheduled: bool,
}

impl ResyncState {
    /// Number of a copy that begins.
    pub(super) fn next_epoch(&mut self) -> u32 {
        self.epochs = self.epochs.wrapping_add(1);
        self.epochs
    }

    /// Counts a slice.
    pub(super) fn count(&mut self, now: Nanos, reason: ResyncReason, bytes: u64) {
        self.copied_bytes[reason as usize] += bytes;
        self.slices[reason as usize] += 1;
        self.pace.count(now, bytes);
    }
}

impl Cluster {
    /// Makes sure that a stale, reachable component is being filled.
    pub(super) fn ensure_copy(&mut self, id: ComponentId) {
        let Some(component) = self.component(id) else { return };
        if !component.reachable || component.layout != Layout::Present {
            return;
        }
        if component.copy.is_some() {
            return;
        }
        if component.stale.is_empty() {
            return self.fill_complete(id);
        }
        let (volume, reason, group) = (component.volume, component.reason, component.group);
        let bytes = Bytes(component.stale.count() * self.settings.stripe_unit.0);
        let epoch = self.resync.next_epoch();
        if let Some(component) = self.component_mut(id) {
            component.copy =
                Some(Box::new(Copy { epoch, rows: Vec::new(), cursor: 0, blocked: false }));
        }
        self.groups[group.0 as usize].filling.push_back(id);
        self.outbox.notice(self.clock.now(), Notice::ResyncStarted { volume, reason, bytes });
        self.announce(id);
        self.pump(group);
    }

    /// Tries blocked and new copies again, and repairs that are overdue.
    pub(super) fn retry_copies(&mut self) {
        self.resync.retry_scheduled = false;
        let ids: Vec<ComponentId> =
            self.components.iter().flatten().map(|component| component.id).collect();
        for id in ids {
            let Some(component) = self.component_mut(id) else { continue };
            if let Some(copy) = &mut component.copy
                && copy.blocked
            {
                copy.blocked = false;
                let group = component.group;
                // Announced when a slice begins: most looks change nothing.
                self.groups[group.0 as usize].filling.push_back(id);
            }
            self.ensure_copy(id);
            self.repair_if_overdue(id);
        }
        for index in 0..self.groups.len() {
            self.pump(GroupId(index as u32));
        }
    }

    /// Begins slices towards a group until its window is full.
    pub(super) fn pump(&mut self, group: GroupId) {
        let index = group.0 as usize;
        while self.groups[index].resync_in_flight < self.settings.resync_window {
            let mut position = 0;
            let begun = loop {
                let Some(id) = self.groups[index].filling.get(position).copied() else {
                    break false;
                };
                match self.next_slice(id) {
                    Next::Slice(range) => {
                        self.announce(id);
                        self.begin_slice(id, group, range);
                        break true;
                    }
                    Next::Waiting => position += 1,
                    Next::Blocked => {
                        self.groups[index].filling.retain(|filled| *filled != id);
                        if let Some(component) = self.component_mut(id)
                            && let Some(copy) = &mut component.copy
                        {
                            copy.blocked = true;
                        }
                        self.announce(id);
                    }
                    Next::Complete => {
                        self.groups[index].filling.retain(|filled| *filled != id);
                        if let Some(component) = self.component_mut(id) {
                            component.copy = None;
                        }
                        self.fill_complete(id);
                    }
                }
            };
            if !begun {
                return;
            }
        }
    }

    fn begin_slice(&mut self, id: ComponentId, group: GroupId, range: RowRange) {
        let Some(component) = self.component(id) else { return };
        let Some(copy) = &component.copy else { return };
        let (epoch, volume) = (copy.epoch, component.volume);
        let purpose = Purpose::Resync { component: id, group, epoch };
        self.groups[group.0 as usize].resync_in_flight += 1;
        self.resync.pace.begin(self.clock.now());
        let part = self.parts.insert(Part::new(purpose, volume, Operation::Write, range));
        let client = self.host_of(group);
        let wants = self.slice_reads(id, &range);
        self.issue_from(part, client, Nanos::ZERO, &wants);
    }

    pub(super) fn resync_phase_ended(&mut self, key: Key, part: &Part) {
        let Purpose::Resync { component: id, group, epoch } = part.purpose else { return };
        let alive = self.component(id).is_some_and(|component| {
            component.copy.as_ref().is_some_and(|copy| copy.epoch == epoch)
        });
        let known = alive
            && part.failed.is_empty()
            && self.sources(id, part.range.row).is_some_and(|piece| {
                let slot = self.component(id).map_or(0, |component| component.slot);
                piece.current(slot).is_some() || row_is_known(&piece)
            });
        if known && part.phase == Phase::Reading {
            let mut wants = Wants::new();
            wants.push(Wanted {
                component: id,
                operation: Operation::Write,
                offset: part.range.row * self.settings.stripe_unit.0 + u64::from(part.range.start),
                length: part.range.length,
                class: IoClass::Resync,
            });
            if let Some(entry) = self.parts.get_mut(key) {
                entry.phase = Phase::Writing;
            }
            let client = self.host_of(group);
            return self.issue_from(key, client, Nanos::ZERO, &wants);
        }
        self.parts.remove(key);
        self.groups[group.0 as usize].resync_in_flight -= 1;
        if known {
            self.commit_slice(id, &part.range);
        }
        if alive {
            self.slice_ended(id, part.range.row, known);
        }
        self.pump(group);
    }

    fn commit_slice(&mut self, id: ComponentId, range: &RowRange) {
        let (Some(piece), Some(component)) = (self.sources(id, range.row), self.component(id))
        else {
            return;
        };
        let (slot, reason) = (component.slot, component.reason);
        let piece = piece.with_range(range.start, range.length);
        self.outbox.command(DataCommand::Resync { piece, target: id, slot });
        self.resync.count(self.clock.now(), reason, u64::from(range.length));
    }

    fn slice_ended(&mut self, id: ComponentId, row: u64, copied_all: bool) {
        let unit_bytes = self.settings.stripe_unit.0 as u32;
        let Some(component) = self.component_mut(id) else { return };
        let Some(copy) = &mut component.copy else { return };
        let Some(at) = copy.rows.iter().position(|copied| copied.row == row) else { return };
        let copied = &mut copy.rows[at];
        copied.in_flight -= 1;
        copied.spoiled |= !copied_all;
        if copied.in_flight > 0 || (!copied.spoiled && copied.begun < unit_bytes) {
            return;
        }
        let caught_up =
            !copied.spoiled && component.stale.remove(row) && component.stale.is_empty();
        copy.rows.swap_remove(at);
        if caught_up {
            self.shape_changed();
        }
    }

    /// Nothing of the component is stale any more.
    fn fill_complete(&mut self, id: ComponentId) {
        let Some(component) = self.component_mut(id) else { return };
        let (volume, set, slot, reason) =
            (component.volume, component.set, component.slot, component.reason);
        let was_filling = component.announced != super::event::ComponentState::Active;
        let Some(object) = self.object_mut(volume, Layout::Present) else { return };
        let place = object.slot_mut(set, slot);
        if place.replacement == Some(id) {
            let old = place.current;
            *place = super::object::Slot { current: id, replacement: None };
            self.shape_changed();
            self.remove_component(old);
        } else if place.current == id && place.replacement.is_some() && was_filling {
            self.drop_replacement(volume, set, slot);
        }
        self.announce(id);
        if was_filling {
            self.outbox.notice(self.clock.now(), Notice::ResyncFinished { volume, reason });
            self.fill_changed_object(volume, reason);
        }
    }

    fn fill_changed_object(&mut self, volume: VolumeId, reason: ResyncReason) {
        self.announce_availability(volume);
        if reason == ResyncReason::Rebalance {
            self.rebalance_now();
        }
    }

    /// Looks again at copies that are blocked, a little later.
    pub(super) fn schedule_retry(&mut self) {
        if !self.resync.retry_scheduled {
            self.resync.retry_scheduled = true;
            let at = self.clock.now() + self.settings.rebalance_interval;
            self.clock.schedule(at, Timer::RetryCopies);
        }
    }
}
