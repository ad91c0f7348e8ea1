//! What a power cut of all hosts takes from a cluster under each durability, on real files: also while hosts are away.

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{
    ClusterSettings, ClusterSpec, Fault, HostId, HostSpec, Method, NetworkSpec, Policy,
    ReturnedContent,
};
use underlay_model::{DiskGroupSpec, Request, builtin};

use super::crashing_stores::{CrashingStores, Fuse, killed};
use super::in_flight::InFlight;
use super::plane::ClusterPlane;
use super::stores::Stores;
use crate::server::cluster_under;
use underlay_core::Durability;

const BLOCK: usize = 4096;
/// Blocks that are flushed, and as many that are not.
const BLOCKS: u64 = 32;

/// Three hosts whose cache devices have capacitors, or have none.
fn spec(protected: bool) -> ClusterSpec {
    spec_of(3, |_| protected)
}

fn spec_of(hosts: usize, is_protected: impl Fn(usize) -> bool) -> ClusterSpec {
    let device = |name: &str, mib: u64| {
        let mut profile = builtin::find(name).unwrap();
        profile.capacity = Bytes::from_mib(mib);
        profile
    };
    let host = |index: usize| {
        let mut cache = device("dc1500m-960", 512);
        cache.power_loss_protected = is_protected(index);
        let mut group = DiskGroupSpec::new("g", cache, vec![device("dc500m-1920", 2048)]);
        group.write_buffer.usable = Bytes::from_mib(64);
        HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
    };
    ClusterSpec {
        hosts: (0..hosts).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(20),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: ClusterSettings::default(),
    }
}

fn request<S: Stores>(
    plane: &mut ClusterPlane<(), S>,
    request: &Request,
    buffer: Vec<u8>,
) -> Vec<u8> {
    let arrived = Nanos::ZERO;
    let in_flight = InFlight::new((), 0, arrived, 0..request.length_bytes as usize);
    let id = plane.submit(request, buffer, in_flight, Nanos::ZERO);
    let done = plane.complete_now(id).expect("nothing keeps it");
    assert!(!done.failed, "{request:?}");
    done.buffer
}

/// A block of each row of stripes, so that rows are lost or kept one by one.
fn offset(block: u64) -> u64 {
    block << 20
}

fn write(plane: &mut ClusterPlane<()>, blocks: std::ops::Range<u64>) {
    for block in blocks {
        let bytes = vec![block as u8 + 1; BLOCK];
        let write = Request::write(offset(block), BLOCK as u32);
        request(plane, &write, bytes);
    }
}

/// Blocks that do not hold what was acknowledged, among the flushed ones and among the others; and whether an event says so.
fn lost(protected: bool, durability: Durability) -> (usize, usize, bool) {
    let directory = tempfile::tempdir().unwrap();
    let spec = cluster_under(durability, spec(protected));
    let mut plane = ClusterPlane::open(spec, RootSeed(7), directory.path(), None).unwrap();
    plane.add_volume(Nanos::ZERO, "data", 256 << 20, Policy::DEFAULT).unwrap();
    write(&mut plane, 0..BLOCKS);
    request(&mut plane, &Request::flush(), Vec::new());
    write(&mut plane, BLOCKS..2 * BLOCKS);
    plane.power_off(Nanos::ZERO);
    plane.power_on(Nanos::ZERO);
    let told = plane.journal.take(Nanos::ZERO);
    let told = told.iter().any(|notice| {
        notice
            .text
            .starts_with("a power cut destroyed writes to volume data that were not flushed: ")
    });
    let mut wrong = |blocks: std::ops::Range<u64>| {
        let differs = |block: &u64| {
            let read = Request::read(offset(*block), BLOCK as u32);
            let bytes = request(&mut plane, &read, vec![0; BLOCK]);
            bytes.iter().any(|byte| *byte != *block as u8 + 1)
        };
        blocks.filter(differs).count()
    };
    (wrong(0..BLOCKS), wrong(BLOCKS..2 * BLOCKS), told)
}

