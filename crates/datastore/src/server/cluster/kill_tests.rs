//! The server is killed before and after every single change of what outlives it, between commands and in the midst of them, in a life with failures, rebuilds and changes of policy: what was acknowledged is
//! there when another one opens what it left, and survives the loss of any host.
//!
//! What a kill leaves is what the files hold: the host's page cache survives the process.

use std::path::Path;

use tempfile::TempDir;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{
    ClusterSettings, ClusterSpec, DeviceId, Fault, GroupId, HostId, HostSpec, Method, NetworkSpec,
    Policy, ReturnedContent,
};
use underlay_model::{DiskGroupSpec, Request, builtin};

use super::crashing_stores::{CrashingStores, Fuse, killed};
use super::fault_refusal::FaultRefusal;
use super::in_flight::InFlight;
use super::plane::ClusterPlane;
use super::test_directory::in_memory;

pub(super) const BLOCK: u64 = 4096;
const HOSTS: u32 = 5;
const VOLUME_BLOCKS: usize = 64;
/// Longer than it takes to notice a failure and to begin what it asks for.
const CALM: Nanos = Nanos::from_millis(80);

const MIRROR: Policy = Policy::DEFAULT;
const SINGLE: Policy = Policy { failures_to_tolerate: 0, ..Policy::DEFAULT };
const PARITY: Policy = Policy { method: Method::ErasureCoding, ..Policy::DEFAULT };

pub(super) fn spec() -> ClusterSpec {
    let mut device = builtin::find("null").unwrap();
    device.capacity = Bytes::from_mib(8);
    let host = |index: u32| HostSpec {
        name: format!("h{index}"),
        fault_domain: None,
        groups: vec![DiskGroupSpec::new("g", device.clone(), vec![device.clone()])],
    };
    ClusterSpec {
        hosts: (0..HOSTS).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(5),
            bytes_per_second: 3_000_000_000,
            divisor: 1,
        },
        settings: ClusterSettings {
            stripe_unit: Bytes::from_kib(64),
            resync_slice: Bytes::from_kib(64),
            failure_detection: Nanos::from_millis(5),
            repair_delay: Nanos::from_millis(20),
            rebalance_interval: Nanos::from_millis(20),
            rebalance_variance_percent: None,
            ..ClusterSettings::default()
        },
    }
}

/// What a block may hold: what was acknowledged last, and what was on its way.
#[derive(Clone, Copy)]
struct Allowed {
    acknowledged: u8,
    on_its_way: u8,
}

/// Where the files are: how checksums are reached depends on it.
#[derive(Clone, Copy, Debug)]
enum Place {
    Disk,
    /// As far as there is such a place; else on a disk as well.
    Memory,
}

impl Place {
    fn directory(self) -> TempDir {
        let memory = matches!(self, Place::Memory).then(in_memory).flatten();
        memory.unwrap_or_else(|| tempfile::tempdir().unwrap())
    }
}

/// One server after the other over the same files.
struct Lives {
    directory: TempDir,
    plane: ClusterPlane<(), CrashingStores>,
    fuse: Fuse,
    now: Nanos,
    blocks: Vec<Allowed>,
}

fn open(directory: &Path, fuse: &Fuse) -> ClusterPlane<(), CrashingStores> {
    let memory = directory.join("cluster.json");
    let stores = CrashingStores::new(directory, fuse);
    ClusterPlane::open_on(stores, spec(), RootSeed(1), directory, Some(&memory)).unwrap()
}

impl Lives {
    fn new(place: Place) -> Lives {
        let (directory, fuse) = (place.directory(), Fuse::default());
        let plane = open(directory.path(), &fuse);
        let nothing = Allowed { acknowledged: 0, on_its_way: 0 };
        let blocks = vec![nothing; VOLUME_BLOCKS];
        Lives { directory, plane, fuse, now: Nanos::ZERO, blocks }
    }

    fn with_volume(place: Place, policy: Policy) -> Lives {
        let mut lives = Lives::new(place);
        lives.add_volume(policy);
        lives
    }

    fn add_volume(&mut self, policy: Policy) {
        let bytes = VOLUME_BLOCKS as u64 * BLOCK;
        self.plane.add_volume(Nanos::ZERO, "data", bytes, policy).unwrap();
    }

    fn carry(&mut self, request: &Request, buffer: Vec<u8>) -> Option<(bool, Vec<u8>)> {
        let bytes = request.length_bytes;
        let in_flight = InFlight::new((), 0, self.now, 0..bytes as usize);
        let id = self.plane.submit(request, buffer, in_flight, Nanos::ZERO);
        let done = self.plane.complete_now(id)?;
        Some((!done.failed, done.buffer))
    }

