//! Policy changes: a second layout is filled next to the present one, then replaces it.
//!
//! From the start each write goes to both layouts, so only older data has to be copied, unit by unit of the volume's address
//! space. Reads are served by the old layout until the new one is complete. A new layout that loses a component is abandoned
//! and built again when the cluster is healthy.

use super::Repair;
use crate::cluster::data_command::DataCommand;
use crate::cluster::event::{Notice, ResyncReason};
use crate::cluster::geometry::{Geometry, RowRange};
use crate::cluster::ids::{ComponentId, VolumeId};
use crate::cluster::object::{Layout, Object};
use crate::cluster::objects::Objects;
use crate::cluster::operation::{Failed, Part, Phase, Purpose};
use crate::cluster::policy::Policy;
use crate::cluster::policy_change::Reshape;
use crate::cluster::regions::RegionSet;
use crate::cluster::requests::Requests;
use crate::cluster::row_copy::RowCopy;
use crate::cluster::slab::Key;
use crate::cluster::storage::Storage;
use crate::request::Operation;
use crate::scheduler::IoClass;
use underlay_core::{Bytes, Nanos};

impl Objects {
    fn units_with_data(&self, volume: VolumeId) -> RegionSet {
        let Some(state) = self.volume(volume) else { return RegionSet::new(0) };
        let geometry = state.object.geometry;
        let unit_bytes = u64::from(geometry.unit_bytes);
        let mut units = RegionSet::new(geometry.capacity_bytes.div_ceil(unit_bytes));
        for set in 0..geometry.sets {
            for row in self.rows_with_data(volume, set).iter() {
                let first = geometry.row_offset(set, row) / unit_bytes;
                for index in 0..u64::from(geometry.kind.data_units()) {
                    if first + index < units.limit() {
                        units.insert(first + index);
                    }
                }
            }
        }
        units
    }

    /// The same bytes of the volume in the new layout.
    fn next_range(&self, from: Geometry, to: Geometry, part: &Part) -> RowRange {
        let offset = from.row_offset(part.range.set, part.range.row) + u64::from(part.range.start);
        to.locate(offset, part.range.length)
    }
}

impl Storage {
    fn next_unit_slice(&mut self, volume: VolumeId) -> Option<(u64, u32, u32)> {
        let unit_bytes = self.settings.stripe_unit.0;
        let slice = self.settings.resync_slice.0;
        let state = self.objects.volume_mut(volume)?;
        let capacity = state.capacity.0;
        let reshape = state.reshape.as_mut()?;
        let end = |unit: u64| unit_bytes.min(capacity - unit * unit_bytes) as u32;
        // A unit that has begun is finished first: only complete units count, and an interruption
        // loses the others.
        let open = reshape
            .units
            .iter()
            .position(|copied| !copied.spoiled && copied.begun < end(copied.row));
        let at = match open {
            Some(at) => at,
            None => {
                let busy = |unit: &u64| reshape.units.iter().any(|copied| copied.row == *unit);
                let from = reshape.cursor;
                // From the cursor on, then from the beginning: units whose copy failed are still
                // pending there.
                let after = std::iter::successors(reshape.pending.next_from(from), |unit| {
                    reshape.pending.next_from(unit + 1)
                });
                let unit = after
                    .chain(reshape.pending.iter().take_while(|unit| *unit < from))
                    .find(|unit| !busy(unit))?;
                reshape.cursor = unit + 1;
                reshape.units.push(RowCopy { row: unit, begun: 0, in_flight: 0, spoiled: false });
                reshape.units.len() - 1
            }
        };
        let copied = &mut reshape.units[at];
        let start = copied.begun;
        let length = (slice as u32).min(end(copied.row) - start);
        copied.begun += length;
        copied.in_flight += 1;
        reshape.in_flight += 1;
        Some((copied.row, start, length))
    }

    /// Takes the space of a row on all members of the new layout.
    fn take_space(&mut self, volume: VolumeId, range: &RowRange) -> bool {
        let Some(piece) = self.objects.piece(volume, Layout::Next, range, &Failed::NONE) else {
            return false;
        };
        self.allocate(range, &piece)
    }
}

