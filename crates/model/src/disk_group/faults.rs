//! Faults: the states of devices, and the power.

use super::group::{DiskGroup, Power};
use super::member::{Member, NEVER};
use super::operations::Work;
use super::request::{GroupOutcome, MemberState};
use underlay_core::Nanos;

impl DiskGroup {
    /// Sets the state of a device: member 0 is the cache device, the capacity devices follow.
    ///
    /// A lost device answers everything it has with that, now. What is buffered for a lost capacity device
    /// is dropped, and so is everything when the group is lost as a whole. A device that is set again after it
    /// was stuck answers what it kept, now.
    ///
    /// # Panics
    /// If `now` lies before an earlier call, or the member does not exist.
    pub fn set_member(&mut self, now: Nanos, member: usize, state: MemberState) {
        self.run_until(now);
        self.members[member].set_state(now, state);
        self.any_lost = self.members.iter().any(Member::is_lost);
        self.elevator.reset_failures(member);
        match state {
            MemberState::Stuck => {}
            MemberState::Lost if member == 0 || self.reducer.is_some() => self.lose_group(member),
            MemberState::Lost => self.lose_disk(member),
            MemberState::Healthy | MemberState::Slow { .. } | MemberState::Erroring { .. } => {
                for sent in std::mem::take(&mut self.parked[member]) {
                    self.members[member].came_back(now, &sent);
                    self.piece_done(sent.op, sent.outcome(member), sent.service);
                }
                self.pump(member);
                self.elevate_all();
                self.pump_admission();
            }
        }
    }

    /// How a device works at present, by its place: the cache device first.
    pub fn member_state(&self, member: usize) -> Option<MemberState> {
        self.members.get(member).map(|member| member.state)
    }

    /// Cuts the power: requests in flight vanish and are never answered; the write buffer keeps what was
    /// acknowledged. Answers that were given before are still handed out.
    ///
    /// # Panics
    /// If `now` lies before an earlier call.
    pub fn power_cut(&mut self, now: Nanos) {
        self.run_until(now);
        self.power = Power::Off;
        for disk in 0..self.blocks.len() {
            let replaced = self.blocks[disk].stay_all();
            self.log.overwritten(replaced);
        }
        self.forget_all();
    }

    /// Switches the power on again. The elevator goes on where it was.
    ///
    /// # Panics
    /// If `now` lies before an earlier call.
    pub fn power_on(&mut self, now: Nanos) {
        self.run_until(now);
        self.power = Power::On;
        self.elevate_all();
    }

    /// Answers every write that waits for room.
    pub(super) fn refuse_waiting(&mut self, outcome: GroupOutcome) {
        let mut waiting = Vec::new();
        self.admission.drain(|write| waiting.push(write.op()));
        waiting.into_iter().for_each(|op| self.finish_with(op, outcome));
    }

    /// The whole group is gone: everything open is answered, everything buffered dropped.
    fn lose_group(&mut self, member: usize) {
        let outcome = GroupOutcome::DeviceLost { device: member };
        for op in self.operations.open_indices() {
            match self.operations.get(op).work {
                Work::Request(_) => self.finish_with(op, outcome),
                Work::Destage(_) => {
                    self.operations.close(op);
                }
            }
        }
        for disk in 0..self.blocks.len() {
            let replaced = self.blocks[disk].stay_all();
            self.log.overwritten(replaced);
            let dropped = self.blocks[disk].forget_dirty();
            self.log.dropped(dropped);
        }
        self.forget_all();
    }

    /// One capacity device is gone: what it has is answered, what is buffered for it dropped.
    fn lose_disk(&mut self, member: usize) {
        let outcome = GroupOutcome::DeviceLost { device: member };
        let mut under_way = std::mem::take(&mut self.parked[member]);
        under_way.extend(self.calendar.withdraw(member));
        for sent in under_way {
            self.members[member].came_back(self.clock, &sent);
            self.piece_done(sent.op, outcome, Nanos::ZERO);
        }
        let mut waiting = Vec::new();
        self.members[member].lanes.drain(|piece| waiting.push(piece.op));
        waiting.into_iter().for_each(|op| self.piece_done(op, outcome, Nanos::ZERO));
        self.drop_buffered(member);
        self.refuse_lost(member);
        self.elevate_all();
        self.pump_admission();
    }

    /// Answers the writes to a lost disk that wait for room.
    fn refuse_lost(&mut self, member: usize) {
        let mut others = Vec::new();
        let mut lost = Vec::new();
        let operations = &mut self.operations;
        self.admission.drain(|write| match operations.get(write.op()).work {
            Work::Request(io) if io.disk + 1 == member => lost.push(write.op()),
            _ => others.push((operations.get(write.op()).lane, write)),
        });
        others.into_iter().for_each(|(lane, write)| self.admission.push(lane, write));
        let outcome = GroupOutcome::DeviceLost { device: member };
        lost.into_iter().for_each(|op| self.finish_with(op, outcome));
    }

    /// Forgets everything that is not answered and not in the buffer.
    fn forget_all(&mut self) {
        self.operations.clear();
        self.calendar.clear();
        self.members.iter_mut().for_each(|member| member.forget());
        self.wakes.fill(NEVER);
        self.first_wake = NEVER;
        self.parked.iter_mut().for_each(Vec::clear);
        self.admission.drain(|_| {});
        self.log.release_all();
        self.elevator.forget_runs();
        for class in &mut self.classes {
            (class.outstanding, class.outstanding_bytes) = (0, 0);
        }
    }
}
