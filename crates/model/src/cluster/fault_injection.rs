//! Fault injection: checks a fault or repair, applies it, and starts the timers of its detection.
//!
//! What is not here: how volumes react. The module `repair` decides that when the fault is detected.

use super::cluster::Cluster;
use super::data_command::DataCommand;
use super::event::{Notice, PriorFault, Reachability};
use super::fault::{Fault, FaultProblem, ReturnedContent};
use super::ids::{ComponentId, DeviceId, HostId};
use super::inventory::Inventory;
use super::membership::Condition;
use super::objects::Objects;
use super::operation::{FailedHow, SubState};
use super::repair::Repair;
use super::requests::Requests;
use super::storage::Storage;
use super::timers::Timer;
use crate::disk_group::MemberState;
use std::collections::BTreeSet;
use underlay_core::Nanos;

impl Inventory {
    fn check_device(&self, device: DeviceId) -> Result<(), FaultProblem> {
        let exists = self
            .groups()
            .get(device.group.0 as usize)
            .is_some_and(|group| usize::from(device.member) < group.members.len());
        if exists {
            return Ok(());
        }
        Err(FaultProblem::NoDevice { group: device.group.0, member: device.member })
    }

    fn check_host_exists(&self, host: HostId) -> Result<(), FaultProblem> {
        match self.hosts().get(host.0 as usize) {
            Some(_) => Ok(()),
            None => Err(FaultProblem::NoHost(host.0)),
        }
    }

    /// What is wrong with a device until it returns.
    fn prior_fault(&self, device: DeviceId, content: ReturnedContent) -> PriorFault {
        let group = self.group(device.group);
        if content == ReturnedContent::Blank || group.members[usize::from(device.member)].failed {
            return PriorFault::OutOfUse;
        }
        match group.engine.member_state(usize::from(device.member)) {
            None | Some(MemberState::Healthy) => PriorFault::None,
            Some(MemberState::Slow { .. }) => PriorFault::Slow,
            Some(MemberState::Stuck) => PriorFault::Stuck,
            Some(MemberState::Erroring { .. }) => PriorFault::Erroring,
            Some(MemberState::Lost) => PriorFault::OutOfUse,
        }
    }

    fn describe(&self, fault: &Fault) -> String {
        let host = |id: &HostId| self.host_in_words(*id);
        match fault {
            Fault::DeviceSlow { device, factor } => {
                format!("{} slower by a factor of {factor}", self.device_name(*device))
            }
            Fault::DeviceStuck { device } => format!("{} stuck", self.device_name(*device)),
            Fault::DeviceErroring { device, probability } => {
                let percent = probability * 100.0;
                format!("{} fails {percent} % of its I/Os", self.device_name(*device))
            }
            Fault::DeviceLost { device } => format!("{} lost", self.device_name(*device)),
            Fault::DeviceReturned { device, content: ReturnedContent::Kept } => {
                format!("{} returned", self.device_name(*device))
            }
            Fault::DeviceReturned { device, content: ReturnedContent::Blank } => {
                format!("{} replaced by a new one", self.device_name(*device))
            }
            Fault::HostLost { host: id } => format!("{} lost power", host(id)),
            Fault::HostFrozen { host: id } => format!("{} frozen", host(id)),
            Fault::HostsPartitioned { hosts } => {
                let names: Vec<String> = hosts.iter().map(host).collect();
                format!("{} partitioned from the others", names.join(", "))
            }
            Fault::HostReturned { host: id } => format!("{} returned", host(id)),
            Fault::PowerCut => "power cut of all hosts".to_string(),
            Fault::PowerOn => "power back on all hosts".to_string(),
            Fault::BitRot { component, offset_bytes, .. } => {
                format!("bit rot in component {component} at {offset_bytes}")
            }
            Fault::TornWrite { component, .. } => {
                format!("next write to component {component} torn")
            }
        }
    }

    /// A host in a sentence: `host a`, and `host-1` as it is.
    pub(super) fn host_in_words(&self, host: HostId) -> String {
        match self.hosts().get(host.0 as usize) {
            Some(host) if host.name.starts_with("host") => host.name.clone(),
            Some(host) => format!("host {}", host.name),
            None => format!("host {}", host.0),
        }
    }

    /// A device by host, group and place.
    pub(super) fn device_name(&self, device: DeviceId) -> String {
        let group = self.group(device.group);
        let host = &self.host(group.host).name;
        match device.member {
            0 => format!("{host}/{}/cache", group.name),
            member => format!("{host}/{}/disk{}", group.name, member - 1),
        }
    }
}