impl Repair {
    /// Begins to fill a new layout.
    pub(in crate::cluster) fn begin_reshape(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        volume: VolumeId,
        object: Object,
        policy: Policy,
    ) {
        let pending = storage.objects.units_with_data(volume);
        let bytes = Bytes(pending.count() * storage.settings.stripe_unit.0);
        let epoch = self.resync.next_epoch();
        if let Some(state) = storage.objects.volume_mut(volume) {
            state.wanted = None;
            state.reshape = Some(Box::new(Reshape {
                object,
                policy,
                pending,
                units: Vec::new(),
                cursor: 0,
                in_flight: 0,
                epoch,
            }));
        }
        storage.outbox.notice(
            storage.clock.now(),
            Notice::ResyncStarted { volume, reason: ResyncReason::Policy, bytes },
        );
        self.membership_changed(storage, requests);
        self.pump_reshape(storage, requests, volume);
    }

    /// Begins slices until the window is full; ends the change when nothing is left.
    pub(in crate::cluster) fn pump_reshape(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        volume: VolumeId,
    ) {
        while let Some(state) = storage.objects.volume(volume)
            && let Some(reshape) = &state.reshape
        {
            if reshape.in_flight >= storage.settings.resync_window {
                return;
            }
            if reshape.pending.is_empty() && reshape.units.is_empty() {
                return self.finish_reshape(storage, requests, volume);
            }
            let Some((unit, start, length)) = storage.next_unit_slice(volume) else { return };
            self.begin_unit_slice(storage, requests, volume, unit, start, length);
        }
    }

    fn begin_unit_slice(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        volume: VolumeId,
        unit: u64,
        start: u32,
        length: u32,
    ) {
        let Some(state) = storage.objects.volume(volume) else { return };
        let Some(reshape) = &state.reshape else { return };
        let (owner, epoch) = (state.owner, reshape.epoch);
        let offset = unit * storage.settings.stripe_unit.0 + u64::from(start);
        let range = state.object.geometry.locate(offset, length);
        let purpose = Purpose::Reshape { epoch, unit };
        self.resync.rate.begin(storage.clock.now());
        let part = requests.begin_copy(purpose, volume, range);
        let reads = storage
            .objects
            .piece(volume, Layout::Present, &range, &Failed::NONE)
            .and_then(|piece| storage.objects.reads_of(&piece, &range, IoClass::Resync));
        match reads {
            Some(reads) => requests.issue_from(storage, self, part, owner, Nanos::ZERO, &reads),
            // The present layout cannot be read now, so the new one could not be completed.
            None => {
                requests.end_copy(part);
                self.abandon_reshape(storage, volume);
            }
        }
    }

    pub(in crate::cluster) fn reshape_phase_ended(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        key: Key,
        part: &Part,
    ) {
        let Purpose::Reshape { epoch, unit } = part.purpose else { return };
        // The change may have been abandoned, or replaced by another, while the slice was in
        // flight.
        let Some((next, owner)) = storage.objects.volume(part.volume).and_then(|state| {
            let reshape = state.reshape.as_ref().filter(|reshape| reshape.epoch == epoch)?;
            Some((
                storage.objects.next_range(state.object.geometry, reshape.object.geometry, part),
                state.owner,
            ))
        }) else {
            requests.end_copy(key);
            return;
        };
        if !part.failed.is_empty() {
            requests.end_copy(key);
            return self.unit_slice_ended(storage, requests, part.volume, unit, Copied::No);
        }
        if part.phase == Phase::Reading {
            if !storage.take_space(part.volume, &next) {
                requests.end_copy(key);
                return self.abandon_reshape(storage, part.volume);
            }
            requests.begin_copy_write(key);
            let wants = storage
                .objects
                .writes_of(part.volume, Layout::Next, &next, Operation::Write)
                .of_class(IoClass::Resync);
            return requests.issue_from(storage, self, key, owner, Nanos::ZERO, &wants);
        }
        requests.end_copy(key);
        self.commit_unit_slice(storage, requests, part, unit, &next);
    }

