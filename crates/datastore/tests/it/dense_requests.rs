//! Many requests of several clients at once through FUSE, without modelled delays, and what may happen meanwhile: modes change,
//! volumes come and go, the power fails, the server ends.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::raw_server::{RawCluster, RawServer, RawSpec, Ways, flash, instant};
use crate::common::{Site, cannot_emulate};
use rand::RngExt;
use rand_pcg::Pcg64;
use rustix::mount::{UnmountFlags, unmount};
use serde_json::{Value, json};
use underlay_core::RootSeed;
use underlay_host::skip;

const BLOCK: usize = 4096;
const SECTOR: usize = 512;
const CLIENTS: u64 = 8;
/// Blocks of each client: few, so that most are read and written over again.
const SHARE: usize = 128;
const CAPACITY: u64 = CLIENTS * (SHARE * BLOCK) as u64;
/// Generous: the tests fail when something hangs, not when the host is busy.
const LIMIT: Duration = Duration::from_secs(60);
/// How long the clients work before something happens.
const BEFOREHAND: Duration = Duration::from_millis(300);

/// A client with blocks of its own, which knows what each sector of them may hold.
struct Client<'a> {
    file: File,
    number: u64,
    random: Pcg64,
    /// Odd while there may be no power; none where the power stays and what was answered is durable.
    power: Option<&'a AtomicU64>,
    /// What that was when it was last seen what the power cuts had left.
    settled: u64,
    /// By sector: values that it may hold, the newest last.
    allowed: Vec<Vec<u64>>,
    value: u64,
    reads: u64,
    writes: u64,
}

impl<'a> Client<'a> {
    fn new(server: &RawServer, number: u64, power: Option<&'a AtomicU64>) -> Client<'a> {
        Client {
            file: server.open(),
            number,
            random: RootSeed(3).stream("client", number),
            power,
            settled: 0,
            allowed: vec![vec![0]; SHARE * BLOCK / SECTOR],
            value: 0,
            reads: 0,
            writes: 0,
        }
    }

    /// Writes, reads or flushes something. An error is the server's; what must not be found is a panic.
    fn step(&mut self) -> io::Result<()> {
        if self.now() != self.settled && self.now().is_multiple_of(2) {
            self.settle()?;
        }
        let blocks = self.random.random_range(1..=4);
        let first = self.random.random_range(0..=SHARE - blocks);
        match self.random.random_range(0..64) {
            0 => {
                self.file.sync_data()?;
                // A power cut in between may have taken what the flush no longer found.
                if self.now() == self.settled {
                    self.allowed.iter_mut().for_each(keep_newest);
                }
                Ok(())
            }
            1..32 => self.write(first, blocks),
            _ => self.read(first, blocks).map(drop),
        }
    }

    fn now(&self) -> u64 {
        self.power.map_or(0, |power| power.load(Ordering::SeqCst))
    }

    /// Sees what power cuts left. It stays, unless there is another one meanwhile.
    fn settle(&mut self) -> io::Result<()> {
        let now = self.now();
        let mut found = Vec::new();
        for first in (0..SHARE).step_by(4) {
            found.extend(self.read(first, 4)?);
        }
        if self.now() == now {
            self.allowed = found.into_iter().map(|value| vec![value]).collect();
            self.settled = now;
        }
        Ok(())
    }

    fn write(&mut self, first: usize, blocks: usize) -> io::Result<()> {
        self.value += 1;
        let value = self.number << 48 | self.value;
        let sectors = sectors(first, blocks);
        self.allowed[sectors.clone()].iter_mut().for_each(|allowed| allowed.push(value));
        self.writes += 1;
        let data = value.to_le_bytes().repeat(blocks * BLOCK / 8);
        self.file.write_all_at(&data, self.offset(first))?;
        if self.power.is_none() {
            self.allowed[sectors].iter_mut().for_each(keep_newest);
        }
        Ok(())
    }

    /// Reads, and returns the value of each sector.
    fn read(&mut self, first: usize, blocks: usize) -> io::Result<Vec<u64>> {
        let mut found = vec![1; blocks * BLOCK];
        self.reads += 1;
        self.file.read_exact_at(&mut found, self.offset(first))?;
        let check = |(sector, allowed): (&[u8], &Vec<u64>)| {
            let value = u64::from_le_bytes(sector[..8].try_into().unwrap());
            let place = (self.number, first);
            assert!(sector.chunks_exact(8).all(|it| it == value.to_le_bytes()), "torn: {place:?}");
            assert!(allowed.contains(&value), "{place:?}: {value:x}, not one of {allowed:x?}");
            value
        };
        let allowed = &self.allowed[sectors(first, blocks)];
        Ok(found.chunks_exact(SECTOR).zip(allowed).map(check).collect())
    }

    fn verify(&mut self) {
        for first in (0..SHARE).step_by(4) {
            self.read(first, 4).unwrap();
        }
    }

    fn offset(&self, block: usize) -> u64 {
        (self.number * SHARE as u64 + block as u64) * BLOCK as u64
    }
}

fn sectors(first_block: usize, blocks: usize) -> Range<usize> {
    let per_block = BLOCK / SECTOR;
    first_block * per_block..(first_block + blocks) * per_block
}

fn keep_newest(allowed: &mut Vec<u64>) {
    allowed.drain(..allowed.len() - 1);
}

/// What a client does about an error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Errors {
    Unexpected,
    GoOn,
    End,
}

