//! FUSE over io_uring beyond what the conformance suite asks: which way is taken, death, unmounting, abortion, requests of all
//! sizes from all CPUs, and more requests than there are places.
//!
//! Each test runs with the host's setting switched by its own teardown stack, and is skipped where that cannot be.

use std::fs::{File, metadata, write};
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Site;
use crate::common::raw_server::{RawServer, RawSpec, flash, glacial, instant};
use crate::common::ring::Ring;
use rand::{Rng, RngExt};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use underlay_core::RootSeed;
use underlay_host::skip;

const CAPACITY: u64 = 64 << 20;
/// Generous: the tests fail when something hangs, not when the host is busy.
const LIMIT: Duration = Duration::from_secs(60);

fn start(site: &Site, profile: Value) -> RawServer {
    let spec = RawSpec { profile, durability: "profile", capacity_bytes: CAPACITY, seed: 1 };
    RawServer::start(site, &spec)
}

fn export(server: &mut RawServer) -> String {
    server.ask("stat".into())["stat"]["export"].as_str().unwrap().to_string()
}

/// Reads one block in each of so many threads, waits until they are with the server, and returns them.
fn readers(server: &mut RawServer, count: u64) -> Vec<thread::JoinHandle<std::io::Result<()>>> {
    let readers = (0..count).map(|reader| {
        let file = server.open();
        thread::spawn(move || file.read_exact_at(&mut [1; 4096], reader * 4096))
    });
    let readers: Vec<_> = readers.collect();
    wait_for("requests in flight", || {
        server.ask("stat".into())["stat"]["volumes"][0]["in-flight"].as_u64() == Some(count)
    });
    readers
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "no {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn wait_for_errors(readers: Vec<thread::JoinHandle<std::io::Result<()>>>) {
    wait_for("end of the readers", || readers.iter().all(thread::JoinHandle::is_finished));
    for reader in readers {
        assert!(reader.join().unwrap().is_err());
    }
}

#[test]
fn the_way_is_the_hosts_choice_and_is_said() {
    for (on, expected) in [(true, "fuse-io-uring"), (false, "fuse")] {
        let _ring = match Ring::switch(on) {
            Ok(ring) => ring,
            Err(reason) => skip!("{reason}"),
        };
        let site = Site::new();
        let mut server = start(&site, instant());
        // The kernel asks the first time that somebody looks.
        assert_eq!(metadata(&server.file).unwrap().st_size(), CAPACITY);
        assert_eq!(export(&mut server), expected);
    }
}

#[test]
fn clients_of_a_killed_server_get_errors() {
    let _ring = match Ring::switch(true) {
        Ok(ring) => ring,
        Err(reason) => skip!("{reason}"),
    };
    let site = Site::new();
    let mut server = start(&site, glacial());
    let file = server.open();
    let readers = readers(&mut server, 40);
    kill_process(Pid::from_raw(server.process.pid() as i32).unwrap(), Signal::KILL).unwrap();
    wait_for_errors(readers);
    assert!(file.read_at(&mut [0; 4096], 0).is_err());
    assert!(File::open(&server.file).is_err());
}

#[test]
fn a_detached_mount_serves_its_last_clients_and_ends() {
    let _ring = match Ring::switch(true) {
        Ok(ring) => ring,
        Err(reason) => skip!("{reason}"),
    };
    let site = Site::new();
    let mut server = start(&site, glacial());
    let readers = readers(&mut server, 10);
    unmount(server.file.parent().unwrap(), UnmountFlags::DETACH).unwrap();
    wait_for("end of the readers", || readers.iter().all(thread::JoinHandle::is_finished));
    for reader in readers {
        reader.join().unwrap().unwrap();
    }
    assert!(server.process.wait_for(LIMIT).unwrap().is_some(), "nobody needs the server any more");
}

#[test]
fn an_aborted_connection_ends_clients_and_server() {
    let _ring = match Ring::switch(true) {
        Ok(ring) => ring,
        Err(reason) => skip!("{reason}"),
    };
    let mount = Path::new("/sys/fs/fuse/connections");
    if !mount.join("..").exists() || std::fs::read_dir(mount).is_ok_and(|dir| dir.count() == 0) {
        // Nothing else in this test is mounted yet, so it may only be empty because it is not mounted.
        let flags = rustix::mount::MountFlags::empty();
        if rustix::mount::mount("fusectl", mount, "fusectl", flags, None).is_err() {
            skip!("there is no /sys/fs/fuse/connections");
        }
    }
    let site = Site::new();
    let mut server = start(&site, glacial());
    let device = metadata(server.file.parent().unwrap()).unwrap().st_dev();
    let readers = readers(&mut server, 10);
    write(mount.join(rustix::fs::minor(device).to_string()).join("abort"), "1").unwrap();
    wait_for_errors(readers);
    assert!(server.process.wait_for(LIMIT).unwrap().is_some(), "the server has nothing to serve");
}

#[test]
fn requests_of_all_sizes_from_all_cpus_do_not_mix() {
    let _ring = match Ring::switch(true) {
        Ok(ring) => ring,
        Err(reason) => skip!("{reason}"),
    };
    let site = Site::new();
    let mut server = start(&site, flash(true));
    let cpus = cpus();
    const WRITERS: u64 = 32;
    let share = CAPACITY / WRITERS;
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let file = server.open();
            let cpu = cpus[writer as usize % cpus.len()];
            scope.spawn(move || {
                pin(cpu);
                let mut random = RootSeed(7).stream("writer", writer);
                for step in 0..12 {
                    // Up to beyond what one request may carry.
                    let most = if step % 4 == 0 { share } else { 70_000 };
                    let length = random.random_range(1..=most) as usize;
                    let offset = writer * share + random.random_range(0..=share - length as u64);
                    let mut data = vec![0; length];
                    random.fill_bytes(&mut data);
                    file.write_all_at(&data, offset).unwrap();
                    let mut found = vec![0; length];
                    file.read_exact_at(&mut found, offset).unwrap();
                    assert!(found == data, "writer {writer}, step {step}");
                }
            });
        }
    });
    let stat = server.ask("stat".into());
    assert_eq!(stat["stat"]["errors"], 0, "{stat}");
    assert_eq!(export(&mut server), "fuse-io-uring");
}

#[test]
fn requests_that_find_no_place_wait_for_one() {
    let _ring = match Ring::switch(true) {
        Ok(ring) => ring,
        Err(reason) => skip!("{reason}"),
    };
    let site = Site::new();
    let mut server = start(&site, glacial());
    let cpu = cpus()[0];
    // A queue has 256 places at most.
    let readers: Vec<_> = (0..300u64)
        .map(|reader| {
            let file = server.open();
            let read = move || {
                pin(cpu);
                file.read_exact_at(&mut [1; 4096], reader * 4096)
            };
            thread::Builder::new().stack_size(64 << 10).spawn(read).unwrap()
        })
        .collect();
    wait_for("end of the readers", || readers.iter().all(thread::JoinHandle::is_finished));
    for reader in readers {
        reader.join().unwrap().unwrap();
    }
    let stat = &server.ask("stat".into())["stat"]["volumes"][0];
    assert_eq!(stat["in-flight"], 0, "{stat}");
    assert_eq!(stat["operations"][0]["ios"], 300, "{stat}");
}

/// The CPUs that this process may use.
fn cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).unwrap();
}
