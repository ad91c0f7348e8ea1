//! Hosts, disk groups and devices: what they consist of, what is full, what has failed.
//!
//! What is not here: which hosts answer ([`super::membership::Membership`]).

use super::data_command::DurabilityPoint;
use super::ids::{ComponentId, DeviceId, GroupId, HostId};
use crate::disk_group::{DiskGroup, DiskGroupSpec, Reduction};
use crate::profile::DeviceProfile;
use crate::stage::{CREDIT, Stage};
use std::collections::VecDeque;
use underlay_core::{Nanos, RootSeed};

/// One host.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) id: HostId,
    pub(super) name: String,
    pub(super) fault_domain: String,
    /// Components and witnesses it holds.
    pub(super) components: u32,
    /// Its link, by direction.
    pub(super) send: Stage,
    pub(super) receive: Stage,
    /// Its storage stack.
    pub(super) stack: Stage,
}

impl Host {
    /// A running host with one part in `divisor` of its link and of its storage stack.
    pub(super) fn new(id: HostId, name: &str, fault_domain: Option<&str>, divisor: u32) -> Host {
        let stage = Stage::new(divisor, CREDIT);
        Host {
            id,
            name: name.to_string(),
            // A host's own domain cannot be confused with a named one.
            fault_domain: fault_domain
                .map_or_else(|| format!("host:{name}"), |name| format!("domain:{name}")),
            components: 0,
            send: stage,
            receive: stage,
            stack: stage,
        }
    }
}

/// One device of a group, as far as faults are concerned.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) failed: bool,
    pub(super) epoch: u32,
    pub(super) read_errors: u32,
}

/// Space of one capacity device.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    pub(super) capacity: u64,
    /// Bytes that components occupy or have reserved.
    pub(super) used: u64,
    /// Lengths of all components.
    pub(super) promised: u64,
    /// Address ranges given out: start, length, component; ascending.
    pub(super) ranges: Vec<(u64, u64, ComponentId)>,
}

impl Disk {
    fn new(capacity: u64) -> Disk {
        Disk { capacity, used: 0, promised: 0, ranges: Vec::new() }
    }

    /// Bytes that are neither used nor reserved.
    pub(super) fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.used)
    }

    /// Used share of the capacity in hundredths of a percent.
    pub(super) fn fullness(&self) -> u64 {
        debug_assert!(self.capacity > 0, "a device has room");
        (u128::from(self.used) * 10_000 / u128::from(self.capacity)) as u64
    }

    /// Takes an address range: the first gap that fits. Thin components may exceed the capacity together, so
    /// that the address space is open at its end.
    pub(super) fn take_range(&mut self, length: u64, component: ComponentId) -> u64 {
        let mut base = 0;
        let mut at = self.ranges.len();
        for (index, (start, taken, _)) in self.ranges.iter().enumerate() {
            if base + length <= *start {
                at = index;
                break;
            }
            base = start + taken;
        }
        debug_assert!(self.is_gap(at, base, length), "address ranges do not overlap");
        self.ranges.insert(at, (base, length, component));
        self.promised += length;
        base
    }

    /// Takes an address range that was given out in an earlier life.
    pub(super) fn restore_range(&mut self, base: u64, length: u64, component: ComponentId) {
        let at = self.ranges.partition_point(|(start, _, _)| *start < base);
        debug_assert!(self.is_gap(at, base, length), "address ranges do not overlap");
        self.ranges.insert(at, (base, length, component));
        self.promised += length;
    }

    /// Whether a range lies between the ranges before and after a position.
    fn is_gap(&self, at: usize, base: u64, length: u64) -> bool {
        let before =
            at.checked_sub(1).map_or(0, |before| self.ranges[before].0 + self.ranges[before].1);
        before <= base && self.ranges.get(at).is_none_or(|(next, _, _)| base + length <= *next)
    }

    /// Gives the component's address range back.
    pub(super) fn return_range(&mut self, component: ComponentId) {
        if let Some(at) = self.ranges.iter().position(|(_, _, owner)| *owner == component) {
            let (_, length, _) = self.ranges.remove(at);
            debug_assert!(length <= self.promised, "a range that is returned was given out");
            self.promised -= length;
        }
    }

    /// Whose address that is, and how far into it.
    pub(super) fn owner_of(&self, offset: u64) -> Option<(ComponentId, u64)> {
        let after = self.ranges.partition_point(|(start, _, _)| *start <= offset);
        let (start, length, component) = self.ranges[..after].last()?;
        (offset - start < *length).then(|| (*component, offset - start))
    }

    /// The same, and for how many bytes from there on that is so.
    pub(super) fn owner_from(&self, offset: u64) -> (Option<(ComponentId, u64)>, u64) {
        let after = self.ranges.partition_point(|(start, _, _)| *start <= offset);
        match self.owner_of(offset) {
            Some((component, within)) => {
                let (_, length, _) = self.ranges[after - 1];
                (Some((component, within)), length - within)
            }
            None => {
                let next = self.ranges.get(after).map_or(u64::MAX, |(start, _, _)| *start);
                (None, next - offset)
            }
        }
    }
}

