//! Parts of requests: what they read and write, and the moment they take effect.
//!
//! A write takes effect when the last component has acknowledged it: the data plane then stores it on all members at once.
//! Components that could not accept it become stale. A read takes effect when its data has arrived. A part that lost a
//! component is retried as long as the volume can serve; it never waits longer than the failure detection time.

use super::Requests;
use super::subrequest::Sender;
use crate::cluster::data_command::Piece;
use crate::cluster::event::IoFailure;
use crate::cluster::geometry::{RowRange, SetKind};
use crate::cluster::ids::{ComponentId, GroupId, HostId, VolumeId};
use crate::cluster::object::{Layout, Object};
use crate::cluster::objects::Objects;
use crate::cluster::operation::{Aim, Failed, Phase, Purpose};
use crate::cluster::policy::Checksum;
use crate::cluster::repair::Repair;
use crate::cluster::row_members::row_is_known;
use crate::cluster::row_plan::{SLOTS_MAX, UnitRange, parity_read, parity_write_reads, touched};
use crate::cluster::slab::Key;
use crate::cluster::storage::Storage;
use crate::cluster::timers::Timer;
use crate::cluster::wants::{Wanted, Wants};
use crate::request::Operation;
use crate::scheduler::IoClass;
use underlay_core::Nanos;

/// How often a part is tried before the volume answers an error.
const ATTEMPTS_MAX: u8 = 16;

impl Objects {
    /// The I/Os that read a range of a row; none if too few members are current.
    pub(in crate::cluster) fn reads_of(
        &self,
        piece: &Piece,
        range: &RowRange,
        class: IoClass,
    ) -> Option<Wants> {
        let mut wants = Wants::new();
        let base = range.row * u64::from(piece.unit_bytes);
        let read = |component, range: UnitRange| Wanted {
            component,
            operation: Operation::Read,
            offset: base + u64::from(range.from),
            length: range.length(),
            class,
        };
        if let SetKind::Mirror { copies } = piece.kind {
            let first = piece.kind.read_copy(range.row);
            let component = (0..copies).find_map(|step| piece.current((first + step) % copies))?;
            let all = UnitRange { from: range.start, to: range.start + range.length };
            wants.push(read(component, all));
            return Some(wants);
        }
        let ranges = parity_read(piece.kind, piece.unit_bytes, range, piece.current_slots())?;
        push_ranges(&mut wants, piece, &ranges, read);
        Some(wants)
    }

    /// What a write of a row with parity must read first.
    pub(in crate::cluster) fn reads_before_write(&self, piece: &Piece, part: &Aim) -> Wants {
        let mut wants = Wants::new();
        if matches!(piece.kind, SetKind::Mirror { .. }) {
            return wants;
        }
        let current = piece.current_slots();
        let base = part.range.row * u64::from(piece.unit_bytes);
        let Some(ranges) = parity_write_reads(piece.kind, piece.unit_bytes, &part.range, current)
        else {
            return wants;
        };
        push_ranges(&mut wants, piece, &ranges, |component, range| Wanted {
            component,
            operation: Operation::Read,
            offset: base + u64::from(range.from),
            length: range.length(),
            class: IoClass::Vm,
        });
        wants
    }

    /// Where in the volume a range of the present layout lies.
    pub(in crate::cluster) fn volume_range(
        &self,
        volume: VolumeId,
        range: &RowRange,
    ) -> (u64, u32) {
        let base = self
            .object(volume, Layout::Present)
            .map_or(0, |object| object.geometry.row_offset(range.set, range.row));
        (base + u64::from(range.start), range.length)
    }