/// Has all clients work while `meanwhile` happens.
fn work(
    server: &mut RawServer,
    clients: &mut [Client<'_>],
    errors: Errors,
    meanwhile: impl FnOnce(&mut RawServer),
) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        let run = move |client: &mut Client<'_>| {
            while !is_over.load(Ordering::Relaxed) {
                match client.step() {
                    Ok(()) => {}
                    Err(error) if errors == Errors::Unexpected => panic!("{error}"),
                    Err(_) if errors == Errors::GoOn => {}
                    Err(_) => return,
                }
            }
        };
        let threads: Vec<_> =
            clients.iter_mut().map(|client| scope.spawn(move || run(client))).collect();
        // Whatever fails below, the clients end.
        let ends = Ends(is_over);
        thread::sleep(BEFOREHAND);
        meanwhile(server);
        drop(ends);
        let begin = Instant::now();
        while threads.iter().any(|it| !it.is_finished()) {
            assert!(begin.elapsed() < LIMIT, "a request is never answered");
            thread::sleep(Duration::from_millis(5));
        }
    });
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn clients<'a>(server: &RawServer, power: Option<&'a AtomicU64>) -> Vec<Client<'a>> {
    (0..CLIENTS).map(|number| Client::new(server, number, power)).collect()
}

fn spec(profile: Value) -> RawSpec {
    RawSpec { profile, durability: "profile", capacity_bytes: CAPACITY, seed: 1 }
}

fn off(server: &mut RawServer) {
    assert_eq!(server.ask(json!({ "set-timing": "off" })), "done");
}

/// Reads everything again, and compares what the server counted with what was asked.
fn conclude(server: &mut RawServer, mut clients: Vec<Client<'_>>) {
    clients.iter_mut().for_each(Client::verify);
    let stat = server.ask("stat".into());
    let volume = &stat["stat"]["volumes"][0];
    let asked = |count: fn(&Client<'_>) -> u64| clients.iter().map(count).sum::<u64>();
    assert_eq!(volume["operations"][0]["ios"], asked(|client| client.reads), "{stat}");
    assert_eq!(volume["operations"][1]["ios"], asked(|client| client.writes), "{stat}");
    assert_eq!(volume["in-flight"], 0, "{stat}");
    assert_eq!(stat["stat"]["errors"], 0, "{stat}");
}

/// Times are kept now and then, volumes come and go.
fn disturb(server: &mut RawServer, backing: &std::path::Path, policy: Option<Value>) {
    let add = json!({ "add-volume": {
        "name": "other", "capacity-bytes": 1 << 20, "device": 0, "backing-file": backing, "policy": policy,
    } });
    for round in 0..10 {
        let mode = if round % 2 == 0 { "modelled" } else { "off" };
        assert_eq!(server.ask(json!({ "set-timing": mode })), "done");
        thread::sleep(Duration::from_millis(20));
        assert!(server.ask(add.clone()).get("added").is_some());
        let other = server.file.with_file_name("other");
        let other = File::options().read(true).write(true).open(other).unwrap();
        other.write_all_at(&[7; 3 * BLOCK], 0).unwrap();
        let mut found = [0; 3 * BLOCK];
        other.read_exact_at(&mut found, 0).unwrap();
        assert!(found == [7; 3 * BLOCK]);
        assert_eq!(server.ask(json!({ "remove-volume": { "name": "other" } })), "done");
        assert!(server.ask("stat".into()).get("stat").is_some());
        thread::sleep(Duration::from_millis(20));
    }
    off(server);
}

#[test]
fn nothing_is_lost_or_mixed_on_a_device() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    for profile in [instant(), flash(true)] {
        let site = Site::new();
        let mut server = RawServer::start(&site, &spec(profile));
        off(&mut server);
        let mut clients = clients(&server, None);
        let backing = site.scratch.join("other");
        work(&mut server, &mut clients, Errors::Unexpected, |server| {
            disturb(server, &backing, None);
        });
        conclude(&mut server, clients);
    }
}

