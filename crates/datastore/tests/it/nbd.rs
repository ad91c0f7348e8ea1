//! The NBD server as clients see it: every request, every refusal, other people's programs, bad clients, the model's delays.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Site;
use crate::common::nbd_client::{
    DISCONNECT, FUA, NO_HOLE, NbdClient, READ, TRIM, WRITE, WRITE_ZEROES, error_code, greet,
    option, option_reply,
};
use crate::common::raw_server::{RawServer, RawSpec, Ways, flash, glacial, instant};
use crate::common::storage::Storage;
use rand::{Rng, RngExt};
use serde_json::json;
use underlay_core::RootSeed;
use underlay_host::{find_program, skip};

const CAPACITY: u64 = 8 << 20;

fn start(site: &Site, profile: serde_json::Value) -> RawServer {
    let spec = RawSpec { profile, durability: "profile", capacity_bytes: CAPACITY, seed: 1 };
    RawServer::start_with(site, &spec, Ways::NbdAndTcp)
}

#[test]
fn every_request_and_every_refusal() {
    let site = Site::new();
    let server = start(&site, instant());
    for structured in [false, true] {
        let client = NbdClient::connect(&server.nbd_socket, "data", structured).unwrap();
        assert_eq!(client.size_bytes, CAPACITY);
        // Flush, FUA, trim, write zeroes, several connections; "don't fragment" with structured replies.
        assert_eq!(client.flags, 0b1_0110_1101 | if structured { 1 << 7 } else { 0 });
        client.request(WRITE, FUA, 0, 8192, &[7; 8192]).unwrap();
        assert_eq!(client.request(READ, 0, 4000, 200, &[]).unwrap(), [7; 200]);
        client.request(TRIM, 0, 0, 4096, &[]).unwrap();
        client.request(WRITE_ZEROES, NO_HOLE | FUA, 4096, 100, &[]).unwrap();
        client.request(WRITE_ZEROES, 0, 8000, 192, &[]).unwrap();
        let found = client.request(READ, 0, 0, 8192, &[]).unwrap();
        assert!(found[..4196].iter().chain(&found[8000..]).all(|byte| *byte == 0));
        assert!(found[4196..8000].iter().all(|byte| *byte == 7));
        client.flush().unwrap();
        let refusal = |kind, flags, offset, length, data: &[u8]| {
            let error = client.request(kind, flags, offset, length, data).unwrap_err();
            error_code(&error).unwrap()
        };
        assert_eq!(refusal(READ, 0, CAPACITY, 512, &[]), 22);
        assert_eq!(refusal(READ, 0, u64::MAX - 10, 512, &[]), 22);
        assert_eq!(refusal(READ, 0, 0, u32::MAX, &[]), 75);
        assert_eq!(refusal(WRITE, 0, CAPACITY - 4, 8, &[1; 8]), 28);
        assert_eq!(refusal(TRIM, 0, CAPACITY - 4, 8, &[]), 22);
        assert_eq!(refusal(7, 0, 0, 512, &[]), 22);
        assert_eq!(refusal(READ, 1 << 9, 0, 512, &[]), 22);
        // Still in step after all these.
        assert_eq!(client.request(READ, 0, 5000, 1, &[]).unwrap(), [7]);
        assert_eq!(client.request(DISCONNECT, 0, 0, 0, &[]).unwrap(), b"");
    }
}

#[test]
fn large_requests_and_many_connections_over_both_kinds_of_sockets() {
    let site = Site::new();
    let mut server = start(&site, instant());
    let address = server.ask("stat".into())["stat"]["nbd-address"].clone();
    let address: SocketAddr = address.as_str().unwrap().parse().unwrap();
    let whole: Vec<u8> = (0..CAPACITY).map(|i| (i * 7 / 4096) as u8).collect();
    let writer = NbdClient::connect_tcp(address, "").unwrap();
    writer.write(0, &whole).unwrap();
    thread::scope(|scope| {
        for i in 0..20 {
            let (whole, socket) = (&whole, &server.nbd_socket);
            scope.spawn(move || {
                let reader = match i % 2 {
                    0 => NbdClient::connect(socket, "data", i % 4 == 0).unwrap(),
                    _ => NbdClient::connect_tcp(address, "data").unwrap(),
                };
                let mut found = vec![0; whole.len()];
                reader.read(0, &mut found).unwrap();
                assert!(found == *whole);
            });
        }
    });
}