    /// The I/Os that write a range of a row on all reachable members.
    pub(in crate::cluster) fn writes_of(
        &self,
        volume: VolumeId,
        layout: Layout,
        range: &RowRange,
        operation: Operation,
    ) -> Wants {
        let mut wants = Wants::new();
        let Some(piece) = self.piece(volume, layout, range, &Failed::NONE) else { return wants };
        let ranges = touched(piece.kind, piece.unit_bytes, range);
        let base = range.row * u64::from(piece.unit_bytes);
        for member in piece.members() {
            let range = ranges[usize::from(member.slot)];
            if !range.is_empty() {
                wants.push(Wanted {
                    component: member.component,
                    operation,
                    offset: base + u64::from(range.from),
                    length: range.length(),
                    class: IoClass::Vm,
                });
            }
        }
        wants
    }
}

impl Requests {
    /// Starts a part of a read, write or discard.
    pub(in crate::cluster) fn begin_part(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
    ) {
        let Some(part) = self.parts.get(key) else { return };
        let (aim, layout) = (part.aim(), part.layout);
        let Some(volume) = storage.objects.volume(aim.volume) else {
            return self.end_part(storage, repair, key, Some(IoFailure::VolumeRemoved));
        };
        if volume.object.side.is_none() {
            return self.fail_part(storage, repair, key, IoFailure::NoQuorum);
        }
        // A policy change replaced the layout that the part was planned for.
        if volume.layout != layout && self.replan(storage, repair, key) {
            return;
        }
        match aim.operation {
            Operation::Read => self.begin_read(storage, repair, key, &aim),
            _ => self.begin_write(storage, repair, key, &aim),
        }
    }

    fn begin_read(&mut self, storage: &mut Storage, repair: &mut Repair, key: Key, part: &Aim) {
        if self.begin_one_unit_read(storage, repair, key, part) {
            return;
        }
        let Some(entry) = self.parts.get(key) else { return };
        let mut avoid = entry.avoid.clone();
        for (component, how) in entry.failed.iter() {
            avoid.push(component, how);
        }
        // Another copy if there is one, else the same again: a device may fail one read and not the next.
        let reads = [&avoid, &Failed::NONE].into_iter().find_map(|without| {
            let piece =
                storage.objects.piece(part.volume, Layout::Present, &part.range, without)?;
            storage.objects.reads_of(&piece, &part.range, IoClass::Vm)
        });
        let Some(reads) = reads else {
            return self.fail_part(storage, repair, key, IoFailure::NoCurrentCopy);
        };
        if let Some(entry) = self.parts.get_mut(key) {
            entry.avoid = avoid;
            entry.failed = Failed::NONE;
            entry.phase = Phase::Reading;
            entry.source = reads[0].component;
        }
        self.issue_all(storage, repair, key, part, &reads);
    }

    fn begin_write(&mut self, storage: &mut Storage, repair: &mut Repair, key: Key, part: &Aim) {
        if self.begin_one_unit_write(storage, repair, key, part) {
            return;
        }
        let Some(piece) =
            storage.objects.piece(part.volume, Layout::Present, &part.range, &Failed::NONE)
        else {
            return;
        };
        // With too few current members a write would leave a row that cannot be decoded any more.
        if !row_is_known(&piece) {
            return self.fail_part(storage, repair, key, IoFailure::NoCurrentCopy);
        }
        // A discard needs no space, so a full device does not refuse it.
        if part.operation == Operation::Write && !storage.allocate(&part.range, &piece) {
            return self.fail_part(storage, repair, key, IoFailure::NoSpace);
        }
        let reads = storage.objects.reads_before_write(&piece, part);
        if let Some(entry) = self.parts.get_mut(key) {
            entry.failed = Failed::NONE;
            entry.phase = Phase::Reading;
        }
        if reads.is_empty() {
            self.issue_writes(storage, repair, key, part);
        } else {
            self.issue_all(storage, repair, key, part, &reads);
        }
    }

