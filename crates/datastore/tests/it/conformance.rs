//! One suite that everything that stores bytes must pass: a plain file, the raw export without and with
//! delays, NBD, clusters of one disk group, of mirrors and of RAID-5, and a file on a mounted volume.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::common::nbd_client::NbdClient;
use crate::common::raw_server::{RawCluster, RawServer, RawSpec, Ways, flash, instant};
use crate::common::storage::Storage;
use crate::common::{Site, cannot_emulate, emulated, profile, volume};
use rand::{Rng, RngExt};
use underlay_core::RootSeed;
use underlay_datastore::Durability;
use underlay_host::{FileSystem, skip};

const CAPACITY: u64 = 8 << 20;

/// What a file that passes for a device may do when it is asked for more than it has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Fixed,
    Extends,
}

/// Everything that must hold, whatever is behind the file.
fn conform(file: &dyn Storage, end: End) {
    starts_with_zeros(file);
    returns_what_was_written(file);
    discarded_ranges_are_zeros(file);
    behaves_like_memory(file, 1);
    behaves_like_memory(file, 2);
    parallel_writers_do_not_mix(file);
    file.flush().unwrap();
    if end == End::Fixed {
        refuses_what_is_beyond_the_end(file);
    }
}

fn starts_with_zeros(file: &dyn Storage) {
    let mut contents = vec![1; 1 << 20];
    file.read(CAPACITY - (1 << 20), &mut contents).unwrap();
    assert!(contents.iter().all(|byte| *byte == 0));
}

fn returns_what_was_written(file: &dyn Storage) {
    for (i, length) in [512, 4096, 4097, 65_536, 1 << 20, (1 << 20) + 4096].into_iter().enumerate()
    {
        for offset in [0, 512, 4096 - 512, 12_345, 1 << 20] {
            let data = pattern(length, (i * 7 + offset) as u64);
            file.write(offset as u64, &data).unwrap();
            let mut found = vec![0; length];
            file.read(offset as u64, &mut found).unwrap();
            assert!(found == data, "{length} bytes at {offset}");
        }
    }
    file.flush().unwrap();
}

fn discarded_ranges_are_zeros(file: &dyn Storage) {
    file.write(0, &[0xff; 65_536]).unwrap();
    file.discard(4096, 8192).unwrap();
    let mut found = vec![1; 65_536];
    file.read(0, &mut found).unwrap();
    let expected = |i: usize| if (4096..12_288).contains(&i) { 0 } else { 0xff };
    assert!(found.iter().enumerate().all(|(i, byte)| *byte == expected(i)));
}

fn behaves_like_memory(file: &dyn Storage, seed: u64) {
    let mut random = RootSeed(seed).stream("operations", 0);
    let mut memory = vec![0; CAPACITY as usize];
    file.read(0, &mut memory).unwrap();
    for step in 0..300 {
        let length = random.random_range(1..=if step % 10 == 0 { 200_000 } else { 10_000 });
        let offset = random.random_range(0..memory.len() - length);
        let range = offset..offset + length;
        match random.random_range(0..10) {
            0..5 => {
                let data = pattern(length, random.next_u64());
                file.write(offset as u64, &data).unwrap();
                memory[range].copy_from_slice(&data);
            }
            5..9 => {
                let mut found = vec![0; length];
                file.read(offset as u64, &mut found).unwrap();
                assert!(found == memory[range], "seed {seed}, step {step}");
            }
            _ => file.flush().unwrap(),
        }
    }
    let mut found = vec![0; memory.len()];
    file.read(0, &mut found).unwrap();
    assert!(found == memory, "seed {seed}");
}

fn parallel_writers_do_not_mix(file: &dyn Storage) {
    let share = CAPACITY / 8;
    thread::scope(|scope| {
        for writer in 0..8u64 {
            let file = file.another();
            scope.spawn(move || {
                for i in 0..20 {
                    let data = pattern(16_384, writer * 1000 + i);
                    file.write(writer * share + i * 16_384, &data).unwrap();
                }
            });
        }
    });
    for writer in 0..8u64 {
        for i in 0..20 {
            let mut found = vec![0; 16_384];
            file.read(writer * share + i * 16_384, &mut found).unwrap();
            assert!(found == pattern(16_384, writer * 1000 + i), "writer {writer}, block {i}");
        }
    }
}

fn refuses_what_is_beyond_the_end(file: &dyn Storage) {
    assert!(file.write(CAPACITY, &[1; 4096]).is_err());
    assert!(file.write(CAPACITY - 512, &[1; 4096]).is_err());
    assert!(file.read(CAPACITY, &mut [0; 4096]).is_err());
}

fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut data = vec![0; length];
    RootSeed(seed).stream("pattern", 0).fill_bytes(&mut data);
    data
}

fn plain_file(path: &Path) -> File {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len(CAPACITY).unwrap();
    file
}

fn check_raw(profile: serde_json::Value, durability: &'static str) {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = RawSpec { profile, durability, capacity_bytes: CAPACITY, seed: 1 };
    let mut server = RawServer::start(&site, &spec);
    conform(&server.open(), End::Fixed);
    let stat = &server.ask("stat".into())["stat"];
    assert_eq!(stat["errors"], 0, "{stat}");
    assert_eq!(stat["volumes"][0]["in-flight"], 0, "{stat}");
}

#[test]
fn a_plain_file_conforms() {
    let directory = tempfile::tempdir().unwrap();
    conform(&plain_file(&directory.path().join("file")), End::Extends);
}

#[test]
fn the_raw_export_without_delays_conforms() {
    check_raw(instant(), "profile");
}

