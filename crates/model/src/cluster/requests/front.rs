//! Requests of volumes: accepted, delayed by the I/O limit and by congestion, split into parts, and finished.
//!
//! What is not here: what a part reads and writes (`part`).

use super::Requests;
use crate::cluster::Cluster;
use crate::cluster::event::{ClusterEvent, IoFailure, Outcome, VolumeFinished};
use crate::cluster::geometry::Rows;
use crate::cluster::ids::{GroupId, VolumeId};
use crate::cluster::iops_limit::normalised;
use crate::cluster::object::{Layout, Slot};
use crate::cluster::objects::Objects;
use crate::cluster::operation::{FrontOperation, Part, Purpose};
use crate::cluster::repair::Repair;
use crate::cluster::slab::Key;
use crate::cluster::stack::Stack;
use crate::cluster::storage::Storage;
use crate::cluster::timers::Timer;
use crate::request::{Operation, Request};
use crate::store::RequestId;
use underlay_core::Nanos;

impl Objects {
    fn has_volatile_components(&self, volume: VolumeId) -> bool {
        let layouts = [Layout::Present, Layout::Next];
        layouts.into_iter().filter_map(|layout| self.object(volume, layout)).any(|object| {
            object
                .components()
                .any(|id| self.component(id).is_some_and(|state| state.volatile.is_some()))
        })
    }
}

impl Storage {
    /// The longest back-off that the disk groups of a set ask for.
    fn ingress_delay(&mut self, volume: VolumeId, set: u32) -> Nanos {
        let Some(volume) = self.objects.volume(volume) else { return Nanos::ZERO };
        let now = self.clock.now();
        let mut delay = Nanos::ZERO;
        let mut ask = |group: GroupId| delay = delay.max(self.inventory.ingress_delay(group, now));
        if let Some(cached) = volume.object.whole_set(set, self.objects.shape()) {
            cached.groups().for_each(ask);
            return delay;
        }
        for id in volume.object.set(set).iter().flat_map(Slot::components) {
            let component = self.objects.component(id);
            if let Some(component) = component.filter(|component| component.reachable) {
                ask(component.group);
            }
        }
        delay
    }
}

impl Requests {
    pub(in crate::cluster) fn start_operation(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
    ) {
        let Some(operation) = self.operations.get(key) else { return };
        let FrontOperation { volume, operation: kind, offset, length, held_back, .. } = *operation;
        storage.refresh_cached_sets(volume);
        let Some(state) = storage.objects.volume(volume) else {
            return self.end_operation(storage, key, Some(IoFailure::VolumeRemoved));
        };
        if kind == Operation::Flush {
            return self.start_flush(storage, repair, key);
        }
        let (layout, rows) = (state.layout, state.object.geometry.split(offset, length));
        if kind == Operation::Write && !held_back {
            let mut delay = Nanos::ZERO;
            for row in rows.clone() {
                delay = delay.max(storage.ingress_delay(volume, row.set));
            }
            if delay > Nanos::ZERO {
                return self.hold_back(storage, key, delay);
            }
        }
        if length == 0 {
            return self.end_operation(storage, key, None);
        }
        // One more than there are, so that the request cannot end while its parts are being started.
        if let Some(entry) = self.operations.get_mut(key) {
            entry.parts_left = 1;
        }
        self.add_parts(storage, repair, key, rows, layout, 0);
        self.part_of_operation_ended(storage, repair, key, Nanos::ZERO, None);
    }

    fn hold_back(&mut self, storage: &mut Storage, key: Key, delay: Nanos) {
        let now = storage.clock.now();
        let Some(operation) = self.operations.get_mut(key) else { return };
        operation.held_back = true;
        let volume = operation.volume;
        if let Some(volume) = storage.objects.volume_mut(volume) {
            volume.counters.congested += 1;
            volume.counters.congestion_ns += delay.0;
        }
        storage.clock.schedule(now + delay, Timer::Start { operation: key });
    }

    /// Starts the parts of a range of a request.
    fn add_parts(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        rows: Rows,
        layout: u32,
        mut buffer_offset: u32,
    ) {
        for range in rows {
            let Some(entry) = self.operations.get_mut(key) else { return };
            entry.parts_left += 1;
            let FrontOperation { volume, operation, head_start, .. } = *entry;
            let purpose = Purpose::Front { operation: key, buffer_offset };
            buffer_offset += range.length;
            let part = Part::new(purpose, volume, operation, range);
            let part = self.parts.insert(Part { layout, head_start, ..part });
            self.begin_part(storage, repair, part);
        }
    }