    /// Sends the writes of a part to all reachable members of both layouts.
    pub(in crate::cluster) fn issue_writes(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        part: &Aim,
    ) {
        if let Some(entry) = self.parts.get_mut(key) {
            entry.phase = Phase::Writing;
        }
        if self.issue_one_unit_writes(storage, repair, key, part) {
            return;
        }
        let mut wants =
            storage.objects.writes_of(part.volume, Layout::Present, &part.range, part.operation);
        // During a policy change both layouts get the write, so that only older data has to be
        // copied.
        if let Some(next) = storage.objects.object(part.volume, Layout::Next) {
            let (offset, length) = storage.objects.volume_range(part.volume, &part.range);
            for range in next.geometry.split(offset, length) {
                let more =
                    storage.objects.writes_of(part.volume, Layout::Next, &range, part.operation);
                wants.extend(&more);
            }
        }
        self.issue_all(storage, repair, key, part, &wants);
    }

    /// Sends I/Os; a part without any goes on at once.
    fn issue_all(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        part: &Aim,
        wants: &Wants,
    ) {
        let Some((owner, lead)) = self.client_and_lead(storage, key, part) else { return };
        self.issue_from(storage, repair, key, owner, lead, wants);
    }

    /// The host that a part of a request is sent from, and the time it spends before it is sent.
    pub(in crate::cluster) fn client_and_lead(
        &self,
        storage: &Storage,
        key: Key,
        part: &Aim,
    ) -> Option<(HostId, Nanos)> {
        let volume = storage.objects.volume(part.volume)?;
        // The owner's work and the checksums are charged once per part, not again for its second
        // phase or a retry.
        let is_first = self
            .parts
            .get(key)
            .is_some_and(|part| part.attempts == 0 && part.service == Nanos::ZERO);
        let lead = if is_first {
            let summed = volume.object.checksum == Checksum::On;
            let blocks = if summed { u64::from(part.range.length / 4096) } else { 0 };
            Nanos(storage.settings.checksum_overhead_per_4k.0 * blocks)
                + storage.settings.owner_overhead
        } else {
            Nanos::ZERO
        };
        Some((volume.owner, lead))
    }

    /// Sends I/Os from a host; a part without any goes on at once.
    pub(in crate::cluster) fn issue_from(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        client: HostId,
        lead: Nanos,
        wants: &Wants,
    ) {
        let Some(sender) = self.begin_phase(key, client, lead) else { return };
        let mut sent = 0;
        for wanted in wants.iter() {
            let Some(target) = storage.target(wanted.component) else { continue };
            self.issue(storage, key, sender, &target, wanted);
            sent += 1;
        }
        self.all_sent(storage, repair, key, sent);
    }

    /// The I/Os of a phase are about to be sent from a host.
    #[inline]
    pub(in crate::cluster) fn begin_phase(
        &mut self,
        key: Key,
        client: HostId,
        lead: Nanos,
    ) -> Option<Sender> {
        let part = self.parts.get_mut(key)?;
        part.phase_service = lead;
        Some(Sender { client, lead, head_start: part.head_start })
    }

    /// This many I/Os of a phase were sent. None has been answered since: disk groups answer when they are called
    /// next.
    #[inline]
    pub(in crate::cluster) fn all_sent(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        sent: u32,
    ) {
        let Some(part) = self.parts.get_mut(key) else { return };
        part.waiting += sent;
        let last = part.last_answer;
        if part.waiting > 0 {
            return;
        }
        if last.at() > storage.clock.now() {
            storage.clock.schedule_at_position(last, Timer::LastAnswer { part: key });
        } else {
            self.part_phase_ended(storage, repair, key);
        }
    }

