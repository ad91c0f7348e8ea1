//! The hosts and disk groups of a cluster: what there is, what works, and when a group is to be called.
//!
//! Every call of a disk group that may change the time of its next event goes through here, so that none is missed.
//!
//! What is not here: who answers ([`super::membership::Membership`]), what lies on the devices
//! ([`super::objects::Objects`]) and the settings. The inventory decides nothing.

use super::ids::{DeviceId, GroupId, HostId};
use super::network::Network;
use super::spec::{HostSpec, NetworkSpec};
use super::topology::{Group, Host};
use super::wakeups::Wakeups;
use crate::disk_group::{DiskGroupSpec, GroupCounters, GroupFinished, GroupIo, MemberState};
use crate::profile::DeviceProfile;
use crate::service_factor::ServiceFactor;
use underlay_core::{Nanos, RootSeed};

/// Hosts, disk groups and the network between them.
#[derive(Debug)]
pub(super) struct Inventory {
    network: Network,
    hosts: Vec<Host>,
    groups: Vec<Group>,
    /// When each group wants to be called.
    wakeups: Wakeups,
    /// Seeds the disk groups.
    seed: RootSeed,
}

impl Inventory {
    /// No hosts.
    pub(super) fn new(network: NetworkSpec, seed: RootSeed) -> Inventory {
        Inventory {
            network: Network::new(network),
            hosts: Vec::new(),
            groups: Vec::new(),
            wakeups: Wakeups::new(),
            seed,
        }
    }

    /// All hosts; the one of number `n` is the `n`th.
    pub(super) fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// A host that exists.
    #[inline]
    pub(super) fn host(&self, id: HostId) -> &Host {
        &self.hosts[id.0 as usize]
    }

    /// All disk groups; the one of number `n` is the `n`th.
    #[inline]
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// A disk group that exists.
    #[inline]
    pub(super) fn group(&self, id: GroupId) -> &Group {
        &self.groups[id.0 as usize]
    }

