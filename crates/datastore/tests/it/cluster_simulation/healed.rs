//! The end of a run: everything is returned, and must come to rest and add up.

use super::world::World;
use std::collections::BTreeSet;
use underlay_core::Nanos;
use underlay_datastore::data_plane::BlockStore;
use underlay_model::Request;
use underlay_model::cluster::{
    ComponentId, ComponentRole, DeviceId, Fault, Geometry, ReturnedContent, SetKind,
};

impl World {
    /// Returns everything, waits until nothing moves, and verifies.
    pub fn heal_and_verify(&mut self) {
        self.killed_after = None;
        self.crash_point.clear();
        // A last volatile loss is possible until the hosts are up.
        let hosts: Vec<_> = self.cluster.hosts().collect();
        for host in hosts {
            self.down.remove(&host);
            let now = self.now;
            self.cluster.inject(now, Fault::HostReturned { host }).expect("hosts can return");
        }
        let devices: Vec<DeviceId> = self.cluster.devices().map(|device| device.device).collect();
        let groups: BTreeSet<_> = devices.iter().map(|device| device.group).collect();
        let caches = groups.into_iter().map(|group| DeviceId { group, member: 0 });
        for device in devices.into_iter().chain(caches) {
            let now = self.now;
            let content = ReturnedContent::Kept;
            self.cluster
                .inject(now, Fault::DeviceReturned { device, content })
                .expect("devices can return");
        }
        self.come_to_rest();
        assert!(self.cluster.space_is_exact(), "space does not add up");
        self.all_there = !self.replaced && !self.any_scars();
        for subject in 0..self.subjects.len() {
            self.read_everything(subject);
        }
        self.come_to_rest();
        if !self.any_scars() {
            self.members_agree();
        }
        self.check_stores();
        for subject in &self.subjects {
            self.cluster.remove_volume(self.now, subject.id).expect("exists");
        }
        self.collect();
        assert!(
            self.cluster.devices().all(|device| device.used.0 == 0),
            "space was not given back"
        );
        assert_eq!(self.data.components().count(), 0, "components were left behind");
    }

    /// Waits until all requests are done and nothing is being copied.
    fn come_to_rest(&mut self) {
        let mut waited = Nanos::ZERO;
        let step = Nanos::from_millis(50);
        let mut calm = 0;
        // Rebalancing looks in intervals: rest is when several of them passed without anything to do.
        while calm < 10 {
            self.pass(step);
            waited += step;
            assert!(
                waited < Nanos::from_secs(300),
                "no rest after {waited}: {} requests, {:?}",
                self.in_flight(),
                self.cluster.resync_status()
            );
            let status = self.cluster.resync_status();
            let busy = self.in_flight() > 0 || status.active > 0 || self.cluster.is_busy();
            calm = if busy { 0 } else { calm + 1 };
        }
    }

    pub fn read_everything(&mut self, subject: usize) {
        let mut offset = 0;
        while offset < self.subjects[subject].bytes {
            let length = (self.subjects[subject].bytes - offset).min(64 << 10) as u32;
            self.submit(subject, Request::read(offset, length));
            offset += u64::from(length);
        }
        self.pass(Nanos::from_secs(1));
    }

    /// Replicas hold the same, and parity is the parity of its data.
    fn members_agree(&mut self) {
        for index in 0..self.subjects.len() {
            let id = self.subjects[index].id;
            let status = self.cluster.volume_status(id).expect("exists");
            let geometry = self.cluster.geometry(id).expect("exists");
            let stale: BTreeSet<ComponentId> = status
                .components
                .iter()
                .filter(|component| component.stale.0 > 0)
                .map(|component| component.component)
                .collect();
            for set in 0..geometry.sets {
                let mut members: Vec<ComponentId> =
                    vec![ComponentId(u32::MAX); usize::from(geometry.kind.members())];
                for component in &status.components {
                    if component.set == set && component.role == ComponentRole::Current {
                        members[usize::from(component.slot)] = component.component;
                    }
                }
                if members.iter().any(|id| stale.contains(id)) {
                    assert!(!self.hit.is_empty(), "stale without a fault");
                    continue;
                }
                for row in 0..geometry.rows_per_set() {
                    self.row_agrees(&geometry, row, &members);
                }
            }
        }
    }

    fn row_agrees(&mut self, geometry: &Geometry, row: u64, members: &[ComponentId]) {
        let unit = geometry.unit_bytes as usize;
        let units: Vec<Vec<u8>> = members
            .iter()
            .map(|id| {
                let mut bytes = vec![0; unit];
                let store = self.data.store_mut(*id).expect("exists");
                store.read(row * unit as u64, &mut bytes).expect("memory");
                bytes
            })
            .collect();
        match geometry.kind {
            SetKind::Mirror { .. } => {
                assert!(units.windows(2).all(|pair| pair[0] == pair[1]), "replicas differ");
            }
            SetKind::Parity { .. } => {
                let mut sum = vec![0; unit];
                // P is the sum of the data; Q would tell the same again.
                let p = geometry.kind.parity_member(row, 0);
                let data = (0..geometry.kind.data_units())
                    .map(|index| geometry.kind.data_member(row, index));
                for member in data.chain([p]) {
                    for (sum, byte) in sum.iter_mut().zip(&units[usize::from(member)]) {
                        *sum ^= byte;
                    }
                }
                assert!(sum.iter().all(|byte| *byte == 0), "parity does not fit in row {row}");
            }
        }
    }

    /// No component occupies more than the cluster accounts for.
    fn check_stores(&mut self) {
        for subject in &self.subjects {
            let status = self.cluster.volume_status(subject.id).expect("exists");
            for component in status.components {
                let store = self.data.store(component.component).expect("exists");
                assert!(
                    store.inner.allocated_bytes() <= component.occupied.0
                        || !subject.scars.is_empty(),
                    "{component:?} holds {} bytes",
                    store.inner.allocated_bytes()
                );
            }
        }
    }
}