#[test]
fn nothing_is_lost_or_mixed_on_a_cluster() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let mirror = RawCluster { hosts: 3, failures_to_tolerate: 1, erasure_coding: false };
    let mut server = RawServer::start_cluster(&site, &spec(instant()), &mirror, Ways::FileAndNbd);
    off(&mut server);
    let mut clients = clients(&server, None);
    work(&mut server, &mut clients, Errors::Unexpected, |server| {
        let fault = |fault: Value| json!({ "inject": fault });
        let lost = fault(json!({ "host-lost": { "host": "h1" } }));
        assert_eq!(server.ask(lost), "done");
        thread::sleep(Duration::from_millis(100));
        let back = fault(json!({ "host-returned": { "host": "h1" } }));
        assert_eq!(server.ask(back), "done");
        disturb(server, std::path::Path::new(""), None);
    });
    conclude(&mut server, clients);
}

/// What was flushed before the power fails is there afterwards.
#[test]
fn a_power_cut_takes_nothing_that_was_flushed() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let mut server = RawServer::start(&site, &spec(flash(false)));
    off(&mut server);
    let power = AtomicU64::new(0);
    let mut clients = clients(&server, Some(&power));
    let mut lost = 0;
    work(&mut server, &mut clients, Errors::GoOn, |server| {
        for _ in 0..20 {
            power.fetch_add(1, Ordering::SeqCst);
            let outcome = server.ask("power-cut".into());
            lost += outcome["power-cut"]["lost"].as_u64().unwrap();
            thread::sleep(Duration::from_millis(5));
            assert_eq!(server.ask("power-on".into()), "done");
            power.fetch_add(1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(50));
        }
    });
    assert!(lost > 0, "twenty power cuts that lose nothing test nothing");
    clients.iter_mut().for_each(Client::verify);
}

/// A device that fails every request, and one that answers none for a while: each request is answered in the end.
#[test]
fn failing_devices_leave_nobody_waiting() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let mut server = RawServer::start(&site, &spec(instant()));
    // A write that failed may have happened.
    let power = AtomicU64::new(0);
    let mut clients = clients(&server, Some(&power));
    work(&mut server, &mut clients, Errors::GoOn, |server| {
        for _ in 0..10 {
            for condition in [json!("lost"), json!("healthy")] {
                let set = json!({ "device": "device", "condition": condition });
                assert_eq!(server.ask(json!({ "set-condition": set })), "done");
                thread::sleep(Duration::from_millis(20));
            }
        }
    });
    clients.iter_mut().for_each(Client::verify);
    assert_eq!(server.ask("stat".into())["stat"]["volumes"][0]["in-flight"], 0);
}

#[test]
fn the_server_ends_while_clients_work() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let ends: [fn(&mut RawServer); 3] = [
        |server| assert_eq!(server.ask("end".into()), "done"),
        |server| {
            unmount(server.file.parent().unwrap(), UnmountFlags::FORCE | UnmountFlags::DETACH)
                .unwrap()
        },
        |server| unmount(server.file.parent().unwrap(), UnmountFlags::DETACH).unwrap(),
    ];
    for end in ends {
        let site = Site::new();
        let mut server = RawServer::start(&site, &spec(instant()));
        let mut clients = clients(&server, None);
        work(&mut server, &mut clients, Errors::End, end);
        // The last of them let a detached mount go.
        drop(clients);
        let ended = server.process.wait_for(LIMIT).unwrap();
        assert!(ended.is_some(), "nobody needs the server any more");
    }
}
