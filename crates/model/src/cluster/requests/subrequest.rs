//! I/Os on components: sent to a host, executed by its disk group, and answered or failed.
//!
//! What is not here: which I/Os a part needs (`part`) and what their end means for it (`part_commit`).

use super::Requests;
use crate::agenda::Position;
use crate::cluster::component_place::Target;
use crate::cluster::ids::{ComponentId, DeviceId, HostId};
use crate::cluster::operation::{FailedHow, SubState, Subrequest};
use crate::cluster::repair::Repair;
use crate::cluster::slab::Key;
use crate::cluster::storage::Storage;
use crate::cluster::timers::Timer;
use crate::cluster::wants::Wanted;
use crate::disk_group::{GroupFinished, GroupOutcome};
use crate::request::Operation;
use underlay_core::Nanos;

/// Where the I/Os of a phase come from.
#[derive(Clone, Copy, Debug)]
pub(in crate::cluster) struct Sender {
    /// The host that asks.
    pub(in crate::cluster) client: HostId,
    /// The time it spends before it sends.
    pub(in crate::cluster) lead: Nanos,
    /// The part's head start.
    pub(in crate::cluster) head_start: Nanos,
}

impl Requests {
    /// Sends an I/O on its way; the part is to count it as waiting.
    // In both of its loops: what is the same for all I/Os of a phase then stays where it is (35 instructions per I/O less).
    #[inline(always)]
    pub(in crate::cluster) fn issue(
        &mut self,
        storage: &mut Storage,
        part: Key,
        sender: Sender,
        target: &Target,
        wanted: &Wanted,
    ) {
        let Target { component, group, host, disk, base } = *target;
        let Sender { client, lead, head_start } = sender;
        let sent = if wanted.operation == Operation::Write { wanted.length } else { 0 };
        let arrival = storage.inventory.travel(client, host, sent, storage.clock.now() + lead);
        let mut sub = Subrequest {
            part,
            component,
            group,
            disk,
            host,
            client,
            class: wanted.class,
            operation: wanted.operation,
            offset: base + wanted.offset,
            length: wanted.length,
            state: SubState::Travelling,
            head_start,
            early: Nanos::ZERO,
        };
        let arrival = arrival - sub.use_head_start(storage.inventory.latency_between(client, host));
        debug_assert!(arrival >= storage.clock.now(), "an I/O arrives after it was sent");
        let sub = self.subs.insert(sub);
        if arrival > storage.clock.now() {
            storage.clock.schedule(arrival, Timer::Arrive { sub });
        } else {
            self.deliver(storage, sub);
        }
    }

    /// The I/O reached its host.
    #[inline]
    pub(in crate::cluster) fn deliver(&mut self, storage: &mut Storage, key: Key) {
        if self.is_answered(storage, key) {
            self.submit_to_group(storage, key);
        } else if let Some(sub) = self.subs.get_mut(key) {
            // It stays with the silent host until that answers again, or until the failure is
            // detected.
            sub.state = SubState::Parked;
        }
    }

    /// The disk group is done with it.
    pub(in crate::cluster) fn group_finished(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        done: &GroupFinished,
    ) {
        let answered = self.is_answered(storage, key);
        let Some(sub) = self.subs.get_mut(key) else { return };
        if !answered {
            sub.state = SubState::ParkedAnswer(done.outcome);
            return;
        }
        let hops = storage.inventory.latency_between(sub.host, sub.client);
        sub.be_early(done.early);
        self.send_answer(storage, repair, key, done.outcome, done.service + hops + hops);
    }

    /// Sends the answer to an I/O that took `service` on its way, network included.
    #[inline]
    fn send_answer(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        outcome: GroupOutcome,
        service: Nanos,
    ) {
        let Some(sub) = self.subs.get_mut(key) else { return };
        let payload = if sub.operation == Operation::Read { sub.length } else { 0 };
        let (from, to) = (sub.host, sub.client);
        let arrival = storage.inventory.travel(from, to, payload, storage.clock.now());
        let arrival = arrival - sub.use_head_start(storage.inventory.latency_between(from, to));
        let (part, component, early) = (sub.part, sub.component, sub.early);
        if outcome == GroupOutcome::Ok && arrival > storage.clock.now() {
            self.subs.discard(key);
            return self.expect_answer(storage, part, arrival, early, service);
        }
        sub.state = SubState::Returning(outcome);
        if let Some(part) = self.parts.get_mut(part) {
            part.phase_service = part.phase_service.max(service);
        }
        if arrival > storage.clock.now() {
            storage.clock.schedule(arrival, Timer::Answer { sub: key });
        } else if outcome == GroupOutcome::Ok {
            self.subs.discard(key);
            self.sub_ended(storage, repair, part, component, early, None);
        } else {
            self.answered(storage, repair, key);
        }
    }

    /// An answer is on its way, and nothing can happen to it any more: its part waits for the last of those only, so that not
    /// each of them is a step.
    #[inline]
    fn expect_answer(
        &mut self,
        storage: &mut Storage,
        key: Key,
        arrival: Nanos,
        early: Nanos,
        service: Nanos,
    ) {
        let position = storage.clock.reserve_position(arrival);
        let Some(part) = self.parts.get_mut(key) else { return };
        part.phase_service = part.phase_service.max(service);
        debug_assert!(part.waiting > 0, "an answer is counted once");
        part.waiting -= 1;
        part.phase_ends = part.phase_ends.max(arrival + early);
        part.last_answer = part.last_answer.max(position);
        if part.waiting == 0 {
            let last = part.last_answer;
            storage.clock.schedule_at_position(last, Timer::LastAnswer { part: key });
        }
    }