/// One disk group with what the cluster knows about it.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: GroupId,
    pub(super) host: HostId,
    pub(super) name: String,
    pub(super) engine: DiskGroup,
    /// Cache device first.
    pub(super) members: Vec<Member>,
    pub(super) disks: Vec<Disk>,
    pub(super) durability: DurabilityPoint,
    /// Whether any failed device fails the group: deduplicated data is spread over all of them.
    fails_together: bool,
    /// Components being filled here, in turn.
    pub(super) filling: VecDeque<ComponentId>,
    /// Resync I/Os in flight towards this group.
    pub(super) resync_in_flight: u32,
}

fn group_seed(seed: RootSeed, id: GroupId) -> RootSeed {
    seed.child("disk-group", u64::from(id.0))
}

impl Group {
    /// A healthy, empty group.
    pub(super) fn new(id: GroupId, host: HostId, spec: &DiskGroupSpec, seed: RootSeed) -> Group {
        let member = Member { failed: false, epoch: 0, read_errors: 0 };
        Group {
            id,
            host,
            name: spec.name.clone(),
            members: vec![member; spec.capacity.len() + 1],
            disks: spec.capacity.iter().map(|profile| Disk::new(profile.capacity.0)).collect(),
            durability: if spec.cache.is_durable() {
                DurabilityPoint::OnWrite
            } else {
                DurabilityPoint::OnFlush
            },
            fails_together: spec.reduction != Reduction::Off,
            engine: DiskGroup::new(spec.clone(), group_seed(seed, id)),
            filling: VecDeque::new(),
            resync_in_flight: 0,
        }
    }

    /// Adds an empty capacity device; `seed` is that of all groups.
    pub(super) fn add_device(
        &mut self,
        now: Nanos,
        profile: &DeviceProfile,
        seed: RootSeed,
    ) -> DeviceId {
        self.engine.add_capacity(now, profile, group_seed(seed, self.id));
        self.members.push(Member { failed: false, epoch: 0, read_errors: 0 });
        self.disks.push(Disk::new(profile.capacity.0));
        // The cache device is member 0, so that the last disk has the number of all disks.
        DeviceId { group: self.id, member: self.disks.len() as u8 }
    }

    /// Whether components on that disk can be used.
    pub(super) fn works(&self, disk: u8) -> bool {
        if self.fails_together {
            return self.members.iter().all(|member| !member.failed);
        }
        !self.members[0].failed && !self.members[usize::from(disk) + 1].failed
    }

    /// Whether the loss of that device leaves the others of the group intact.
    pub(super) fn device_fails_alone(&self, member: u8) -> bool {
        member != 0 && !self.fails_together
    }
}

#[cfg(test)]
mod tests {
    use super::{ComponentId, Disk};

    #[test]
    fn address_ranges_never_overlap_and_gaps_are_used_again() {
        let mut disk = Disk::new(100);
        let c = ComponentId;
        assert_eq!(disk.take_range(40, c(1)), 0);
        assert_eq!(disk.take_range(40, c(2)), 40);
        assert_eq!(disk.take_range(40, c(3)), 80);
        disk.return_range(c(2));
        assert_eq!(disk.owner_of(45), None);
        assert_eq!(disk.take_range(30, c(4)), 40);
        assert_eq!(disk.take_range(20, c(5)), 120);
        assert_eq!(disk.owner_of(69), Some((c(4), 29)));
        assert_eq!(disk.owner_of(70), None);
        assert_eq!(disk.owner_of(139), Some((c(5), 19)));
        assert_eq!(disk.owner_from(45), (Some((c(4), 5)), 25));
        assert_eq!(disk.owner_from(75), (None, 5));
        assert_eq!(disk.owner_from(140), (None, u64::MAX - 140));
        assert_eq!(disk.promised, 130);
    }
}