impl Objects {
    fn component_length(&self, component: ComponentId) -> Result<u64, FaultProblem> {
        self.component(component)
            .map(|component| component.length)
            .ok_or(FaultProblem::NoComponent(component))
    }
}

impl Storage {
    fn check_host(&self, host: HostId, not: Condition) -> Result<(), FaultProblem> {
        self.inventory.check_host_exists(host)?;
        if self.membership.condition(host) != not {
            return Ok(());
        }
        let state = match not {
            Condition::Up => "running",
            Condition::Frozen => "frozen",
            Condition::Crashed => "without power",
        };
        let host = self.inventory.host_in_words(host);
        Err(FaultProblem::HostState { host, state, remedy: "return it first" })
    }

    fn check_fault(&self, fault: &Fault) -> Result<(), FaultProblem> {
        match fault {
            Fault::DeviceSlow { device, factor } => {
                self.inventory.check_device(*device)?;
                let holds = factor.is_finite() && *factor > 0.0;
                argument("factor", factor, "use a number above 0", holds)
            }
            Fault::DeviceErroring { device, probability } => {
                self.inventory.check_device(*device)?;
                let holds = (0.0..=1.0).contains(probability);
                argument("probability", probability, "use 0 to 1", holds)
            }
            Fault::DeviceStuck { device }
            | Fault::DeviceLost { device }
            | Fault::DeviceReturned { device, .. } => self.inventory.check_device(*device),
            Fault::HostLost { host } => self.check_host(*host, Condition::Crashed),
            Fault::HostFrozen { host } => {
                self.check_host(*host, Condition::Crashed)?;
                self.check_host(*host, Condition::Frozen)
            }
            Fault::HostReturned { host } => self.inventory.check_host_exists(*host),
            Fault::HostsPartitioned { hosts } => {
                for host in hosts {
                    self.inventory.check_host_exists(*host)?;
                }
                argument("hosts", &hosts.len(), "name at least one host", !hosts.is_empty())?;
                let different: BTreeSet<HostId> = hosts.iter().copied().collect();
                let named = hosts.iter().map(|id| self.inventory.host(*id).name.as_str());
                let named = named.collect::<Vec<_>>().join(", ");
                let rule = "name each host once";
                argument("hosts", &named, rule, different.len() == hosts.len())?;
                let rule = "leave at least one host on the other side";
                argument("hosts", &named, rule, different.len() < self.inventory.hosts().len())
            }
            Fault::PowerCut | Fault::PowerOn => Ok(()),
            Fault::BitRot { component, offset_bytes, bit } => {
                let length = self.objects.component_length(*component)?;
                argument("bit", bit, "use 0 to 7", *bit < 8)?;
                let rule = "use an offset within the component";
                argument("offset-bytes", offset_bytes, rule, *offset_bytes < length)
            }
            Fault::TornWrite { component, keep_bytes } => {
                self.objects.component_length(*component)?;
                let rule = "use a multiple of 512";
                argument("keep-bytes", keep_bytes, rule, keep_bytes.is_multiple_of(512))
            }
        }
    }

    /// The hosts' silence is noticed after the detection time, at one moment.
    fn will_be_detected(&mut self, hosts: &[HostId]) {
        let epoch = self.membership.await_detection(hosts);
        let at = self.clock.now() + self.settings.failure_detection;
        self.clock.schedule(at, Timer::Detect { epoch });
    }
}

impl Repair {
    /// A component lost everything: each row it held is stale.
    fn blank(&mut self, storage: &mut Storage, requests: &mut Requests, id: ComponentId) {
        let Some(component) = storage.objects.component_mut(id) else { return };
        let rows: Vec<u64> = component.written.iter().collect();
        if let Some(volatile) = &mut component.volatile {
            volatile.forget();
        }
        storage.outbox.command(DataCommand::Blank { component: id });
        for row in rows {
            storage.release(id, row);
            self.mark_stale(storage, requests, id, row);
        }
    }
}