    fn write(&mut self, first: usize, count: usize, value: u8) {
        let range = first..first + count;
        self.blocks[range.clone()].iter_mut().for_each(|block| block.on_its_way = value);
        let bytes = vec![value; count * BLOCK as usize];
        let request = Request::write(first as u64 * BLOCK, bytes.len() as u32);
        let (ok, _) = self.carry(&request, bytes).expect("it ends");
        assert!(ok, "a write within the promise failed");
        self.blocks[range].iter_mut().for_each(|block| block.acknowledged = value);
    }

    fn inject(&mut self, fault: Fault) {
        self.plane.inject(self.now, fault).unwrap();
    }

    fn change(&mut self, policy: Policy) {
        let volume = self.plane.volume(0).unwrap();
        self.plane.set_policy(self.now, volume, policy).unwrap();
    }

    /// Lets time pass until nothing has moved for a while.
    fn rest(&mut self) {
        let (step, mut calm, mut waited) = (Nanos::from_millis(4), Nanos::ZERO, Nanos::ZERO);
        while calm < CALM {
            self.now += step;
            waited += step;
            self.plane.advance(self.now, &mut Vec::new());
            let busy =
                self.plane.cluster.resync_status().active > 0 || self.plane.cluster.is_busy();
            calm = if busy { Nanos::ZERO } else { calm + step };
            assert!(waited < Nanos::from_secs(30), "no rest");
        }
    }

    /// Everything that changes what must not be forgotten, one after the other.
    fn live(&mut self) {
        self.add_volume(MIRROR);
        self.write(0, 40, 1);
        self.inject(Fault::HostLost { host: HostId(0) });
        self.write(8, 16, 2);
        // Long enough to be rebuilt elsewhere.
        self.rest();
        self.inject(Fault::HostReturned { host: HostId(0) });
        self.write(30, 20, 3);
        self.rest();
        self.change(PARITY);
        self.write(0, 8, 4);
        self.rest();
        self.inject(Fault::HostLost { host: HostId(1) });
        self.write(20, 24, 5);
        self.inject(Fault::HostReturned { host: HostId(1) });
        self.rest();
        for group in 0..HOSTS {
            let device = DeviceId { group: GroupId(group), member: 1 };
            self.inject(Fault::DeviceReturned { device, content: ReturnedContent::Blank });
            self.rest();
        }
        self.write(50, 10, 6);
        self.change(MIRROR);
        self.rest();
    }

    /// A host returns with new devices.
    fn replace_devices_of(&mut self, host: HostId) {
        for member in 0..2 {
            let device = DeviceId { group: GroupId(host.0), member };
            self.inject(Fault::DeviceReturned { device, content: ReturnedContent::Blank });
        }
        self.inject(Fault::HostReturned { host });
        self.rest();
    }

    /// Another server opens what the last one left.
    fn open_again(self) -> Lives {
        let Lives { directory, plane, blocks, .. } = self;
        drop(plane);
        // Nobody kills it.
        let fuse = Fuse::default();
        let plane = open(directory.path(), &fuse);
        let mut lives = Lives { directory, plane, fuse, now: Nanos::ZERO, blocks };
        lives.add_volume(MIRROR);
        lives
    }

    fn check(&mut self, when: &str) {
        let length = VOLUME_BLOCKS * BLOCK as usize;
        let request = Request::read(0, length as u32);
        let (ok, bytes) = self.carry(&request, vec![0; length]).expect("it ends");
        assert!(ok, "{when}: a read fails");
        for (number, allowed) in self.blocks.iter_mut().enumerate() {
            let block = &bytes[number * BLOCK as usize..][..BLOCK as usize];
            let value = block[0];
            assert!(block.iter().all(|byte| *byte == value), "{when}: block {number} is torn");
            assert!(
                value == allowed.acknowledged || value == allowed.on_its_way,
                "{when}: block {number} holds {value}, not {} or {}",
                allowed.acknowledged,
                allowed.on_its_way
            );
            // Once seen it stays.
            *allowed = Allowed { acknowledged: value, on_its_way: value };
        }
    }

    /// No file is left of what nobody knows.
    fn count_files(&self) {
        let components: Vec<_> = self
            .plane
            .cluster
            .volume_status(self.plane.volume(0).unwrap())
            .unwrap()
            .components
            .iter()
            .map(|found| self.plane.component_path(found.device, found.component))
            .collect();
        for folder in std::fs::read_dir(self.directory.path()).unwrap().flatten() {
            for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let path = file.path();
                assert!(components.contains(&path.with_extension("")), "{}", path.display());
            }
        }
    }
}

