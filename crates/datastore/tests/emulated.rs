//! Whole emulated datastores: FUSE, loop, file system, power cuts, death of the server.

mod common;

use common::{Site, cannot_emulate, emulated, profile, volume};
use std::fs;
use underlay_datastore::{DatastoreError, Durability};
use underlay_host::{FileSystem, skip};

#[test]
fn a_delayed_volume_works_reports_and_vanishes() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = emulated(profile("5200eco-1920"), Durability::Profile);
    let volumes = [volume("data", 64, FileSystem::Ext4), volume("wal", 320, FileSystem::Xfs)];
    let mut datastore = site.open(&spec, &volumes).unwrap();
    for volume in datastore.volumes() {
        fs::write(volume.path.join("file"), vec![7; 1 << 20]).unwrap();
        fs::File::open(volume.path.join("file")).unwrap().sync_all().unwrap();
        assert!(volume.block_device.as_ref().unwrap().starts_with("loop"));
    }
    datastore.health().unwrap();
    let report = datastore.timing().unwrap().unwrap();
    eprintln!("{report:?}");
    let counters = datastore.counters().unwrap();
    for (series, value) in datastore.series().iter().zip(&counters) {
        eprintln!("{} {value}", series.name);
    }
    datastore.close().unwrap();
    assert!(site.teardown.registered().len() <= 1, "{:?}", site.teardown.registered());
}

#[test]
fn the_death_of_the_server_is_named_and_can_be_cleaned_up() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = emulated(profile("null"), Durability::Profile);
    let mut datastore = site.open(&spec, &[volume("data", 64, FileSystem::Ext4)]).unwrap();
    let (_, pid) = datastore.processes()[0].clone();
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let error = loop {
        match datastore.health() {
            Ok(()) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&error, DatastoreError::ServerDied { exit, .. } if exit.contains("signal 9")),
        "{error}"
    );
    drop(datastore);
    assert_eq!(site.teardown.unwind().len(), 0);
}