    /// The answer reached the owner.
    pub(in crate::cluster) fn answered(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
    ) {
        let Some(Subrequest { state: SubState::Returning(outcome), .. }) = self.subs.get(key)
        else {
            return;
        };
        let outcome = *outcome;
        let Some(sub) = self.subs.remove(key) else { return };
        let failed = match outcome {
            GroupOutcome::Ok => None,
            GroupOutcome::DeviceError { .. } | GroupOutcome::DeviceLost { .. } => {
                self.device_erred(storage, repair, &sub, outcome);
                Some(FailedHow::Gone)
            }
        };
        self.sub_ended(storage, repair, sub.part, sub.component, sub.early, failed);
    }

    fn sub_ended(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
        component: ComponentId,
        early: Nanos,
        failed: Option<FailedHow>,
    ) {
        let ends = storage.clock.now() + early;
        let Some(part) = self.parts.get_mut(key) else { return };
        debug_assert!(part.waiting > 0, "an answer is counted once");
        part.waiting -= 1;
        part.phase_ends = part.phase_ends.max(ends);
        if let Some(how) = failed {
            part.failed.push(component, how);
        }
        if part.waiting > 0 {
            return;
        }
        let last = part.last_answer;
        if last.at() > storage.clock.now() {
            storage.clock.schedule_at_position(last, Timer::LastAnswer { part: key });
        } else {
            self.all_answered(storage, repair, key);
        }
    }

    /// All I/Os of a part's phase were answered.
    pub(in crate::cluster) fn all_answered(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        key: Key,
    ) {
        let Some(part) = self.parts.get_mut(key) else { return };
        debug_assert!(part.waiting == 0, "the last answer is the last");
        part.service += part.phase_service;
        part.phase_service = Nanos::ZERO;
        let early = part.phase_ends.saturating_sub(storage.clock.now());
        part.phase_ends = Nanos::ZERO;
        part.last_answer = Position::default();
        part.early += early;
        part.head_start = part.head_start.saturating_sub(early);
        self.part_phase_ended(storage, repair, key);
    }

    /// A device answered with an error: a failed write fails it, failed reads do when they become many.
    fn device_erred(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        sub: &Subrequest,
        outcome: GroupOutcome,
    ) {
        let (GroupOutcome::DeviceError { device } | GroupOutcome::DeviceLost { device }) = outcome
        else {
            return;
        };
        let limit = storage.settings.device_read_errors;
        let group = storage.inventory.group_mut(sub.group);
        let Some(member) = group.members.get_mut(device) else { return };
        member.read_errors += 1;
        let fatal = sub.operation != Operation::Read
            || member.read_errors >= limit
            || matches!(outcome, GroupOutcome::DeviceLost { .. });
        if fatal && !member.failed {
            repair.device_failed(
                storage,
                self,
                DeviceId { group: sub.group, member: device as u8 },
            );
        }
    }

    /// Fails the I/Os that `hit` selects, except those whose answer is on its way.
    pub(in crate::cluster) fn fail_subs(
        &mut self,
        storage: &mut Storage,
        repair: &mut Repair,
        how: impl Fn(&Subrequest) -> FailedHow,
        hit: impl Fn(&Subrequest) -> bool,
    ) {
        let keys: Vec<Key> = self
            .subs
            .iter()
            .filter(|(_, sub)| !matches!(sub.state, SubState::Returning(_)) && hit(sub))
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            if let Some(sub) = self.subs.remove(key) {
                self.sub_ended(
                    storage,
                    repair,
                    sub.part,
                    sub.component,
                    sub.early,
                    Some(how(&sub)),
                );
            }
        }
    }

    /// Whether the host of an I/O answers its client: the client is on the side that serves the object.
    #[inline]
    fn is_answered(&self, storage: &Storage, key: Key) -> bool {
        storage.membership.all_answer() || self.host_answers(storage, key)
    }

    fn host_answers(&self, storage: &Storage, key: Key) -> bool {
        let Some(sub) = self.subs.get(key) else { return false };
        // Only its part waits for an I/O on a component that has been removed.
        let side = match storage.objects.component(sub.component) {
            Some(component) => storage
                .objects
                .object(component.volume, component.layout)
                .and_then(|object| object.side),
            None => Some(storage.membership.side(sub.host)),
        };
        storage.membership.answers(sub.host, side)
    }

    /// Hosts may answer again: what waited for them goes on.
    pub(in crate::cluster) fn resume_subs(&mut self, storage: &mut Storage, repair: &mut Repair) {
        let waiting: Vec<(Key, SubState)> =
            self.subs.iter().map(|(key, sub)| (key, sub.state)).collect();
        for (key, state) in waiting {
            match state {
                SubState::Parked => self.deliver(storage, key),
                SubState::ParkedAnswer(outcome) => {
                    if self.is_answered(storage, key) {
                        self.send_answer(storage, repair, key, outcome, Nanos::ZERO);
                    }
                }
                SubState::Travelling
                | SubState::InGroup
                | SubState::Vanished
                | SubState::Returning(_) => {}
            }
        }
    }
}
