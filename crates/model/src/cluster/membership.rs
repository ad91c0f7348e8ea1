//! Membership: which hosts have power and answer, on which side of a partition, and what the cluster has noticed of it.
//!
//! A host's *condition* and *side* are the actual state; what the cluster has *seen* lags behind by the detection time.
//! Messages depend on the actual state, decisions on what was seen. No other part of the cluster can change either of
//! them.
//!
//! What is not here: which side has the majority of a volume's votes, and what follows ([`super::repair::Repair`]); disk
//! groups, which lose power with their host ([`super::inventory::Inventory`]).

use super::ids::HostId;
use super::state::{HostCondition, HostRecord};
use std::collections::BTreeSet;
use underlay_core::Nanos;

/// The side of the cluster on which hosts are unless partitioned.
pub(super) const MAIN_SIDE: u32 = 0;

/// What a host is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Up,
    Frozen,
    Crashed,
}

/// One host, as far as the others can know.
#[derive(Clone, Copy, Debug)]
struct Presence {
    condition: Condition,
    /// Hosts on the same side reach each other.
    side: u32,
    /// The side on which the cluster sees it; none = it is seen as gone.
    seen: Option<u32>,
    /// Number of its last change: tells the detection of an earlier fault from the present one.
    epoch: u32,
    /// Since when it is seen as gone.
    gone_since: Option<Nanos>,
}

/// What has changed with the return of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Returned {
    /// Whether it had no power.
    pub(super) had_crashed: bool,
    /// Whether the cluster had noticed that it was away.
    pub(super) was_noticed: bool,
}

/// Who belongs to the cluster at present, in truth and as far as it has been noticed.
#[derive(Debug)]
pub(super) struct Membership {
    hosts: Vec<Presence>,
    /// Whether all hosts have power; a short cut for the usual case.
    all_powered: bool,
    /// Whether all hosts answer each other; likewise.
    all_answer: bool,
    /// Number of the next side of a partition.
    next_side: u32,
    /// Number of the last change of a host.
    epoch: u32,
}

impl Membership {
    /// No hosts.
    pub(super) fn new() -> Membership {
        Membership {
            hosts: Vec::new(),
            all_powered: true,
            all_answer: true,
            next_side: MAIN_SIDE + 1,
            epoch: 0,
        }
    }

    /// A running host joins, as the last one.
    pub(super) fn push(&mut self) {
        self.hosts.push(Presence {
            condition: Condition::Up,
            side: MAIN_SIDE,
            seen: Some(MAIN_SIDE),
            epoch: 0,
            gone_since: None,
        });
    }

    fn of(&self, host: HostId) -> &Presence {
        &self.hosts[host.0 as usize]
    }

    fn of_mut(&mut self, host: HostId) -> &mut Presence {
        &mut self.hosts[host.0 as usize]
    }

    /// What a host is doing in truth.
    pub(super) fn condition(&self, host: HostId) -> Condition {
        self.of(host).condition
    }

    /// Whether a host has power in truth, answering or not.
    pub(super) fn has_power(&self, host: HostId) -> bool {
        self.of(host).condition != Condition::Crashed
    }

    /// Whether every host has power in truth.
    #[inline]
    pub(super) fn all_have_power(&self) -> bool {
        self.all_powered
    }

    /// Whether every host answers every other one in truth.
    #[inline]
    pub(super) fn all_answer(&self) -> bool {
        self.all_answer
    }

    /// The side of a partition on which a host is in truth.
    pub(super) fn side(&self, host: HostId) -> u32 {
        self.of(host).side
    }

    /// Whether a host answers a message from that side.
    pub(super) fn answers(&self, host: HostId, side: Option<u32>) -> bool {
        let presence = self.of(host);
        presence.condition == Condition::Up && side == Some(presence.side)
    }

    /// On which side the cluster sees a host; none = it is seen as gone.
    pub(super) fn seen(&self, host: HostId) -> Option<u32> {
        self.of(host).seen
    }