    fn commit_unit_slice(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        part: &Part,
        unit: u64,
        next: &RowRange,
    ) {
        let from = storage.piece_now(part.volume, Layout::Present, &part.range, &Failed::NONE);
        let to = storage.piece_now(part.volume, Layout::Next, next, &Failed::NONE);
        let (Some(from), Some(to)) = (from, to) else { return };
        // The data plane reads the bytes only now, and members may have been lost since the slice
        // was read.
        if storage.objects.reads_of(&from, &part.range, IoClass::Resync).is_none() {
            return self.unit_slice_ended(storage, requests, part.volume, unit, Copied::No);
        }
        storage.outbox.command(DataCommand::Reshape { from, to });
        self.resync.count(storage.clock.now(), ResyncReason::Policy, u64::from(part.range.length));
        self.unit_slice_ended(storage, requests, part.volume, unit, Copied::Yes);
    }

    fn unit_slice_ended(
        &mut self,
        storage: &mut Storage,
        requests: &mut Requests,
        volume: VolumeId,
        unit: u64,
        copied_all: Copied,
    ) {
        let unit_bytes = storage.settings.stripe_unit.0;
        let Some(state) = storage.objects.volume_mut(volume) else { return };
        let end = unit_bytes.min(state.capacity.0 - unit * unit_bytes) as u32;
        let Some(reshape) = &mut state.reshape else { return };
        debug_assert!(reshape.in_flight > 0, "a slice ends once");
        reshape.in_flight -= 1;
        if let Some(at) = reshape.units.iter().position(|copied| copied.row == unit) {
            let copied = &mut reshape.units[at];
            debug_assert!(
                copied.in_flight > 0 && copied.begun <= end,
                "a slice of a unit ends once"
            );
            copied.in_flight -= 1;
            copied.spoiled |= copied_all == Copied::No;
            if copied.in_flight == 0 && (copied.spoiled || copied.begun == end) {
                if !copied.spoiled {
                    reshape.pending.remove(unit);
                }
                reshape.units.swap_remove(at);
            }
        }
        self.pump_reshape(storage, requests, volume);
    }

    fn finish_reshape(&mut self, storage: &mut Storage, requests: &mut Requests, volume: VolumeId) {
        let Some(state) = storage.objects.volume_mut(volume) else { return };
        let Some(reshape) = state.reshape.take() else { return };
        let reshape = *reshape;
        state.policy = reshape.policy;
        // Parts in flight were planned for the old layout. By this number they notice, and are
        // planned again.
        state.layout = state.layout.wrapping_add(1);
        let old = std::mem::replace(&mut state.object, reshape.object);
        storage.objects.shape_changed();
        for id in old.components().collect::<Vec<_>>() {
            storage.remove_component(id);
        }
        for host in &old.witnesses {
            storage.inventory.discount_on_host(*host);
        }
        let ids: Vec<ComponentId> = storage
            .objects
            .object(volume, Layout::Present)
            .map_or(Vec::new(), |o| o.components().collect());
        for id in ids {
            if let Some(component) = storage.objects.component_mut(id) {
                component.layout = Layout::Present;
            }
        }
        storage.outbox.notice(
            storage.clock.now(),
            Notice::ResyncFinished { volume, reason: ResyncReason::Policy },
        );
        self.membership_changed(storage, requests);
    }

    /// Gives a policy change up; it is tried again when the cluster is whole.
    pub(in crate::cluster) fn abandon_reshape(&mut self, storage: &mut Storage, volume: VolumeId) {
        let Some(state) = storage.objects.volume_mut(volume) else { return };
        let Some(reshape) = state.reshape.take() else { return };
        state.wanted = Some(reshape.policy);
        for id in reshape.object.components().collect::<Vec<_>>() {
            storage.remove_component(id);
        }
        for host in &reshape.object.witnesses {
            storage.inventory.discount_on_host(*host);
        }
        storage.outbox.notice(
            storage.clock.now(),
            Notice::ResyncAbandoned { volume, reason: ResyncReason::Policy },
        );
        self.schedule_retry(storage);
    }
}

/// Whether a slice is in its new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    Yes,
    No,
}