    /// Starts a flush of all disk groups that hold volatile components of the volume. The others have written what they
    /// acknowledged.
    pub(in crate::cluster) fn begin_flush(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
    ) {
        let Some(part) = self.parts.get(key).map(|part| part.aim()) else { return };
        let Some(object) = storage.objects.object(part.volume, Layout::Present) else {
            return self.end_part(storage, repair, key, Some(IoFailure::VolumeRemoved));
        };
        if object.side.is_none() {
            return self.end_part(storage, repair, key, Some(IoFailure::NoQuorum));
        }
        if !storage.objects.all_sets_reachable(part.volume) {
            return self.end_part(storage, repair, key, Some(IoFailure::NoCurrentCopy));
        }
        let mut groups: Vec<GroupId> = Vec::new();
        let mut wants = Wants::new();
        let next = storage.objects.object(part.volume, Layout::Next);
        for id in object.components().chain(next.into_iter().flat_map(Object::components)) {
            let Some(component) = storage.objects.component(id) else { continue };
            let is_wanted = component.reachable && component.volatile.is_some();
            // A flush covers a whole disk group, so one component per group is enough.
            if is_wanted && !groups.contains(&component.group) {
                groups.push(component.group);
                wants.push(Wanted {
                    component: id,
                    operation: Operation::Flush,
                    offset: 0,
                    length: 0,
                    class: IoClass::Vm,
                });
            }
        }
        if let Some(entry) = self.parts.get_mut(key) {
            entry.phase = Phase::Flushing;
            entry.failed = Failed::NONE;
        }
        self.issue_all(storage, repair, key, &part, &wants);
    }

    /// All I/Os of a phase are done.
    pub(in crate::cluster) fn part_phase_ended(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
    ) {
        let Some(part) = self.parts.get(key) else { return };
        let (phase, failed) = (part.phase, !part.failed.is_empty());
        let Purpose::Front { operation, buffer_offset } = part.purpose else {
            let part = part.clone();
            return match part.purpose {
                Purpose::Resync { .. } => repair.resync_phase_ended(storage, self, key, &part),
                _ => repair.reshape_phase_ended(storage, self, key, &part),
            };
        };
        let (aim, layout) = (part.aim(), part.layout);
        let was_replaced =
            storage.objects.volume(aim.volume).is_some_and(|volume| volume.layout != layout);
        if was_replaced && phase != Phase::Flushing && self.replan(storage, repair, key) {
            return;
        }
        match phase {
            Phase::Flushing => self.commit_flush(storage, repair, key),
            Phase::Reading if failed => self.retry(storage, repair, key),
            Phase::Reading if aim.operation == Operation::Read => {
                self.commit_read(storage, repair, key, &aim, operation, buffer_offset);
            }
            Phase::Reading => self.issue_writes(storage, repair, key, &aim),
            Phase::Writing => {
                self.commit_write(storage, repair, key, &aim, operation, buffer_offset)
            }
        }
    }

    pub(in crate::cluster) fn retry(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
    ) {
        let Some(part) = self.parts.get_mut(key) else { return };
        part.attempts += 1;
        if part.attempts >= ATTEMPTS_MAX {
            return self.fail_part(storage, repair, key, IoFailure::NoCurrentCopy);
        }
        match part.operation {
            Operation::Flush => self.begin_flush(storage, repair, key),
            _ => self.begin_part(storage, repair, key),
        }
    }

    pub(in crate::cluster) fn end_part(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        failure: Option<IoFailure>,
    ) {
        let Some(part) = self.parts.get(key) else { return };
        let (purpose, early, service) = (part.purpose, part.early, part.service);
        self.parts.discard(key);
        if let Purpose::Front { operation, .. } = purpose {
            if let Some(front) = self.operations.get_mut(operation) {
                front.ends = front.ends.max(storage.clock.now() + early);
            }
            self.part_of_operation_ended(storage, repair, operation, service, failure);
        }
    }
}

fn push_ranges(
    wants: &mut Wants,
    piece: &Piece,
    ranges: &[UnitRange; SLOTS_MAX],
    wanted: impl Fn(ComponentId, UnitRange) -> Wanted,
) {
    for slot in 0..piece.kind.members() {
        let range = ranges[usize::from(slot)];
        if !range.is_empty()
            && let Some(component) = piece.current(slot)
        {
            wants.push(wanted(component, range));
        }
    }
}
