//! Random faults and repairs, and the account of how much has failed.

use super::topology::Power;
use super::world::World;
use rand::RngExt;
use std::collections::BTreeSet;
use underlay_model::cluster::{
    Checksum, ComponentStatus, DeviceId, Fault, HostId, ReturnedContent,
};

impl World {
    /// Injects something.
    pub fn fault(&mut self) {
        match self.random.random_range(0..21) {
            0..3 => self.lose_host(),
            3 => self.freeze_host(),
            4 => self.partition(),
            5..9 => self.return_host(),
            9 => self.lose_device(),
            10..12 => self.return_device(),
            12 => self.slow_device(),
            13 => self.stick_device(),
            14 => self.fail_device_sometimes(),
            15 => self.power_cut(),
            16 => self.power_on(),
            17 => self.rot(),
            18 => self.tear(),
            19 if self.kills => self.kill_soon(),
            20 => self.stop_while_degraded(),
            _ => {}
        }
        self.last_fault = self.now;
        self.reckon();
        self.collect();
    }

    pub fn any_host(&mut self) -> HostId {
        let count = self.cluster.hosts().count() as u32;
        HostId(self.random.random_range(0..count))
    }

    pub fn any_device(&mut self) -> DeviceId {
        let groups: Vec<_> = self.cluster.groups().map(|(id, _, _)| id).collect();
        let group = groups[self.random.random_range(0..groups.len())];
        let disks = self.cluster.devices().filter(|device| device.device.group == group).count();
        DeviceId { group, member: self.random.random_range(0..=disks as u8) }
    }

    pub fn host_of(&self, device: DeviceId) -> HostId {
        let found = self.cluster.groups().find(|(id, _, _)| *id == device.group);
        found.expect("the group exists").1
    }

    pub fn hit(&mut self, host: HostId) {
        self.hit.insert(self.domains[host.0 as usize].clone());
    }

    pub fn inject(&mut self, fault: Fault) {
        let now = self.now;
        // What does not apply at the moment is refused, and nothing has happened.
        let _refused = self.cluster.inject(now, fault);
    }

    fn lose_host(&mut self) {
        let host = self.any_host();
        self.hit(host);
        self.down.insert(host);
        self.inject(Fault::HostLost { host });
        self.account_for_volatile_loss();
    }

    fn freeze_host(&mut self) {
        let host = self.any_host();
        self.hit(host);
        self.down.insert(host);
        self.inject(Fault::HostFrozen { host });
    }

    fn partition(&mut self) {
        let count = self.cluster.hosts().count();
        let drawn: BTreeSet<HostId> =
            (0..self.random.random_range(1..=count.div_ceil(2))).map(|_| self.any_host()).collect();
        if drawn.len() == count {
            // A host alone has nobody to be separated from.
            return;
        }
        let hosts: Vec<HostId> = drawn.into_iter().collect();
        for host in &hosts {
            self.hit(*host);
            self.down.insert(*host);
        }
        self.inject(Fault::HostsPartitioned { hosts });
    }

    fn return_host(&mut self) {
        let Some(host) = self.down.pop_first() else { return };
        self.inject(Fault::HostReturned { host });
    }

    fn lose_device(&mut self) {
        let device = self.any_device();
        self.hit(self.host_of(device));
        self.inject(Fault::DeviceLost { device });
    }

    /// Returns all failed devices, or replaces one.
    fn return_device(&mut self) {
        let device = self.any_device();
        self.stuck.remove(&device);
        let blank = self.random.random_range(0..3) == 0;
        if blank {
            self.hit(self.host_of(device));
            self.replaced = true;
        }
        let content = if blank { ReturnedContent::Blank } else { ReturnedContent::Kept };
        self.inject(Fault::DeviceReturned { device, content });
    }

    fn slow_device(&mut self) {
        let device = self.any_device();
        let factor = f64::from(self.random.random_range(1..50u32));
        self.inject(Fault::DeviceSlow { device, factor });
    }

    fn stick_device(&mut self) {
        let device = self.any_device();
        self.hit(self.host_of(device));
        self.stuck.insert(device);
        self.inject(Fault::DeviceStuck { device });
    }

    fn fail_device_sometimes(&mut self) {
        let device = self.any_device();
        self.hit(self.host_of(device));
        // It may go on failing long after: the account stays open until the end.
        let domain = self.domains[self.host_of(device).0 as usize].clone();
        for subject in &mut self.subjects {
            subject.scars.insert(domain.clone());
        }
        let probability = [0.01, 0.2, 1.0][self.random.random_range(0..3)];
        self.inject(Fault::DeviceErroring { device, probability });
    }

    fn power_cut(&mut self) {
        let hosts: Vec<HostId> = self.cluster.hosts().collect();
        for host in hosts {
            self.hit(host);
            self.down.insert(host);
        }
        self.inject(Fault::PowerCut);
        self.account_for_volatile_loss();
    }

    /// Power is back on all hosts that lost it; frozen and partitioned ones return as well, so that runs go on.
    fn power_on(&mut self) {
        self.inject(Fault::PowerOn);
        while let Some(host) = self.down.pop_first() {
            self.inject(Fault::HostReturned { host });
        }
    }

    /// More hosts than promised lost power: what was not flushed may be gone.
    pub fn account_for_volatile_loss(&mut self) {
        self.reckon();
        if self.power == Power::Protected {
            return;
        }
        for subject in 0..self.subjects.len() {
            if self.beyond_promise(subject) {
                self.lost_volatile = true;
                if self.trace {
                    println!("{}: v{subject} may have lost what was not flushed", self.now);
                }
                self.subjects[subject].reference.lost_volatile();
                self.widen_expectations(subject);
            }
        }
    }

    /// A component of a volume with checksums, about to be harmed.
    fn any_summed_component(&mut self) -> Option<ComponentStatus> {
        let subject = self.random.random_range(0..self.subjects.len());
        let status = self.cluster.volume_status(self.subjects[subject].id)?;
        // During a change from or to no checksums the result would not be covered.
        let covered = status.policy.checksum == Checksum::On
            && self.subjects[subject].wanted.checksum == Checksum::On;
        if !covered || status.components.is_empty() {
            return None;
        }
        let component = status.components[self.random.random_range(0..status.components.len())];
        let domain = self.domains[component.host.0 as usize].clone();
        self.subjects[subject].scars.insert(domain);
        Some(component)
    }

    fn rot(&mut self) {
        let Some(component) = self.any_summed_component() else { return };
        let offset_bytes = self.random.random_range(0..component.length.0);
        let bit = self.random.random_range(0..8);
        self.inject(Fault::BitRot { component: component.component, offset_bytes, bit });
    }

    fn tear(&mut self) {
        let Some(component) = self.any_summed_component() else { return };
        let keep_bytes = self.random.random_range(0..16) * 512;
        self.inject(Fault::TornWrite { component: component.component, keep_bytes });
    }
}