/// Returns whether the server was killed: otherwise it passed no more points.
fn killed_after(points: u32, place: Place) -> bool {
    let mut lives = Lives::new(place);
    lives.fuse.light(points);
    let killed = killed(|| lives.live());
    let mut lives = lives.open_again();
    for host in 0..HOSTS {
        lives.inject(Fault::HostReturned { host: HostId(host) });
    }
    lives.check("at once");
    lives.rest();
    lives.count_files();
    for host in (0..HOSTS).map(HostId) {
        lives.inject(Fault::HostLost { host });
        lives.check("without a host");
        lives.inject(Fault::HostReturned { host });
        lives.rest();
    }
    killed
}

/// While nothing can be stored, what destroys bytes does not happen; so a kill then loses nothing either.
#[test]
fn what_destroys_bytes_is_refused_while_nothing_can_be_stored() {
    let mut lives = Lives::with_volume(Place::Disk, MIRROR);
    lives.write(0, VOLUME_BLOCKS, 1);
    lives.rest();
    // Where the next state would be written before it takes its name.
    let in_the_way = lives.directory.path().join("cluster.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let device = lives.plane.cluster.devices().next().unwrap().device;
    let replaced = Fault::DeviceReturned { device, content: ReturnedContent::Blank };
    for fault in [replaced.clone(), Fault::PowerCut, Fault::HostLost { host: HostId(2) }] {
        let outcome = lives.plane.inject(lives.now, fault);
        assert_eq!(outcome, Err(FaultRefusal::NotStored));
    }
    // What destroys nothing happens.
    lives.inject(Fault::HostFrozen { host: HostId(0) });
    lives.inject(Fault::HostReturned { host: HostId(0) });
    let mut lives = lives.open_again();
    lives.check("after a kill");
    std::fs::remove_dir(&in_the_way).unwrap();
    // What a kill leaves in doubt is settled first: the device may have the only sure copy.
    lives.rest();
    lives.inject(replaced);
    lives.rest();
    lives.check("after the device was replaced");
}

#[test]
fn a_kill_at_any_change_loses_nothing() {
    kill_at_each_change(Place::Disk);
}

#[test]
fn a_kill_at_any_change_loses_nothing_in_memory() {
    kill_at_each_change(Place::Memory);
}

fn kill_at_each_change(place: Place) {
    let mut points = 0;
    while std::panic::catch_unwind(|| killed_after(points, place))
        .unwrap_or_else(|_| panic!("killed after {points} points, something is lost"))
    {
        points += 1;
    }
    assert!(points > 300, "only {points} points");
}

/// Nobody else holds what is half stored.
#[test]
fn a_single_copy_survives_a_kill_in_the_midst_of_a_write() {
    kill_in_the_midst_of_a_write(Place::Disk);
    kill_in_the_midst_of_a_write(Place::Memory);
}

fn kill_in_the_midst_of_a_write(place: Place) {
    let mut points = 0;
    let mut is_killed = true;
    while is_killed {
        points += 1;
        let mut lives = Lives::with_volume(place, SINGLE);
        lives.fuse.light(points);
        is_killed = killed(|| {
            lives.write(0, 8, 1);
            lives.write(4, 8, 2);
        });
        let mut lives = lives.open_again();
        lives.check(&format!("after {points} points"));
    }
    assert!(points > 8, "only {points} points");
}

/// A host is frozen or cut off, which may not have been noticed, and the server is killed: what the host has can be decoded from the
/// others, also once its devices were replaced.
#[test]
fn a_kill_while_a_host_is_away_loses_nothing_of_raid_5() {
    for host in (0..HOSTS).map(HostId) {
        for fault in [Fault::HostFrozen { host }, Fault::HostsPartitioned { hosts: vec![host] }] {
            for rewritten in [0, 1, 9] {
                let mut lives = Lives::with_volume(Place::Disk, PARITY);
                lives.write(0, VOLUME_BLOCKS, 1);
                lives.rest();
                lives.inject(fault.clone());
                if rewritten > 0 {
                    lives.write(17, rewritten, 2);
                }
                let mut lives = lives.open_again();
                let when = format!("{fault:?}, {rewritten} rewritten");
                lives.check(&when);
                lives.rest();
                lives.check(&format!("{when}, later"));
                lives.replace_devices_of(host);
                lives.check(&format!("{when}, with new devices"));
            }
        }
    }
}