/// What is written on one connection is there, and flushed, for all others.
#[test]
fn a_flush_covers_the_writes_of_all_connections() {
    let site = Site::new();
    let mut server = start(&site, flash(false));
    let (one, other) = {
        let one = NbdClient::connect(&server.nbd_socket, "data", true).unwrap();
        let other = one.another();
        (one, other)
    };
    one.write(0, &[5; 65_536]).unwrap();
    other.flush().unwrap();
    one.request(WRITE, FUA, 1 << 20, 4096, &[6; 4096]).unwrap();
    assert!(server.ask("power-cut".into()).get("power-cut").is_some());
    let mut found = vec![0; 65_536];
    let error = other.read(0, &mut found).unwrap_err();
    assert_eq!(error_code(&error), Some(5), "no power");
    assert_eq!(server.ask("power-on".into()), "done");
    other.read(0, &mut found).unwrap();
    assert!(found == [5; 65_536]);
    assert_eq!(one.request(READ, 0, 1 << 20, 4096, &[]).unwrap(), [6; 4096]);
}

/// The server cannot answer a read before the device would have.
#[test]
fn the_models_delays_apply() {
    let site = Site::new();
    let mut server = start(&site, flash(true));
    let client = NbdClient::connect(&server.nbd_socket, "data", true).unwrap();
    for i in 0..100 {
        let begin = Instant::now();
        client.request(READ, 0, i * 7919 % 2000 * 4096, 4096, &[]).unwrap();
        assert!(begin.elapsed() >= Duration::from_micros(60));
    }
    let begin = Instant::now();
    let slow = json!({ "set-condition": { "device": "device", "condition": { "slow": { "factor": 200.0 } } } });
    assert_eq!(server.ask(slow), "done");
    client.request(READ, 0, 0, 4096, &[]).unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(12), "60 us, two hundred times slower");
    let lost = json!({ "set-condition": { "device": "device", "condition": "lost" } });
    assert_eq!(server.ask(lost), "done");
    let error = client.request(READ, 0, 0, 4096, &[]).unwrap_err();
    assert_eq!(error_code(&error), Some(5));
}

#[test]
fn volumes_come_and_go_while_clients_work() {
    let site = Site::new();
    let mut server = start(&site, glacial());
    let backing = site.scratch.join("second");
    let add = json!({ "add-volume": {
        "name": "second", "capacity-bytes": 1 << 20, "device": 0, "backing-file": backing,
    } });
    let old = NbdClient::connect(&server.nbd_socket, "data", true).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| old.request(READ, 0, 0, 4096, &[]));
        while server.ask("stat".into())["stat"]["volumes"][0]["in-flight"] != 1 {}
        assert_eq!(server.ask(add.clone()), json!({ "added": { "number": 1 } }));
        assert!(server.ask(add).get("refused").is_some(), "twice");
        assert!(reader.join().unwrap().is_ok(), "the request under way was finished");
    });
    let client = NbdClient::connect(&server.nbd_socket, "second", false).unwrap();
    client.write(0, &[3; 4096]).unwrap();
    let remove = json!({ "remove-volume": { "name": "second" } });
    assert_eq!(server.ask(remove.clone()), "done");
    assert!(client.flush().is_err(), "its clients are gone");
    assert!(NbdClient::connect(&server.nbd_socket, "second", false).is_err());
    assert!(server.ask(remove).get("refused").is_some());
    assert_eq!(std::fs::read(&backing).unwrap()[..4096], [3; 4096], "the data is not touched");
    old.flush().unwrap();
}