    /// Starts a part again in the present layout, when the one it was planned for has been replaced; tells whether.
    pub(in crate::cluster) fn replan(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        part: Key,
    ) -> bool {
        let Some(&Part { purpose, volume, layout, range, .. }) = self.parts.get(part) else {
            return false;
        };
        let Purpose::Front { operation: key, buffer_offset } = purpose else { return false };
        let Some(state) = storage.objects.volume(volume).filter(|state| state.layout != layout)
        else {
            return false;
        };
        let (geometry, layout) = (state.object.geometry, state.layout);
        self.parts.remove(part);
        if let Some(operation) = self.operations.get(key) {
            let rows = geometry.split(operation.offset + u64::from(buffer_offset), range.length);
            self.add_parts(storage, repair, key, rows, layout, buffer_offset);
            self.part_of_operation_ended(storage, repair, key, Nanos::ZERO, None);
        }
        true
    }

    fn start_flush(&mut self, storage: &mut Storage, repair: &mut Repair, key: Key) {
        let Some(operation) = self.operations.get_mut(key) else { return };
        operation.parts_left = 1;
        let operation = *operation;
        let range = crate::cluster::geometry::RowRange { set: 0, row: 0, start: 0, length: 0 };
        let purpose = Purpose::Front { operation: key, buffer_offset: 0 };
        let Some(volume) = storage.objects.volume(operation.volume) else { return };
        let (layout, losses) = (volume.layout, volume.losses);
        let part = Part::new(purpose, operation.volume, Operation::Flush, range);
        let head_start = operation.head_start;
        let part = self.parts.insert(Part { layout, losses, head_start, ..part });
        self.begin_flush(storage, repair, part);
    }

    /// One part of a request is done; the request ends with its last part.
    #[inline]
    pub(in crate::cluster) fn part_of_operation_ended(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        service: Nanos,
        failure: Option<IoFailure>,
    ) {
        let Some(operation) = self.operations.get_mut(key) else { return };
        debug_assert!(operation.parts_left > 0, "a part ends once");
        operation.parts_left -= 1;
        operation.service = operation.service.max(service);
        operation.failure = operation.failure.or(failure);
        if operation.parts_left > 0 {
            return;
        }
        let operation = *operation;
        // A write that must be durable goes on as a flush where acknowledged writes are volatile.
        if operation.must_be_durable
            && operation.failure.is_none()
            && storage.objects.has_volatile_components(operation.volume)
        {
            let early = operation.ends.saturating_sub(storage.clock.now());
            let flush = FrontOperation {
                must_be_durable: false,
                head_start: operation.head_start.saturating_sub(early),
                early: operation.early + early,
                ends: Nanos::ZERO,
                ..operation
            };
            if let Some(entry) = self.operations.get_mut(key) {
                *entry = flush;
            }
            self.start_flush(storage, repair, key);
            return;
        }
        self.end_operation(storage, key, operation.failure);
    }

    fn end_operation(&mut self, storage: &mut Storage, key: Key, failure: Option<IoFailure>) {
        let Some(operation) = self.operations.remove(key) else { return };
        // A part that had taken effect before a power cut may be gone again.
        let losses = storage.objects.volume(operation.volume).map_or(0, |volume| volume.losses);
        let undone = losses != operation.losses
            && matches!(operation.operation, Operation::Write | Operation::Discard);
        let failure = failure.or(undone.then_some(IoFailure::UnflushedLost));
        let at = storage.clock.now().max(operation.ends) + operation.early;
        debug_assert!(at >= operation.arrived, "a request ends after it arrived");
        debug_assert!(
            operation.parts_left == 0 || failure.is_some(),
            "a request ends with its last part"
        );
        let took = at - operation.arrived;
        let queue = took.saturating_sub(operation.service + operation.stack);
        if let Some(volume) = storage.objects.volume_mut(operation.volume) {
            debug_assert!(volume.counters.outstanding > 0, "a request ends once");
            volume.counters.outstanding -= 1;
            match failure {
                None => {
                    volume.counters.finished(operation.operation, operation.length, took, queue)
                }
                Some(_) => volume.counters.errors += 1,
            }
        }
        storage.outbox.emit(ClusterEvent::Finished(VolumeFinished {
            request: operation.request,
            volume: operation.volume,
            operation: operation.operation,
            arrived: operation.arrived,
            at,
            early: at - storage.clock.now(),
            queue,
            outcome: failure.map_or(Outcome::Ok, Outcome::Error),
        }));
    }