impl Cluster {
    /// Lets a fault, or a repair, happen at `now`.
    ///
    /// # Errors
    /// When what it names does not exist, or it does not apply; nothing has happened then.
    pub fn inject(&mut self, now: Nanos, fault: Fault) -> Result<(), FaultProblem> {
        self.run_until(now);
        self.storage.check_fault(&fault)?;
        // Who has failed, and who has returned, must be known after a restart.
        self.storage.outbox.state_changed();
        let now = self.storage.clock.now();
        let description = self.storage.inventory.describe(&fault);
        self.storage.outbox.notice(now, Notice::Fault { description });
        match fault {
            Fault::DeviceSlow { device, factor } => {
                self.storage.inventory.set_member(now, device, MemberState::Slow { factor });
            }
            Fault::DeviceErroring { device, probability } => {
                self.storage.inventory.set_member(
                    now,
                    device,
                    MemberState::Erroring { probability },
                );
            }
            Fault::DeviceStuck { device } => {
                let epoch = self.storage.inventory.set_member(now, device, MemberState::Stuck);
                let at = now + self.storage.settings.device_timeout;
                self.storage.clock.schedule(at, Timer::GiveUp { device, epoch });
            }
            Fault::DeviceLost { device } => {
                self.storage.inventory.set_member(now, device, MemberState::Lost);
                self.repair.device_failed(&mut self.storage, &mut self.requests, device);
            }
            Fault::DeviceReturned { device, content } => self.device_returned(device, content),
            Fault::HostLost { host } => self.hosts_crash(&[host]),
            Fault::PowerCut => {
                let hosts = self.storage.membership.hosts_with_power(true);
                self.hosts_crash(&hosts);
            }
            Fault::HostFrozen { host } => {
                self.storage.membership.freeze(host);
                self.storage.will_be_detected(&[host]);
            }
            Fault::HostsPartitioned { hosts } => {
                self.storage.membership.part(&hosts);
                self.storage.will_be_detected(&hosts);
            }
            Fault::HostReturned { host } => self.hosts_return(&[host]),
            Fault::PowerOn => {
                let hosts = self.storage.membership.hosts_with_power(false);
                self.hosts_return(&hosts);
            }
            Fault::BitRot { component, offset_bytes, bit } => {
                self.storage.outbox.command(DataCommand::BitRot { component, offset_bytes, bit });
            }
            Fault::TornWrite { component, keep_bytes } => {
                self.storage.outbox.command(DataCommand::TearNextWrite { component, keep_bytes });
            }
        }
        // What loses its bytes by this must not be counted on any more; what is stored there from now on must stay.
        self.storage.emit_changed_state();
        Ok(())
    }

    fn device_returned(&mut self, device: DeviceId, content: ReturnedContent) {
        let now = self.storage.clock.now();
        let was = self.storage.inventory.prior_fault(device, content);
        self.storage.inventory.set_member(now, device, MemberState::Healthy);
        let group = self.storage.inventory.group_mut(device.group);
        let alone = group.device_fails_alone(device.member);
        let member = &mut group.members[usize::from(device.member)];
        member.failed = false;
        member.read_errors = 0;
        if content == ReturnedContent::Blank {
            let hit: Vec<ComponentId> = self
                .storage
                .objects
                .components()
                .filter(|component| {
                    component.group == device.group
                        && (!alone || component.disk + 1 == device.member)
                })
                .map(|component| component.id)
                .collect();
            for id in hit {
                self.repair.blank(&mut self.storage, &mut self.requests, id);
            }
        }
        self.storage.outbox.notice(now, Notice::DeviceReturned { device, was });
        self.repair.membership_changed(&mut self.storage, &mut self.requests);
    }

    fn hosts_crash(&mut self, hosts: &[HostId]) {
        self.crash(hosts);
        self.storage.will_be_detected(hosts);
    }

    fn hosts_return(&mut self, hosts: &[HostId]) {
        let now = self.storage.clock.now();
        let returned = self.storage.membership.come_back(hosts);
        for (host, returned) in hosts.iter().zip(returned) {
            if returned.had_crashed {
                self.storage.inventory.power_on(*host, now);
            }
            if returned.was_noticed {
                let notice = Notice::Host { host: *host, reachability: Reachability::Reachable };
                self.storage.outbox.notice(now, notice);
            }
        }
        self.repair.membership_changed(&mut self.storage, &mut self.requests);
        // What was in a host's disk groups when its power went will never be answered.
        self.requests.fail_subs(
            &mut self.storage,
            &mut self.repair,
            |_| FailedHow::Crashed,
            |sub| sub.state == SubState::Vanished && hosts.contains(&sub.host),
        );
        self.requests.resume_subs(&mut self.storage, &mut self.repair);
    }

    /// A host in a sentence: `host a`, and `host-1` as it is.
    pub fn host_in_words(&self, host: HostId) -> String {
        self.storage.inventory.host_in_words(host)
    }

    /// A device by host, group and place.
    pub fn device_name(&self, device: DeviceId) -> String {
        self.storage.inventory.device_name(device)
    }
}

fn argument(
    what: &'static str,
    value: &impl ToString,
    rule: &'static str,
    holds: bool,
) -> Result<(), FaultProblem> {
    if holds {
        return Ok(());
    }
    Err(FaultProblem::Argument { what, value: value.to_string(), rule })
}