    /// Whether the cluster sees a host where hosts belong.
    pub(super) fn is_member(&self, host: HostId) -> bool {
        self.of(host).seen == Some(MAIN_SIDE)
    }

    /// All sides on which the cluster sees a host.
    pub(super) fn seen_sides(&self) -> BTreeSet<u32> {
        self.hosts.iter().filter_map(|host| host.seen).collect()
    }

    /// The hosts with power, or those without, ascending.
    pub(super) fn hosts_with_power(&self, powered: bool) -> Vec<HostId> {
        self.ids().filter(|host| self.has_power(*host) == powered).collect()
    }

    /// The hosts that have been seen as gone for at least that long.
    pub(super) fn gone_for(&self, delay: Nanos, now: Nanos) -> BTreeSet<HostId> {
        let is_gone = |host: &HostId| self.of(*host).gone_since.is_some_and(|at| at + delay <= now);
        self.ids().filter(is_gone).collect()
    }

    fn ids(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.hosts.len() as u32).map(HostId)
    }

    /// Hosts lose power, which the others have not noticed yet.
    pub(super) fn lose_power(&mut self, hosts: &[HostId]) {
        for host in hosts {
            self.of_mut(*host).condition = Condition::Crashed;
        }
        self.update_shortcuts();
    }

    /// A host keeps its power and stops answering.
    pub(super) fn freeze(&mut self, host: HostId) {
        debug_assert!(self.has_power(host), "a host without power cannot freeze");
        self.of_mut(host).condition = Condition::Frozen;
        self.update_shortcuts();
    }

    /// Hosts reach each other from now on, and none of the others.
    pub(super) fn part(&mut self, hosts: &[HostId]) {
        let side = self.next_side;
        debug_assert!(self.hosts.iter().all(|host| host.side != side), "a side is used once");
        self.next_side += 1;
        for host in hosts {
            self.of_mut(*host).side = side;
        }
        self.update_shortcuts();
    }

    /// What has happened to these hosts will be noticed together; returns the number of the change.
    pub(super) fn await_detection(&mut self, hosts: &[HostId]) -> u32 {
        self.epoch = self.epoch.wrapping_add(1);
        for host in hosts {
            let epoch = self.epoch;
            self.of_mut(*host).epoch = epoch;
        }
        self.epoch
    }

    /// Notices what has happened to the hosts of that change; returns those that are seen elsewhere than before.
    pub(super) fn detect(&mut self, epoch: u32, now: Nanos) -> Vec<HostId> {
        let mut changed = Vec::new();
        for (host, presence) in (0..).map(HostId).zip(&mut self.hosts) {
            let seen = (presence.condition == Condition::Up).then_some(presence.side);
            if presence.epoch == epoch && presence.seen != seen {
                presence.seen = seen;
                presence.gone_since = Some(now);
                changed.push(host);
            }
        }
        changed
    }

    /// Hosts run again and reach all others, which is noticed at once.
    pub(super) fn come_back(&mut self, hosts: &[HostId]) -> Vec<Returned> {
        // What was still to be noticed of an earlier fault is over.
        let epoch = self.await_detection(hosts);
        let up = Presence {
            condition: Condition::Up,
            side: MAIN_SIDE,
            seen: Some(MAIN_SIDE),
            epoch,
            gone_since: None,
        };
        let mut returned = Vec::new();
        for host in hosts {
            let was = std::mem::replace(self.of_mut(*host), up);
            returned.push(Returned {
                had_crashed: was.condition == Condition::Crashed,
                was_noticed: was.seen != Some(MAIN_SIDE),
            });
        }
        self.update_shortcuts();
        returned
    }

    fn update_shortcuts(&mut self) {
        self.all_powered = self.hosts.iter().all(|host| host.condition != Condition::Crashed);
        self.all_answer =
            self.hosts.iter().all(|host| host.condition == Condition::Up && host.side == MAIN_SIDE);
        // Requests skip the question who answers where this says that all do.
        debug_assert!(self.all_powered || !self.all_answer, "a host without power is silent");
    }

    /// The hosts that are not simply there, as they are stored for a restart.
    pub(super) fn records(&self) -> Vec<HostRecord> {
        let hosts = self.ids().map(|id| (id, self.of(id)));
        hosts
            .filter(|(_, host)| host.condition != Condition::Up || host.side != MAIN_SIDE)
            .map(|(id, host)| HostRecord {
                host: id.0,
                condition: match host.condition {
                    Condition::Up => HostCondition::Up,
                    Condition::Frozen => HostCondition::Frozen,
                    Condition::Crashed => HostCondition::Lost,
                },
                side: host.side,
            })
            .collect()
    }

    /// Takes back what was stored before a restart; all of it has been noticed. Returns the number of a host that there is
    /// not.
    pub(super) fn restore(&mut self, records: &[HostRecord]) -> Result<(), u32> {
        for record in records {
            let host = self.hosts.get_mut(record.host as usize).ok_or(record.host)?;
            host.condition = match record.condition {
                HostCondition::Up => Condition::Up,
                HostCondition::Frozen => Condition::Frozen,
                HostCondition::Lost => Condition::Crashed,
            };
            host.side = record.side;
            host.seen = (host.condition == Condition::Up).then_some(record.side);
            host.gone_since = Some(Nanos::ZERO);
            self.next_side = self.next_side.max(record.side + 1);
        }
        self.update_shortcuts();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{HostId, MAIN_SIDE, Membership, Nanos, Returned};

    fn three() -> Membership {
        let mut membership = Membership::new();
        (0..3).for_each(|_| membership.push());
        membership
    }

    #[test]
    fn a_lost_host_is_seen_until_its_silence_is_detected() {
        let (mut hosts, lost) = (three(), HostId(1));
        hosts.lose_power(&[lost]);
        let epoch = hosts.await_detection(&[lost]);
        assert!(hosts.is_member(lost) && !hosts.answers(lost, Some(MAIN_SIDE)));
        assert!(!hosts.all_have_power() && !hosts.all_answer());
        assert_eq!(hosts.detect(epoch, Nanos(5)), [lost]);
        assert!(!hosts.is_member(lost));
        assert!(hosts.gone_for(Nanos(10), Nanos(14)).is_empty());
        assert_eq!(hosts.gone_for(Nanos(10), Nanos(15)).into_iter().collect::<Vec<_>>(), [lost]);
        let back = hosts.come_back(&[lost]);
        assert_eq!(back, [Returned { had_crashed: true, was_noticed: true }]);
        assert!(hosts.all_answer() && hosts.records().is_empty());
    }

    #[test]
    fn a_return_before_detection_leaves_nothing_to_detect() {
        let (mut hosts, frozen) = (three(), HostId(2));
        hosts.freeze(frozen);
        let epoch = hosts.await_detection(&[frozen]);
        let back = hosts.come_back(&[frozen]);
        assert_eq!(back, [Returned { had_crashed: false, was_noticed: false }]);
        assert!(hosts.detect(epoch, Nanos(5)).is_empty());
    }

    #[test]
    fn sides_are_never_used_again_not_even_after_a_restart() {
        let (mut hosts, apart) = (three(), HostId(0));
        hosts.part(&[apart]);
        let first = hosts.side(apart);
        let records = hosts.records();
        let mut restored = three();
        restored.restore(&records).unwrap();
        assert_eq!(restored.seen(apart), Some(first), "all is noticed after a restart");
        restored.part(&[HostId(1)]);
        assert!(restored.side(HostId(1)) > first);
        assert_eq!(three().restore(&[super::HostRecord { host: 7, ..records[0].clone() }]), Err(7));
    }
}
