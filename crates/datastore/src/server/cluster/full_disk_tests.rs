//! The host's disk is full, and the server is killed: nobody reads what was there before, or zeros, as if it had been written.

use std::path::Path;

use underlay_core::{Nanos, RootSeed};
use underlay_model::Request;
use underlay_model::cluster::{Fault, HostId, Policy};

use super::in_flight::InFlight;
use super::kill_tests::{BLOCK, spec};
use super::plane::ClusterPlane;
use super::test_directory::SmallDisk;

const LENGTH: usize = 64 * BLOCK as usize;

/// One server. What the cluster must not forget lies elsewhere: a few free bytes are enough for it, and come and go.
fn open(components: &Path, memory: &Path) -> ClusterPlane<()> {
    let memory = memory.join("cluster.json");
    let mut plane = ClusterPlane::open(spec(), RootSeed(1), components, Some(&memory)).unwrap();
    plane.add_volume(Nanos::ZERO, "data", LENGTH as u64, Policy::DEFAULT).unwrap();
    plane
}

/// What is read, or how a write ended; none = with an I/O error.
fn ask(plane: &mut ClusterPlane<()>, now: Nanos, write: Option<u8>) -> Option<Vec<u8>> {
    let bytes = LENGTH as u32;
    let in_flight = InFlight::new((), 0, now, 0..LENGTH);
    let (request, buffer) = match write {
        Some(value) => (Request::write(0, bytes), vec![value; LENGTH]),
        None => (Request::read(0, bytes), vec![0; LENGTH]),
    };
    let id = plane.submit(&request, buffer, in_flight, Nanos::ZERO);
    let done = plane.complete_now(id).expect("nothing keeps it");
    (!done.failed).then_some(done.buffer)
}

fn rest(plane: &mut ClusterPlane<()>, now: &mut Nanos) {
    for _ in 0..200 {
        *now += Nanos::from_millis(4);
        plane.advance(*now, &mut Vec::new());
    }
}

/// A component that was rebuilt took neither bytes nor the note that they are missing, and counts as active: another server must
/// not take its holes for zeros, and least of all bring the good copy in line with them.
#[test]
fn a_copy_that_a_full_disk_did_not_take_is_no_data_after_a_kill() {
    let Some(disk) = SmallDisk::mount("4m") else { return };
    let memory = tempfile::tempdir().unwrap();
    for slot in [0, 1] {
        let mut now = Nanos::ZERO;
        let components = disk.path().join(format!("components{slot}"));
        std::fs::create_dir(&components).unwrap();
        let memory = memory.path().join(format!("memory{slot}"));
        std::fs::create_dir(&memory).unwrap();
        let mut plane = open(&components, &memory);
        assert!(ask(&mut plane, now, Some(7)).is_some());
        rest(&mut plane, &mut now);
        let filler = disk.fill();
        let volume = plane.volume(0).unwrap();
        let host: HostId = plane.cluster.volume_status(volume).unwrap().components[slot].host;
        plane.inject(now, Fault::HostLost { host }).unwrap();
        rest(&mut plane, &mut now);
        assert!(plane.storage_errors() > 0 && plane.refusal_reported.is_some());
        assert_eq!(plane.cluster.resync_status().bytes_left.iter().sum::<u64>(), 0);
        drop(plane);
        std::fs::remove_file(filler).unwrap();
        let mut now = Nanos::ZERO;
        let mut plane = open(&components, &memory);
        assert_eq!(ask(&mut plane, now, None), Some(vec![7; LENGTH]), "at once");
        rest(&mut plane, &mut now);
        assert_eq!(ask(&mut plane, now, None), Some(vec![7; LENGTH]), "once it was copied");
        assert!(ask(&mut plane, now, Some(8)).is_some());
        drop(plane);
        let mut plane = open(&components, &memory);
        assert_eq!(ask(&mut plane, Nanos::ZERO, None), Some(vec![8; LENGTH]), "written again");
        drop(plane);
        std::fs::remove_dir_all(components).unwrap();
    }
}