#[test]
fn the_raw_export_with_delays_conforms() {
    check_raw(flash(true), "profile");
}

#[test]
fn the_raw_export_of_a_volatile_device_conforms() {
    check_raw(flash(false), "profile");
}

fn check_nbd(profile: serde_json::Value, structured: bool) {
    let site = Site::new();
    let spec = RawSpec { profile, durability: "profile", capacity_bytes: CAPACITY, seed: 1 };
    let mut server = RawServer::start_with(&site, &spec, Ways::NbdAndTcp);
    let client = NbdClient::connect(&server.nbd_socket, "data", structured).unwrap();
    conform(&client, End::Fixed);
    drop(client);
    let stat = &server.ask("stat".into())["stat"];
    assert_eq!(stat["errors"], 0, "{stat}");
    assert_eq!(stat["volumes"][0]["in-flight"], 0, "{stat}");
    assert_eq!(server.ask("end".into()), "done");
    assert!(server.process.wait_for(Duration::from_secs(5)).unwrap().is_some());
}

#[test]
fn nbd_without_delays_conforms() {
    check_nbd(instant(), false);
}

#[test]
fn nbd_with_delays_conforms() {
    check_nbd(flash(true), true);
}

#[test]
fn nbd_to_a_volatile_device_conforms() {
    check_nbd(flash(false), true);
}

/// Two of these devices that hold the same.
fn mirrored(profile: serde_json::Value) -> serde_json::Value {
    let mut profile = profile;
    profile["copies"] = 2.into();
    profile
}

#[test]
fn a_pair_of_mirrored_devices_conforms() {
    check_raw(mirrored(flash(true)), "profile");
    check_raw(mirrored(flash(false)), "profile");
    check_raw(mirrored(instant()), "profile");
    check_nbd(mirrored(flash(true)), true);
}

#[test]
fn a_pair_conforms_without_one_of_its_devices_and_makes_up_for_it() {
    let site = Site::new();
    let profile = mirrored(flash(true));
    let spec = RawSpec { profile, durability: "profile", capacity_bytes: CAPACITY, seed: 1 };
    let mut server = RawServer::start_with(&site, &spec, Ways::NbdAndTcp);
    let condition = |condition: &str| {
        serde_json::json!({
            "set-condition": { "device": "device/disk1", "condition": condition }
        })
    };
    assert_eq!(server.ask(condition("lost")), "done");
    let client = NbdClient::connect(&server.nbd_socket, "data", true).unwrap();
    conform(&client, End::Fixed);
    let missed = |server: &mut RawServer| {
        let stat = &server.ask("stat".into())["stat"];
        assert_eq!(stat["errors"], 0, "{stat}");
        stat["devices"][0]["copies"][1]["missed-bytes"].as_u64().expect("a copy")
    };
    assert!(missed(&mut server) > CAPACITY / 2);
    assert_eq!(server.ask(condition("healthy")), "done");
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while missed(&mut server) > 0 {
        assert!(std::time::Instant::now() < deadline, "the copy is never complete");
        thread::sleep(Duration::from_millis(20));
    }
    drop(client);
    assert_eq!(server.ask("end".into()), "done");
}

fn check_cluster(cluster: &RawCluster, ways: Ways) {
    if ways == Ways::FileAndNbd
        && let Some(reason) = cannot_emulate()
    {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec =
        RawSpec { profile: instant(), durability: "profile", capacity_bytes: CAPACITY, seed: 1 };
    let mut server = RawServer::start_cluster(&site, &spec, cluster, ways);
    match ways {
        Ways::FileAndNbd => conform(&server.open(), End::Fixed),
        Ways::NbdAndTcp => {
            let client = NbdClient::connect(&server.nbd_socket, "data", true).unwrap();
            conform(&client, End::Fixed);
        }
    }
    let stat = &server.ask("stat".into())["stat"];
    assert_eq!(stat["errors"], 0, "{stat}");
    assert_eq!(stat["volumes"][0]["in-flight"], 0, "{stat}");
}

#[test]
fn one_disk_group_conforms() {
    let one = RawCluster { hosts: 1, failures_to_tolerate: 0, erasure_coding: false };
    check_cluster(&one, Ways::FileAndNbd);
    check_cluster(&one, Ways::NbdAndTcp);
}

#[test]
fn a_mirror_conforms() {
    let mirror = RawCluster { hosts: 3, failures_to_tolerate: 1, erasure_coding: false };
    check_cluster(&mirror, Ways::FileAndNbd);
    check_cluster(&mirror, Ways::NbdAndTcp);
}

#[test]
fn raid_5_conforms() {
    let raid_5 = RawCluster { hosts: 4, failures_to_tolerate: 1, erasure_coding: true };
    check_cluster(&raid_5, Ways::FileAndNbd);
    check_cluster(&raid_5, Ways::NbdAndTcp);
}

fn check_mounted(profile_name: &str, file_system: FileSystem, mebibytes: u64) {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = emulated(profile(profile_name), Durability::Profile);
    let datastore = site.open(&spec, &[volume("data", mebibytes, file_system)]).unwrap();
    let file = plain_file(&datastore.volumes()[0].path.join("file"));
    conform(&file, End::Extends);
    drop(file);
    datastore.close().unwrap();
}

#[test]
fn a_file_on_an_ext4_volume_without_delays_conforms() {
    check_mounted("null", FileSystem::Ext4, 64);
}

#[test]
fn a_file_on_an_xfs_volume_with_delays_conforms() {
    check_mounted("dc500m-1920", FileSystem::Xfs, 320);
}