    /// Ends all requests of a volume that is removed.
    pub(in crate::cluster) fn fail_operations_of(
        &mut self,
        storage: &mut Storage,
        volume: VolumeId,
    ) {
        let keys: Vec<Key> = self
            .operations
            .iter()
            .filter(|(_, operation)| operation.volume == volume)
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            self.end_operation(storage, key, Some(IoFailure::VolumeRemoved));
        }
    }
}

impl Cluster {
    /// Accepts a request to a volume at `now`; it comes back from [`Cluster::advance`] under `id`.
    ///
    /// Reads, writes and discards are multiples of 4 KiB: the export of the volume widens smaller ones.
    ///
    /// # Panics
    /// If the volume does not exist, the request reaches beyond its end, or is not aligned to 4 KiB.
    pub fn submit(&mut self, now: Nanos, volume: VolumeId, request: &Request, id: RequestId) {
        self.submit_early(now, volume, request, id, Nanos::ZERO);
    }

    /// The same, and what happens to the request is told up to `head_start` before its time, for drivers by the wall
    /// clock whose way to the client and back takes that long.
    ///
    /// What is known in advance is taken from: the network's latency, the time in the owner's storage stack, and what a
    /// device said when it was asked. So the load on devices and links stays what it is, and requests that follow each
    /// other keep their distance; the request takes effect when it is told to have ended. A request that is shorter than
    /// its head start is early by less.
    ///
    /// # Panics
    /// As [`Cluster::submit`].
    pub fn submit_early(
        &mut self,
        now: Nanos,
        volume: VolumeId,
        request: &Request,
        id: RequestId,
        head_start: Nanos,
    ) {
        self.run_until(now);
        // Nothing is left to flush where what was acknowledged is durable.
        let is_free = request.operation == Operation::Flush
            && !self.storage.objects.has_volatile_components(volume);
        let stack = if is_free { Stack::NONE } else { self.storage.settings.stack };
        let state = self.storage.objects.volume_mut(volume).expect("the volume exists");
        let end = request.offset_bytes + u64::from(request.length_bytes);
        assert!(end <= state.capacity.0, "request beyond the end of volume {}", volume.0);
        assert!(
            request.offset_bytes.is_multiple_of(4096) && request.length_bytes.is_multiple_of(4096),
            "requests are aligned to 4 KiB"
        );
        state.counters.outstanding += 1;
        let (losses, owner) = (state.losses, state.owner);
        let bytes = u64::from(request.length_bytes);
        let (cost, latency) =
            (stack.cost(request.operation, bytes, &state.policy), stack.latency());
        // What waits for its turn is not in the stack, where it would be in the way of other volumes.
        let passed = self.storage.inventory.pass_stack(owner, now, cost) + latency;
        let early = head_start.min(passed - now);
        let mut start = passed - early;
        if let Some(limit) = &mut state.limit
            && matches!(request.operation, Operation::Read | Operation::Write)
        {
            let ios = normalised(request.length_bytes);
            let turn = limit.admit(start, ios);
            state.counters.normalised += u64::from(ios);
            if turn > start {
                state.counters.normalised_delayed += u64::from(ios);
            }
            start = turn;
        }
        let operation = self.requests.operations.insert(FrontOperation {
            request: id,
            volume,
            operation: request.operation,
            offset: request.offset_bytes,
            length: request.length_bytes,
            must_be_durable: request.force_unit_access && request.operation == Operation::Write,
            arrived: now,
            losses,
            held_back: false,
            parts_left: 0,
            service: Nanos::ZERO,
            stack: cost + latency,
            failure: None,
            head_start: head_start.saturating_sub(early),
            early,
            ends: Nanos::ZERO,
        });
        if start > now {
            self.storage.clock.schedule(start, Timer::Start { operation });
        } else {
            self.requests.start_operation(&mut self.storage, &mut self.repair, operation);
        }
    }
}
