//! A disk group without buffer, elevator and scheduler: each I/O is one step on one device. Used until the real one is here.

use crate::device::Device;
use crate::disk_group::{DiskGroupSpec, GroupFinished, GroupIo, GroupOutcome, MemberState};
use crate::request::{Operation, Request};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use underlay_core::{Nanos, RootSeed};

#[derive(Debug)]
pub(super) struct DiskGroup {
    devices: Vec<Device>,
    states: Vec<MemberState>,
    flights: BTreeMap<(Nanos, u64), GroupFinished>,
    stuck: Vec<(usize, GroupIo, Nanos)>,
    sequence: u64,
    random: Pcg64,
}

impl DiskGroup {
    pub(super) fn new(spec: DiskGroupSpec, seed: RootSeed) -> DiskGroup {
        let devices: Vec<Device> = std::iter::once(&spec.cache)
            .chain(&spec.capacity)
            .enumerate()
            .map(|(index, profile)| Device::new(profile, seed, &format!("{}.{index}", spec.name)))
            .collect();
        DiskGroup {
            states: vec![MemberState::Healthy; devices.len()],
            devices,
            flights: BTreeMap::new(),
            stuck: Vec::new(),
            sequence: 0,
            random: seed.stream("stand-in", 0),
        }
    }
    pub(super) fn submit(&mut self, now: Nanos, io: GroupIo) {
        let member = if io.operation == Operation::Read { io.disk + 1 } else { 0 };
        let lost = |state: &MemberState| *state == MemberState::Lost;
        let mut outcome = GroupOutcome::Ok;
        if lost(&self.states[0]) {
            outcome = GroupOutcome::DeviceLost { device: 0 };
        } else if lost(&self.states[io.disk + 1]) {
            outcome = GroupOutcome::DeviceLost { device: io.disk + 1 };
        }
        let mut factor = 1.0;
        match self.states[member] {
            MemberState::Stuck => {
                self.stuck.push((member, io, now));
                return;
            }
            MemberState::Erroring { probability } if self.random.random_bool(probability) => {
                outcome = GroupOutcome::DeviceError { device: member };
            }
            MemberState::Slow { factor: slow } => factor = slow,
            _ => {}
        }
        let request = Request {
            operation: io.operation,
            offset_bytes: io.offset_bytes,
            length_bytes: io.length_bytes,
            force_unit_access: false,
        };
        let done = self.devices[member].submit(now, &request);
        let at = now + Nanos(((done.at - now).0 as f64 * factor) as u64);
        self.sequence += 1;
        let finished =
            GroupFinished { id: io.id, at, queue: done.queue, service: done.service, outcome };
        self.flights.insert((at, self.sequence), finished);
    }
    pub(super) fn next_wakeup(&self) -> Option<Nanos> {
        self.flights.first_key_value().map(|((at, _), _)| *at)
    }
    pub(super) fn advance(&mut self, now: Nanos, finished: &mut Vec<GroupFinished>) {
        while let Some(entry) = self.flights.first_entry() {
            if entry.key().0 > now {
                break;
            }
            finished.push(entry.remove());
        }
    }
    pub(super) fn ingress_delay(&mut self, _now: Nanos) -> Nanos {
        Nanos::ZERO
    }
    pub(super) fn set_member(&mut self, now: Nanos, member: usize, state: MemberState) {
        self.states[member] = state;
        let stuck = std::mem::take(&mut self.stuck);
        for (of, io, at) in stuck {
            if of == member {
                self.submit(now, io);
            } else {
                self.stuck.push((of, io, at));
            }
        }
    }
    pub(super) fn power_cut(&mut self, _now: Nanos) {
        self.flights.clear();
        self.stuck.clear();
    }
    pub(super) fn power_on(&mut self, _now: Nanos) {}
}