#[test]
fn a_power_cut_takes_what_the_durability_says() {
    assert_eq!(lost(true, Durability::Profile), (0, 0, false), "capacitors");
    assert_eq!(lost(false, Durability::Acknowledged), (0, 0, false), "as if there were capacitors");
    for (protected, durability) in [(false, Durability::Profile), (true, Durability::Flushed)] {
        let (flushed, unflushed, told) = lost(protected, durability);
        assert_eq!(flushed, 0, "{durability:?}");
        assert!(told, "{durability:?}: nobody says that something was lost");
        assert!(unflushed > 0, "{durability:?}: nothing was volatile");
    }
}

/// Rows of stripes of 64 KiB, so that a small volume has many of them.
fn parity_spec(policy: Policy, is_protected: impl Fn(usize) -> bool) -> ClusterSpec {
    let mut spec = spec_of(usize::from(policy.set_kind().members()), is_protected);
    spec.settings.stripe_unit = Bytes::from_kib(64);
    spec.settings.failure_detection = Nanos::from_millis(5);
    spec
}

/// What a power cut takes of the write buffers of hosts.
#[derive(Clone, Copy, Debug)]
enum Taken {
    FromAll,
    /// The others have capacitors: they must go back with those that lost something.
    FromEverySecond,
}

impl Taken {
    fn spec(self, policy: Policy) -> ClusterSpec {
        match self {
            Taken::FromAll => cluster_under(Durability::Flushed, parity_spec(policy, |_| true)),
            Taken::FromEverySecond => parity_spec(policy, |host| host % 2 == 0),
        }
    }
}

const RAID5: Policy = Policy { method: Method::ErasureCoding, ..Policy::DEFAULT };
const RAID6: Policy = Policy { failures_to_tolerate: 2, ..RAID5 };

/// A volume of flushed blocks on RAID-5 or RAID-6, rewritten in places while a host is away.
struct Degraded {
    plane: ClusterPlane<(), CrashingStores>,
    fuse: Fuse,
    blocks: u64,
    away: HostId,
    now: Nanos,
}

const FLUSHED: u8 = 1;
const REWRITTEN: u8 = 2;

impl Degraded {
    /// The first server, or another one that opens what it left.
    fn open(directory: &Path, taken: Taken, policy: Policy, blocks: u64, away: HostId) -> Degraded {
        let (spec, memory) = (taken.spec(policy), directory.join("cluster.json"));
        let fuse = Fuse::default();
        let stores = CrashingStores::new(directory, &fuse);
        let plane = ClusterPlane::open_on(stores, spec, RootSeed(7), directory, Some(&memory));
        let mut plane = plane.unwrap();
        plane.add_volume(Nanos::ZERO, "data", blocks * BLOCK as u64, policy).unwrap();
        Degraded { plane, fuse, blocks, away, now: Nanos::ZERO }
    }

    fn new(directory: &Path, taken: Taken, policy: Policy, blocks: u64, away: HostId) -> Degraded {
        let mut degraded = Degraded::open(directory, taken, policy, blocks, away);
        for first in (0..blocks).step_by(16) {
            degraded.store(first, 16.min(blocks - first), FLUSHED);
        }
        request(&mut degraded.plane, &Request::flush(), Vec::new());
        degraded.inject(Fault::HostLost { host: away });
        degraded.pass(Nanos::from_secs(1));
        degraded
    }

    fn store(&mut self, first: u64, count: u64, value: u8) {
        let bytes = vec![value; count as usize * BLOCK];
        let write = Request::write(first * BLOCK as u64, bytes.len() as u32);
        request(&mut self.plane, &write, bytes);
    }

    fn rewrite(&mut self, count: usize, seed: u64) {
        let mut random = Pcg64::seed_from_u64(seed);
        for _ in 0..count {
            let first = random.random_range(0..self.blocks);
            let most = (self.blocks - first).min(20);
            self.store(first, random.random_range(1..=most), REWRITTEN);
        }
    }

    fn inject(&mut self, fault: Fault) {
        self.plane.inject(self.now, fault).unwrap();
    }

    fn pass(&mut self, span: Nanos) {
        self.now += span;
        self.plane.advance(self.now, &mut Vec::new());
    }

    /// Power is back on the hosts that had it.
    fn return_others(&mut self) {
        let mut others: Vec<HostId> = self.plane.cluster.hosts().collect();
        others.retain(|host| *host != self.away);
        others.into_iter().for_each(|host| self.inject(Fault::HostReturned { host }));
    }

