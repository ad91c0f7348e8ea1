//! The program or the site stops while a host is away and what was rewritten since has not been flushed; then reads go on without that
//! host, or after its devices were replaced.
//!
//! One failure, whatever else stops for a moment and loses nothing that was flushed: every block must be readable within the promise.
//! Random faults hardly ever come in this order, so it is an event of its own.

use super::topology::Power;
use super::world::World;
use rand::RngExt;
use underlay_core::Nanos;
use underlay_model::cluster::{DeviceId, Fault, HostId, ReturnedContent};

impl World {
    /// A host goes away, if all are there; volumes are written to; everything stops and begins again without that host.
    pub fn stop_while_degraded(&mut self) {
        let host = match self.down.first() {
            Some(host) => *host,
            None => self.lose_one(),
        };
        // Noticed or not.
        let most_ms = [2, 30, 400][self.random.random_range(0..3)];
        let gap = Nanos::from_millis(self.random.random_range(0..most_ms));
        self.pass(gap);
        for _ in 0..self.random.random_range(0..12) {
            self.rewrite();
            let gap = Nanos::from_micros(self.random.random_range(0..2_000));
            self.pass(gap);
        }
        if self.kills && self.random.random_range(0..2) == 0 {
            self.killed_after = Some(0);
            self.collect();
        } else {
            self.power_blinks();
        }
        match self.random.random_range(0..3) {
            0 => self.replace_devices_of(host),
            1 => self.pass(Nanos::from_millis(500)),
            _ => {}
        }
        for subject in 0..self.subjects.len() {
            self.read_everything(subject);
        }
    }

    /// In one of the ways in which a host goes away.
    fn lose_one(&mut self) -> HostId {
        let host = self.any_host();
        self.hit(host);
        self.down.insert(host);
        let fault = match self.random.random_range(0..3) {
            0 => Fault::HostLost { host },
            1 => Fault::HostFrozen { host },
            _ => Fault::HostsPartitioned { hosts: vec![host] },
        };
        let is_loss = matches!(fault, Fault::HostLost { .. });
        self.inject(fault);
        if is_loss {
            self.account_for_volatile_loss();
        }
        self.last_fault = self.now;
        self.reckon();
        self.collect();
        host
    }

    /// All hosts lose power; those that were there have it again at once.
    fn power_blinks(&mut self) {
        let all: Vec<HostId> = self.cluster.hosts().collect();
        self.inject(Fault::PowerCut);
        for flight in self.flights.values_mut() {
            flight.excused = true;
        }
        if self.power == Power::Volatile {
            self.lost_volatile = true;
            for subject in 0..self.subjects.len() {
                self.subjects[subject].reference.lost_volatile();
                self.widen_expectations(subject);
            }
        }
        for host in all.into_iter().filter(|host| !self.down.contains(host)).collect::<Vec<_>>() {
            self.inject(Fault::HostReturned { host });
        }
        self.interrupted();
        self.collect();
    }

    /// The host returns with empty devices.
    fn replace_devices_of(&mut self, host: HostId) {
        let groups: Vec<_> =
            self.cluster.groups().filter(|(_, of, _)| *of == host).map(|(id, _, _)| id).collect();
        self.hit(host);
        self.replaced = true;
        for group in groups {
            // A cache device takes all of its group with it.
            let device = DeviceId { group, member: 0 };
            self.stuck.remove(&device);
            self.inject(Fault::DeviceReturned { device, content: ReturnedContent::Blank });
        }
        if self.random.random_range(0..2) == 0 && self.down.remove(&host) {
            self.inject(Fault::HostReturned { host });
        }
        self.last_fault = self.now;
        self.reckon();
        self.collect();
    }
}
