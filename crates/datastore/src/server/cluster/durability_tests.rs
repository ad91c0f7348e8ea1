//! What a power cut of all hosts takes from a cluster under each durability, on real files.

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{ClusterSettings, ClusterSpec, HostSpec, NetworkSpec, Policy};
use underlay_model::{DiskGroupSpec, Request, builtin};

use super::plane::ClusterPlane;
use super::request::{InFlight, Payload};
use crate::server::cluster_under;
use underlay_core::Durability;

const BLOCK: usize = 4096;
/// Blocks that are flushed, and as many that are not.
const BLOCKS: u64 = 32;

/// Three hosts whose cache devices have capacitors, or have none.
fn spec(protected: bool) -> ClusterSpec {
    let device = |name: &str, mib: u64| {
        let mut profile = builtin::find(name).unwrap();
        profile.capacity = Bytes::from_mib(mib);
        profile
    };
    let host = |index: usize| {
        let mut cache = device("dc1500m-960", 512);
        cache.power_loss_protected = protected;
        let mut group = DiskGroupSpec::new("g", cache, vec![device("dc500m-1920", 2048)]);
        group.write_buffer.usable = Bytes::from_mib(64);
        HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
    };
    ClusterSpec {
        hosts: (0..3).map(host).collect(),
        network: NetworkSpec { latency: Nanos::from_micros(20), bytes_per_second: 1_250_000_000 },
        settings: ClusterSettings::default(),
    }
}

fn request(plane: &mut ClusterPlane<()>, request: &Request, payload: Payload) -> Vec<u8> {
    let arrived = Nanos::ZERO;
    let in_flight = InFlight { reply: (), volume: 0, bytes: request.length_bytes, arrived };
    let id = plane.submit(in_flight, request, payload, Nanos::ZERO);
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
        request(plane, &write, Payload::Write(bytes, 0..BLOCK));
    }
}

/// Blocks that do not hold what was acknowledged, among the flushed ones and among the others; and whether an event says so.
fn lost(protected: bool, durability: Durability) -> (usize, usize, bool) {
    let directory = tempfile::tempdir().unwrap();
    let spec = cluster_under(durability, spec(protected));
    let mut plane = ClusterPlane::open(spec, RootSeed(7), directory.path(), None).unwrap();
    plane.add_volume(Nanos::ZERO, "data", 256 << 20, Policy::DEFAULT).unwrap();
    write(&mut plane, 0..BLOCKS);
    request(&mut plane, &Request::flush(), Payload::Nothing);
    write(&mut plane, BLOCKS..2 * BLOCKS);
    plane.power_off(Nanos::ZERO);
    plane.power_on(Nanos::ZERO);
    let told = plane.journal.take(Nanos::ZERO);
    let told = told.iter().any(|notice| {
        notice.text.starts_with("a power cut took writes to volume data that were not flushed: ")
    });
    let mut wrong = |blocks: std::ops::Range<u64>| {
        let differs = |block: &u64| {
            let read = Request::read(offset(*block), BLOCK as u32);
            let bytes = request(&mut plane, &read, Payload::Read(vec![0; BLOCK]));
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
