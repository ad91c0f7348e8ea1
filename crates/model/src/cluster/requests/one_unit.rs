//! The fast path for requests within one unit of a set that is complete: nearly all small requests.
//!
//! Such a read goes to one slot. Such a write goes to the unit's slot and to parity, or to all copies, each time at the same
//! range; with parity, that range is read first. So no members or ranges need to be collected: the cached set (see
//! `whole_set`) is enough. All other requests take the general path, and so does a request whose set changes while it is in
//! flight. Both paths give the same result for these requests; debug builds compare them.

use super::Requests;
use crate::cluster::cached_set::CachedSet;
use crate::cluster::component_place::Target;
use crate::cluster::data_command::DataCommand;
use crate::cluster::geometry::SetKind;
use crate::cluster::object::Layout;
use crate::cluster::objects::Objects;
use crate::cluster::operation::{Aim, Failed, Phase};
use crate::cluster::repair::Repair;
use crate::cluster::row_plan::{OneUnit, UnitRange, one_unit};
use crate::cluster::slab::Key;
use crate::cluster::storage::Storage;
use crate::cluster::wants::{Wanted, Wants};
use crate::request::Operation;
use crate::scheduler::IoClass;

/// Which slots, one bit each, and which range of their components.
#[derive(Clone, Copy)]
struct OneUnitIo {
    slots: u8,
    offset: u64,
    length: u32,
}

impl OneUnitIo {
    fn new(cached: &CachedSet, slots: u8, row: u64, unit: UnitRange) -> OneUnitIo {
        let offset = row * u64::from(cached.unit_bytes()) + u64::from(unit.from);
        OneUnitIo { slots, offset, length: unit.length() }
    }

    /// Where to, in the order of slots.
    fn targets(self, cached: &CachedSet) -> impl Iterator<Item = Target> {
        let mut left = self.slots;
        std::iter::from_fn(move || {
            let next = (left != 0).then(|| cached.target(left.trailing_zeros() as usize));
            left &= left.wrapping_sub(1);
            next
        })
    }

    fn wanted(&self, target: &Target, operation: Operation) -> Wanted {
        Wanted {
            component: target.component,
            operation,
            offset: self.offset,
            length: self.length,
            class: IoClass::Vm,
        }
    }

    /// Whether the general way would have found the same.
    fn is(&self, cached: &CachedSet, operation: Operation, wants: &Wants) -> bool {
        let targets = self.targets(cached).map(|target| self.wanted(&target, operation));
        targets.eq(wants.iter().copied())
    }
}

impl Objects {
    /// The set's entry of the cache, and which of its slots a part of a request touches, if nothing is missing and it touches a
    /// part of one unit.
    #[inline]
    fn one_unit_of(&self, part: &Aim) -> Option<(&CachedSet, OneUnit)> {
        let cached = self.cached_set_of(part)?;
        Some((cached, one_unit(cached.kind(), cached.unit_bytes(), &part.range)?))
    }

    #[inline]
    fn cached_set_of(&self, part: &Aim) -> Option<&CachedSet> {
        let object = self.object(part.volume, Layout::Present)?;
        object.whole_set(part.range.set, self.shape())
    }
}

impl Requests {
    /// Starts a read, if it is one of those; tells whether it was.
    pub(in crate::cluster) fn begin_one_unit_read(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        part: &Aim,
    ) -> bool {
        let Some(entry) = self.parts.get(key) else { return false };
        if !entry.avoid.is_empty() || !entry.failed.is_empty() {
            return false;
        }
        let Some((cached, unit)) = storage.objects.one_unit_of(part) else { return false };
        let kind = cached.kind();
        let slots = match kind {
            SetKind::Mirror { .. } => 1 << kind.read_copy(part.range.row),
            SetKind::Parity { .. } => unit.data_slots,
        };
        let io = OneUnitIo::new(cached, slots, part.range.row, unit.range);
        debug_assert!({
            let piece =
                storage.objects.piece(part.volume, Layout::Present, &part.range, &Failed::NONE);
            let reads =
                piece.and_then(|piece| storage.objects.reads_of(&piece, &part.range, IoClass::Vm));
            reads.is_some_and(|reads| io.is(cached, Operation::Read, &reads))
        });
        let source = cached.target(slots.trailing_zeros() as usize).component;
        if let Some(entry) = self.parts.get_mut(key) {
            entry.phase = Phase::Reading;
            entry.source = source;
        }
        self.issue_one_unit(storage, repair, key, part, io, Operation::Read);
        true
    }