    /// The host that was away is back, and its devices are new.
    fn replace(&mut self) {
        let groups = self.plane.cluster.groups().filter(|(_, host, _)| *host == self.away);
        let groups: Vec<_> = groups.map(|(group, _, _)| group).collect();
        let devices = self.plane.cluster.devices().map(|found| found.device);
        let devices: Vec<_> = devices.filter(|it| groups.contains(&it.group)).collect();
        for device in devices {
            self.inject(Fault::DeviceReturned { device, content: ReturnedContent::Blank });
        }
        self.inject(Fault::HostReturned { host: self.away });
        self.pass(Nanos::from_secs(600));
    }

    /// Blocks that cannot be read, or hold what nobody wrote; what was not flushed may be old, new or torn.
    fn bad(&mut self) -> usize {
        let mut bad = 0;
        for block in 0..self.blocks {
            let read = Request::read(block * BLOCK as u64, BLOCK as u32);
            let in_flight = InFlight::new((), 0, self.now, 0..BLOCK);
            let buffer = vec![0; BLOCK];
            let id = self.plane.submit(&read, buffer, in_flight, Nanos::ZERO);
            let done = self.plane.complete_now(id).expect("nothing keeps it");
            let is_good = |sector: &[u8]| {
                let first = sector[0];
                (first == FLUSHED || first == REWRITTEN) && sector.iter().all(|it| *it == first)
            };
            bad += usize::from(done.failed || !done.buffer.chunks(512).all(is_good));
        }
        bad
    }
}

#[test]
fn a_power_cut_without_a_host_takes_nothing_that_was_flushed_from_raid_5_and_6() {
    for (taken, policy) in [
        (Taken::FromAll, RAID5),
        (Taken::FromAll, RAID6),
        (Taken::FromEverySecond, RAID5),
        (Taken::FromEverySecond, RAID6),
    ] {
        for host in 0..u32::from(policy.set_kind().members()) {
            nothing_flushed_is_taken(taken, policy, HostId(host));
        }
    }
}

fn nothing_flushed_is_taken(taken: Taken, policy: Policy, away: HostId) {
    let directory = tempfile::tempdir().unwrap();
    let mut degraded = Degraded::new(directory.path(), taken, policy, 1024, away);
    degraded.rewrite(60, u64::from(away.0));
    degraded.plane.power_off(degraded.now);
    degraded.pass(Nanos::from_secs(1));
    degraded.return_others();
    let when = format!("{taken:?}, {policy:?} without {away:?}");
    assert_eq!(degraded.bad(), 0, "{when}");
    degraded.pass(Nanos::from_secs(1));
    degraded.replace();
    assert_eq!(degraded.bad(), 0, "{when}, after its devices were replaced");
    for host in (0..u32::from(policy.set_kind().members())).map(HostId) {
        degraded.inject(Fault::HostLost { host });
        degraded.pass(Nanos::from_secs(1));
        assert_eq!(degraded.bad(), 0, "{when}, then without {host:?}");
        degraded.inject(Fault::HostReturned { host });
        degraded.pass(Nanos::from_secs(600));
    }
}

/// The server is killed while it takes back what a power cut takes.
#[test]
fn a_kill_in_the_midst_of_a_power_cut_takes_nothing_that_was_flushed() {
    const BLOCKS: u64 = 48;
    let (mut points, mut is_killed) = (0, true);
    while is_killed {
        points += 1;
        let directory = tempfile::tempdir().unwrap();
        let away = HostId(points % 4);
        let mut degraded = Degraded::new(directory.path(), Taken::FromAll, RAID5, BLOCKS, away);
        degraded.rewrite(6, 3);
        degraded.fuse.light(points);
        is_killed = killed(|| degraded.plane.power_off(degraded.now));
        drop(degraded);
        let mut degraded = Degraded::open(directory.path(), Taken::FromAll, RAID5, BLOCKS, away);
        degraded.return_others();
        assert_eq!(degraded.bad(), 0, "after {points} points");
        degraded.replace();
        assert_eq!(degraded.bad(), 0, "after {points} points, with new devices");
    }
    assert!(points > 8, "only {points} points");
}