    /// A disk group that exists, to change what the cluster knows of it.
    #[inline]
    pub(super) fn group_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.groups[id.0 as usize]
    }

    /// A disk group by a number from outside.
    pub(super) fn find_group_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.groups.get_mut(id.0 as usize)
    }

    #[inline]
    pub(super) fn host_of(&self, group: GroupId) -> HostId {
        self.groups[group.0 as usize].host
    }

    /// Adds a host that was checked.
    pub(super) fn push_host(&mut self, spec: &HostSpec) -> HostId {
        let id = HostId(self.hosts.len() as u32);
        let divisor = self.network.divisor();
        self.hosts.push(Host::new(id, &spec.name, spec.fault_domain.as_deref(), divisor));
        for group in &spec.groups {
            self.push_group(id, group);
        }
        id
    }

    /// Adds a disk group that was checked.
    pub(super) fn push_group(&mut self, host: HostId, spec: &DiskGroupSpec) -> GroupId {
        assert!((host.0 as usize) < self.hosts.len(), "a disk group belongs to a host");
        let id = GroupId(self.groups.len() as u32);
        let mut group = Group::new(id, host, spec, self.seed);
        self.groups.iter().for_each(|other| group.engine.share_tables(&other.engine));
        self.groups.push(group);
        self.wakeups.push();
        id
    }

    /// Adds a capacity device that was checked to a disk group that exists.
    pub(super) fn push_device(
        &mut self,
        now: Nanos,
        group: GroupId,
        profile: &DeviceProfile,
    ) -> DeviceId {
        let device = self.groups[group.0 as usize].add_device(now, profile, self.seed);
        self.note_wakeup(group);
        device
    }

    /// The host holds one more component or witness.
    pub(super) fn count_on_host(&mut self, host: HostId) {
        self.hosts[host.0 as usize].components += 1;
    }

    /// The host holds one component or witness less.
    pub(super) fn discount_on_host(&mut self, host: HostId) {
        let components = &mut self.hosts[host.0 as usize].components;
        debug_assert!(*components > 0, "what leaves a host was counted there");
        *components -= 1;
    }

    /// What write buffers hold is on the capacity devices, in no time.
    pub(super) fn destage_all(&mut self, now: Nanos) {
        for index in 0..self.groups.len() {
            let id = GroupId(index as u32);
            self.group_mut(id).engine.destage_all(now);
            self.note_wakeup(id);
        }
    }

    /// Messages sent from now on take longer by this factor.
    pub(super) fn set_network_factor(&mut self, factor: ServiceFactor) {
        self.network.set_factor(factor);
    }

    /// The latency of a message, one way; it is not shared.
    #[inline]
    pub(super) fn latency_between(&self, from: HostId, to: HostId) -> Nanos {
        self.network.latency_between(from, to)
    }

    /// When a message sent at `now` has arrived.
    #[inline]
    pub(super) fn travel(&mut self, from: HostId, to: HostId, bytes: u32, now: Nanos) -> Nanos {
        self.network.travel(&mut self.hosts, from, to, bytes, now)
    }

    /// When the first disk group wants to be called, in ns (`u64::MAX` = never), and which that is.
    #[inline(always)]
    pub(super) fn first_wakeup(&self) -> (u64, GroupId) {
        let (at, index) = self.wakeups.first();
        (at, GroupId(index as u32))
    }

    /// The earliest time at which a disk group may answer, in ns; `u64::MAX` = none will.
    pub(super) fn next_answer(&self) -> u64 {
        let answers = self.groups.iter().filter_map(|group| group.engine.next_answer());
        answers.fold(u64::MAX, |next, at| next.min(at.0))
    }

    /// Asks the group when it wants to be called next; needed after each call that may change it.
    #[inline]
    fn note_wakeup(&mut self, group: GroupId) {
        let index = group.0 as usize;
        let at = self.groups[index].engine.wakeup().0;
        if at != self.wakeups.at(index) {
            self.wakeups.set(index, at);
        }
    }

    /// Lets time pass for one disk group. Hands out what it finished if that is one I/O, and appends it otherwise.
    #[inline(always)]
    pub(super) fn advance(
        &mut self,
        group: GroupId,
        now: Nanos,
        finished: &mut Vec<GroupFinished>,
    ) -> Option<GroupFinished> {
        let engine = &mut self.groups[group.0 as usize].engine;
        let only = engine.advance_to_one(now, finished);
        self.wakeups.set(group.0 as usize, engine.wakeup().0);
        only
    }

    /// When a request that is there at `now` has passed the storage stack of a host, which it occupies for `cost`.
    #[inline]
    pub(super) fn pass_stack(&mut self, host: HostId, now: Nanos, cost: Nanos) -> Nanos {
        if cost == Nanos::ZERO {
            return now;
        }
        self.hosts[host.0 as usize].stack.serve(now, cost) + cost
    }

    /// Gives an I/O to a disk group, which may be up to `head_start` early with its answer.
    #[inline]
    pub(super) fn submit(&mut self, group: GroupId, now: Nanos, io: GroupIo, head_start: Nanos) {
        self.groups[group.0 as usize].engine.submit_early(now, io, head_start);
        self.note_wakeup(group);
    }

    /// How long a disk group asks writers to wait.
    #[inline]
    pub(super) fn ingress_delay(&mut self, group: GroupId, now: Nanos) -> Nanos {
        let index = group.0 as usize;
        let engine = &mut self.groups[index].engine;
        // The usual case, in which the group need not be brought up to date.
        if self.wakeups.at(index) > now.0 && engine.is_uncongested() {
            return Nanos::ZERO;
        }
        let delay = engine.ingress_delay(now);
        self.wakeups.set(index, engine.wakeup().0);
        delay
    }

    /// What a disk group has done up to `now`; none if there is no such group.
    pub(super) fn group_counters(&mut self, group: GroupId, now: Nanos) -> Option<GroupCounters> {
        let counters = self.groups.get_mut(group.0 as usize)?.engine.counters(now);
        self.note_wakeup(group);
        Some(counters)
    }

    /// Puts a device into a state; returns the number of the change.
    pub(super) fn set_member(&mut self, now: Nanos, device: DeviceId, state: MemberState) -> u32 {
        let group = &mut self.groups[device.group.0 as usize];
        group.engine.set_member(now, usize::from(device.member), state);
        let member = &mut group.members[usize::from(device.member)];
        member.epoch = member.epoch.wrapping_add(1);
        let epoch = member.epoch;
        self.note_wakeup(device.group);
        epoch
    }

    /// The disk groups of these hosts lose their power.
    pub(super) fn power_cut(&mut self, hosts: &[HostId], now: Nanos) {
        for id in (0..self.groups.len() as u32).map(GroupId) {
            if hosts.contains(&self.host_of(id)) {
                self.group_mut(id).engine.power_cut(now);
                self.note_wakeup(id);
            }
        }
    }

    /// The disk groups of a host have power again.
    pub(super) fn power_on(&mut self, host: HostId, now: Nanos) {
        for id in (0..self.groups.len() as u32).map(GroupId) {
            if self.host_of(id) == host {
                self.group_mut(id).engine.power_on(now);
                self.note_wakeup(id);
            }
        }
    }
}