    /// Starts a write, if it is one of those and its space is there already; tells whether it was.
    pub(in crate::cluster) fn begin_one_unit_write(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        part: &Aim,
    ) -> bool {
        if part.operation != Operation::Write {
            return false;
        }
        let Some((cached, unit)) = storage.objects.one_unit_of(part) else { return false };
        let (kind, row) = (cached.kind(), part.range.row);
        let io = OneUnitIo::new(cached, unit.slots(), row, unit.range);
        let has_space = |target: Target| {
            let component = storage.objects.component(target.component);
            component.is_some_and(|component| component.written.contains(row))
        };
        if !io.targets(cached).all(has_space) {
            return false;
        }
        let reads_first = matches!(kind, SetKind::Parity { .. });
        debug_assert!({
            let piece =
                storage.objects.piece(part.volume, Layout::Present, &part.range, &Failed::NONE);
            let reads = piece.map(|piece| storage.objects.reads_before_write(&piece, part));
            reads.is_some_and(|reads| match reads_first {
                true => io.is(cached, Operation::Read, &reads),
                false => reads.is_empty(),
            })
        });
        if let Some(entry) = self.parts.get_mut(key) {
            entry.failed = Failed::NONE;
            entry.phase = Phase::Reading;
        }
        if reads_first {
            self.issue_one_unit(storage, repair, key, part, io, Operation::Read);
        } else {
            self.issue_writes(storage, repair, key, part);
        }
        true
    }

    /// Sends the writes of a part, if it is one of those and there is no other layout; tells whether it was.
    pub(in crate::cluster) fn issue_one_unit_writes(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        part: &Aim,
    ) -> bool {
        let Some((cached, unit)) = storage.objects.one_unit_of(part) else { return false };
        if storage.objects.object(part.volume, Layout::Next).is_some() {
            return false;
        }
        let io = OneUnitIo::new(cached, unit.slots(), part.range.row, unit.range);
        debug_assert!(io.is(
            cached,
            part.operation,
            &storage.objects.writes_of(part.volume, Layout::Present, &part.range, part.operation)
        ));
        self.issue_one_unit(storage, repair, key, part, io, part.operation);
        true
    }

    /// Lets a write take effect that all of its components have, if it is one of those and there is no other layout; tells whether
    /// it was.
    pub(in crate::cluster) fn commit_one_unit_write(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        part: &Aim,
        operation: Key,
        buffer_offset: u32,
    ) -> bool {
        let has_failed = self.parts.get(key).is_none_or(|entry| !entry.failed.is_empty());
        if has_failed || !storage.membership.all_have_power() || part.operation != Operation::Write
        {
            return false;
        }
        let Some((cached, unit)) = storage.objects.one_unit_of(part) else { return false };
        let piece = cached.piece(&part.range);
        if storage.objects.object(part.volume, Layout::Next).is_some() {
            return false;
        }
        let Some(request) = self.operations.get(operation).map(|front| front.request) else {
            return false;
        };
        debug_assert_eq!(
            Some(piece),
            storage.piece_now(part.volume, Layout::Present, &part.range, &Failed::NONE)
        );
        for member in piece.members() {
            if unit.slots() >> member.slot & 1 == 1 {
                storage.row_changed(member.component, part.range.row, false);
            }
        }
        if matches!(piece.kind, SetKind::Parity { .. }) {
            // As for any write of a row with parity.
            storage.emit_changed_state();
        }
        storage.outbox.command(DataCommand::Write { request, buffer_offset, piece });
        self.end_part(storage, repair, key, None);
        true
    }

    /// Sends the I/Os of one phase.
    fn issue_one_unit(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        part: &Aim,
        io: OneUnitIo,
        operation: Operation,
    ) {
        let Some((client, lead)) = self.client_and_lead(storage, key, part) else { return };
        let Some(sender) = self.begin_phase(key, client, lead) else { return };
        let mut left = io.slots;
        while left != 0 {
            let cached =
                storage.objects.cached_set_of(part).expect("sending changes nothing of the set");
            let target = cached.target(left.trailing_zeros() as usize);
            self.issue(storage, key, sender, &target, &io.wanted(&target, operation));
            left &= left - 1;
        }
        self.all_sent(storage, repair, key, io.slots.count_ones());
    }
}