/// Clients that talk nonsense, stop in the middle, or do not take their replies harm nobody else.
#[test]
fn bad_clients_harm_only_themselves() {
    let site = Site::new();
    let mut server = start(&site, instant());
    let good = NbdClient::connect(&server.nbd_socket, "data", true).unwrap();
    let connect = || UnixStream::connect(&server.nbd_socket).unwrap();
    let mut random = RootSeed(3).stream("nonsense", 0);
    let mut silent = Vec::new();
    for round in 0..200 {
        let mut stream = connect();
        greet(&mut stream).unwrap();
        let mut noise = vec![0; random.random_range(1..3000)];
        random.fill_bytes(&mut noise);
        match round % 4 {
            0 => {}
            1 => option(&mut stream, 7, &noise).unwrap(),
            2 => {
                // A valid handshake first.
                option(&mut stream, 1, b"data").unwrap();
                stream.read_exact(&mut [0; 10]).unwrap();
                noise[..4.min(random.random_range(1..5))].fill(0);
                let _ = stream.write_all(&0x2560_9513u32.to_be_bytes());
            }
            _ => {
                silent.push(stream);
                continue;
            }
        }
        // The server may have closed already.
        let _ = stream.write_all(&noise);
    }
    // Reads that nobody collects: the server stops taking more instead of keeping everything.
    let mut greedy = connect();
    greet(&mut greedy).unwrap();
    option(&mut greedy, 1, b"data").unwrap();
    greedy.read_exact(&mut [0; 10]).unwrap();
    greedy.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut request = [&0x2560_9513u32.to_be_bytes()[..], &[0; 20]].concat();
    request.extend_from_slice(&(1u32 << 20).to_be_bytes());
    let taken = (0..20_000).take_while(|_| greedy.write_all(&request).is_ok()).count();
    assert!(taken < 20_000, "an endless stream of reads was taken");
    good.write(0, &[9; 4096]).unwrap();
    assert_eq!(good.request(READ, 0, 0, 4096, &[]).unwrap(), [9; 4096]);
    assert_eq!(server.ask("stat".into())["stat"]["errors"], 0);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.pid())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 100 << 10, "{kib} KiB resident");
}

/// A place that a client holds without a handshake is given to one that comes.
#[test]
fn silent_clients_do_not_lock_others_out() {
    let site = Site::new();
    let server = start(&site, instant());
    let serving = NbdClient::connect(&server.nbd_socket, "data", true).unwrap();
    let silent: Vec<UnixStream> =
        (0..200).filter_map(|_| UnixStream::connect(&server.nbd_socket).ok()).collect();
    assert!(silent.len() >= 127, "{} connections", silent.len());
    let begin = Instant::now();
    let client = loop {
        match NbdClient::connect(&server.nbd_socket, "data", true) {
            Ok(client) => break client,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error}"),
        }
        thread::sleep(Duration::from_millis(200));
    };
    client.write(0, &[5; 4096]).unwrap();
    // Who has chosen a volume keeps it, however silent.
    assert_eq!(serving.request(READ, 0, 0, 4096, &[]).unwrap(), [5; 4096]);
}

/// Clients that do not read their replies together hold a limited amount of memory, and nobody waits for them.
#[test]
fn replies_that_nobody_reads_take_limited_memory() {
    let site = Site::new();
    let server = start(&site, instant());
    let good = NbdClient::connect(&server.nbd_socket, "data", true).unwrap();
    good.write(0, &[9; 4096]).unwrap();
    let mut request = [&0x2560_9513u32.to_be_bytes()[..], &[0; 20]].concat();
    request.extend_from_slice(&(8u32 << 20).to_be_bytes());
    let begin = Instant::now();
    let mut greedy = Vec::new();
    for _ in 0..60 {
        let mut stream = UnixStream::connect(&server.nbd_socket).unwrap();
        greet(&mut stream).unwrap();
        option(&mut stream, 1, b"data").unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        for _ in 0..8 {
            stream.write_all(&request).unwrap();
        }
        greedy.push(stream);
        assert_eq!(good.request(READ, 0, 0, 4096, &[]).unwrap(), [9; 4096]);
    }
    // Some of them are disconnected in the end, so that the others get on.
    let is_disconnected = |stream: &mut UnixStream| {
        stream.set_nonblocking(true).unwrap();
        let asked = stream.write_all(&request);
        asked.is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock)
    };
    while !greedy.iter_mut().any(is_disconnected) {
        assert!(begin.elapsed() < Duration::from_secs(30), "none is disconnected");
        assert_eq!(good.request(READ, 0, 0, 4096, &[]).unwrap(), [9; 4096]);
        thread::sleep(Duration::from_millis(200));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.pid())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 900 << 10, "{kib} KiB resident");
}

#[test]
fn exports_are_listed() {
    let site = Site::new();
    let server = start(&site, instant());
    let mut stream = UnixStream::connect(&server.nbd_socket).unwrap();
    greet(&mut stream).unwrap();
    option(&mut stream, 3, &[]).unwrap();
    assert_eq!(option_reply(&mut stream).unwrap(), (2, b"\0\0\0\x04data".to_vec()));
    assert_eq!(option_reply(&mut stream).unwrap().0, 1);
}

fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn nbdinfo_and_nbdcopy_work_with_it() {
    let (Some(info), Some(copy)) = (find_program("nbdinfo"), find_program("nbdcopy")) else {
        skip!("nbdinfo and nbdcopy are missing (Debian package libnbd-bin)");
    };
    let site = Site::new();
    let server = start(&site, flash(true));
    let uri = format!("nbd+unix:///data?socket={}", server.nbd_socket.display());
    let told: serde_json::Value = serde_json::from_str(&run(&info, &["--json", &uri])).unwrap();
    let export = &told["exports"][0];
    assert_eq!(told["protocol"], "newstyle-fixed");
    assert_eq!(
        (&export["export-name"], &export["export-size"]),
        (&json!("data"), &json!(CAPACITY))
    );
    for flag in ["can_flush", "can_fua", "can_trim", "can_zero", "can_multi_conn", "can_df"] {
        assert_eq!(export[flag], true, "{flag} in {told}");
    }
    let listed: serde_json::Value =
        serde_json::from_str(&run(&info, &["--list", "--json", &uri])).unwrap();
    assert_eq!(listed["exports"].as_array().unwrap().len(), 1);
    // A block device of which nothing was written is one hole, and what was written is not.
    let hole = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let map = run(&info, &["--map", &uri]);
    assert_eq!(hole(&map), ["0", &CAPACITY.to_string(), "3", "hole,zero"]);
    let client = NbdClient::connect(&server.nbd_socket, "data", true).unwrap();
    client.write(1 << 20, &[7; 1 << 20]).unwrap();
    let map = run(&info, &["--map", &uri]);
    let lines: Vec<Vec<String>> = map.lines().map(hole).collect();
    let (before, after) = ("1048576", (CAPACITY - (2 << 20)).to_string());
    assert_eq!(lines[0], ["0", before, "3", "hole,zero"], "{map}");
    assert_eq!(lines[1], ["1048576", before, "0", "data"], "{map}");
    assert_eq!(lines[2], ["2097152", &after, "3", "hole,zero"], "{map}");
    client.request(TRIM, 0, 1 << 20, 1 << 20, &[]).unwrap();
    let (source, back) = (site.scratch.join("source"), site.scratch.join("back"));
    let mut data = vec![0; CAPACITY as usize];
    RootSeed(5).stream("data", 0).fill_bytes(&mut data);
    data[1 << 20..3 << 20].fill(0);
    std::fs::write(&source, &data).unwrap();
    run(&copy, &["--flush", source.to_str().unwrap(), &uri]);
    run(&copy, &[&uri, back.to_str().unwrap()]);
    assert!(std::fs::read(&back).unwrap() == data);
}

#[test]
fn qemu_img_works_with_it() {
    let Some(image) = find_program("qemu-img") else {
        skip!("qemu-img is missing (Debian package qemu-utils)");
    };
    let site = Site::new();
    let server = start(&site, flash(true));
    let uri = format!("nbd+unix:///data?socket={}", server.nbd_socket.display());
    let told: serde_json::Value =
        serde_json::from_str(&run(&image, &["info", "--output=json", &uri])).unwrap();
    assert_eq!(told["virtual-size"], CAPACITY);
    let source = site.scratch.join("source");
    let mut data = vec![0; CAPACITY as usize];
    RootSeed(6).stream("data", 0).fill_bytes(&mut data[..3 << 20]);
    std::fs::write(&source, &data).unwrap();
    let source = source.to_str().unwrap();
    run(&image, &["convert", "-n", "-f", "raw", "-O", "raw", source, &uri]);
    run(&image, &["compare", "-f", "raw", "-F", "raw", source, &uri]);
    let map: serde_json::Value =
        serde_json::from_str(&run(&image, &["map", "--output=json", &uri])).unwrap();
    let parts: Vec<_> = map.as_array().unwrap().iter().collect();
    let told = |part: &serde_json::Value| {
        (part["start"].clone(), part["length"].clone(), part["data"].clone())
    };
    let expected = [
        (json!(0), json!(3 << 20), json!(true)),
        (json!(3 << 20), json!(CAPACITY - (3 << 20)), json!(false)),
    ];
    assert_eq!(parts.into_iter().map(told).collect::<Vec<_>>(), expected, "{map}");
}
