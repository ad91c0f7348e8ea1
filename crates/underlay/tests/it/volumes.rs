//! `underlay volume` as users meet it: volumes that outlive programs, kills and stops; clear refusals; nothing left behind.

mod killed_cluster;

use crate::common::{Bench, Ended};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A datastore's directory; stopped at the end, whatever happens.
struct Store {
    bench: Bench,
    directory: PathBuf,
}

impl Store {
    fn new() -> Store {
        let bench = Bench::new();
        let directory = bench.path().canonicalize().expect("a folder").join("store");
        Store { bench, directory }
    }

    /// `underlay volume COMMAND DIRECTORY ...`.
    fn volume(&self, command: &str, arguments: &[&str]) -> Ended {
        let directory = self.directory.to_str().expect("a readable path");
        self.bench.run(&[&["volume", command, directory], arguments].concat())
    }

    fn json(&self, command: &str, arguments: &[&str]) -> Value {
        let text = self.volume(command, &[arguments, &["--json"]].concat()).expect(0);
        serde_json::from_str(&text).expect("JSON")
    }

    fn refusal(&self, command: &str, arguments: &[&str], said: &str) {
        let ended = self.volume(command, arguments);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }

    /// Mounts, loop devices and processes that have to do with the directory.
    fn on_host(&self) -> Vec<String> {
        let directory = self.directory.to_string_lossy().into_owned();
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let mut found: Vec<String> =
            mounts.lines().filter(|line| line.contains(&directory)).map(str::to_string).collect();
        for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
            let backing =
                fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
            if backing.contains(&directory) {
                found.push(backing);
            }
        }
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let command = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            if command.contains(&directory) {
                found.push(command.replace('\0', " "));
            }
        }
        found
    }

    fn wait_for_nothing_on_host(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.on_host().is_empty() {
            assert!(Instant::now() < deadline, "still there: {:?}", self.on_host());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.directory.exists() {
            self.volume("stop", &["--force"]);
            self.bench.run(&["clean"]);
        }
    }
}

fn cannot_attach() -> Option<&'static str> {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        Some("block devices need root")
    } else if !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
        Some("needs /dev/fuse and /dev/loop-control")
    } else {
        None
    }
}

fn path_of(volume: &Value, key: &str) -> PathBuf {
    PathBuf::from(volume[key].as_str().unwrap_or_else(|| panic!("{key} of {volume}")))
}

/// Kills a process and waits for its end: on a busy host it lives on for a while.
fn kill(pid: &Value) {
    let pid = i32::try_from(pid.as_i64().expect("a number")).expect("a process");
    // SAFETY: the process belongs to this test.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    // Until it is gone it may still be connected to. One that nobody has waited for has ended as well.
    let is_alive = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while is_alive() {
        assert!(Instant::now() < deadline, "process {pid} does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What is in a datastore after all that was done to it: a file, and bytes on a bare block device.
struct Witness {
    number: u8,
}

impl Witness {
    fn write(&mut self, store: &Store) {
        self.number += 1;
        let (file, device) = places(store);
        fs::write(&file, vec![self.number; 1 << 20]).expect("a file");
        File::open(&file).and_then(|file| file.sync_all()).expect("synced");
        let mut device = OpenOptions::new().write(true).open(device).expect("a device");
        device.seek(SeekFrom::Start(12 << 20)).expect("a place");
        device.write_all(&vec![self.number; 1 << 20]).expect("written");
        device.sync_all().expect("synced");
    }

    #[track_caller]
    fn check(&self, store: &Store) {
        let (file, device) = places(store);
        let mut found = fs::read(file).expect("the file");
        assert!(found == vec![self.number; 1 << 20], "the file has changed");
        let mut device = File::open(device).expect("a device");
        device.seek(SeekFrom::Start(12 << 20)).expect("a place");
        device.read_exact(&mut found).expect("bytes");
        assert!(found == vec![self.number; 1 << 20], "the block device has changed");
    }
}

fn places(store: &Store) -> (PathBuf, PathBuf) {
    let listed = store.json("list", &[]);
    assert_eq!(listed["running"], true);
    let volumes = &listed["datastore"]["volumes"];
    (path_of(&volumes[0], "mount").join("witness"), path_of(&volumes[1], "link"))
}

#[test]
fn volumes_outlive_stops_and_kills() {
    if let Some(reason) = cannot_attach() {
        eprintln!("skip: {reason}");
        return;
    }
    let store = Store::new();
    let device = ["--device", "flash=dc1500m-960", "--seed", "3"];
    let data = store
        .json("create", &[&["data", "--size", "64MiB", "--format", "ext4"], &device[..]].concat());
    assert_eq!((&data["name"], &data["device"]), (&"data".into(), &"flash".into()));
    let bare = store.json("create", &["bare", "--size", "32MiB"]);
    assert!(bare["nbd-uri"].as_str().expect("a URI").starts_with("nbd+unix:///bare?socket="));
    let mut witness = Witness { number: 0 };
    witness.write(&store);

    store.volume("stop", &[]).expect(0);
    store.wait_for_nothing_on_host();
    assert_eq!(store.json("list", &[])["running"], false);
    store.refusal("stat", &[], "is not running");
    store.volume("start", &[]).expect(0);
    witness.check(&store);
    witness.write(&store);

    // The server dies: the supervisor takes down what cannot work any more.
    kill(&store.json("list", &[])["datastore"]["server-pid"]);
    store.wait_for_nothing_on_host();
    store.volume("start", &[]).expect(0);
    witness.check(&store);
    witness.write(&store);

    // The supervisor dies: the volumes go on working, and can be cleaned away; the data stays.
    kill(&store.json("list", &[])["datastore"]["supervisor-pid"]);
    let mounted = store.directory.join("run/mnt/data/witness");
    assert_eq!(fs::read(mounted).expect("still there").len(), 1 << 20);
    store.bench.run(&["clean"]).expect(0);
    store.wait_for_nothing_on_host();
    assert_eq!(store.bench.run(&["clean"]).expect(0).trim(), "nothing to remove");
    store.volume("start", &[]).expect(0);
    witness.check(&store);

    // Both die, and the next start clears up by itself.
    let status = &store.json("list", &[])["datastore"];
    kill(&status["supervisor-pid"]);
    kill(&status["server-pid"]);
    store.volume("start", &[]).expect(0);
    witness.check(&store);

    let in_use = File::open(places(&store).0).expect("a file");
    store.refusal("stop", &[], "is in use");
    store.refusal("rm", &["data"], "is in use");
    witness.check(&store);
    drop(in_use);
    store.volume("rm", &["data"]).expect(0);
    assert!(!store.directory.join("volumes/data").exists());
    // A volume of the same name begins empty.
    let again = store.json("create", &["data", "--size", "32MiB", "--format", "ext4"]);
    assert!(!path_of(&again, "mount").join("witness").exists());
    store.volume("rm", &["--all"]).expect(0);
    assert!(!store.directory.exists());
    store.wait_for_nothing_on_host();
    assert_eq!(store.bench.left_on_host(), Vec::<String>::new());
}

/// Volumes that are served without a supervisor are no less in use, and no less anybody's data.
#[test]
fn volumes_of_a_killed_supervisor_are_in_use_until_they_are_not() {
    if let Some(reason) = cannot_attach() {
        eprintln!("skip: {reason}");
        return;
    }
    let store = Store::new();
    let data = ["data", "--size", "64MiB", "--format", "ext4", "--device", "null"];
    store.json("create", &data);
    store.json("create", &["bare", "--size", "32MiB"]);
    let mut witness = Witness { number: 0 };
    witness.write(&store);
    let in_use = File::open(places(&store).0).expect("a file");
    kill(&store.json("list", &[])["datastore"]["supervisor-pid"]);

    let listed = store.json("list", &[]);
    assert_eq!((&listed["running"], &listed["supervisor-gone"]), (&false.into(), &true.into()));
    let said = store.volume("list", &[]).expect(0);
    assert!(said.contains("its supervisor is gone, but its volumes are still served"), "{said}");
    store.refusal("stat", &[], "its volumes are still served");
    for (command, arguments) in [("stop", &[][..]), ("rm", &["--all"]), ("start", &[])] {
        store.refusal(command, arguments, "volume `data` is in use on");
    }
    // Nothing was touched.
    let mounted = store.directory.join("run/mnt/data/witness");
    assert_eq!(fs::read(&mounted).expect("still there"), vec![1; 1 << 20]);
    assert!(store.directory.join("volumes/data").exists());

    drop(in_use);
    store.volume("stop", &[]).expect(0);
    assert_eq!(store.on_host(), Vec::<String>::new());
    assert_eq!(store.bench.left_on_host(), Vec::<String>::new());
    assert_eq!(store.json("list", &[])["supervisor-gone"], false);
    store.volume("start", &[]).expect(0);
    witness.check(&store);

    // A bare block device may be held by a program too.
    kill(&store.json("list", &[])["datastore"]["supervisor-pid"]);
    let link = store.directory.join("run/dev/bare");
    let held = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(link).expect("held");
    store.refusal("rm", &["--all"], "of volume `bare` is in use");
    drop(held);
    store.volume("start", &[]).expect(0);
    witness.check(&store);
    kill(&store.json("list", &[])["datastore"]["supervisor-pid"]);
    store.volume("rm", &["--all"]).expect(0);
    assert!(!store.directory.exists());
    assert_eq!(store.on_host(), Vec::<String>::new());
    assert_eq!(store.bench.run(&["clean"]).expect(0).trim(), "nothing to remove");
}

/// A cluster's memory survives its server: what is where, who is gone, what is stale.
#[test]
fn clusters_outlive_stops_and_kills() {
    if let Some(reason) = cannot_attach() {
        eprintln!("skip: {reason}");
        return;
    }
    let store = Store::new();
    let file = ["data", "--size", "64MiB", "--format", "ext4"];
    let data = store.json("create", &[&file[..], &["--design", "kingston-nvme-vsan"]].concat());
    assert_eq!(data["policy"], "RAID-1");
    store.json("create", &["bare", "--size", "32MiB", "--failures", "0"]);
    store.refusal("create", &["five", "--size", "32MiB", "--failures", "2"], "fault domain");
    store.refusal("create", &["more", "--size", "32MiB", "--on", "x"], "a cluster chooses");
    let mut witness = Witness { number: 0 };
    witness.write(&store);
    store.volume("stop", &[]).expect(0);
    store.wait_for_nothing_on_host();
    let hosts = store.json("list", &[])["datastore"]["hosts"].as_array().expect("hosts").clone();
    store.volume("start", &[]).expect(0);
    witness.check(&store);

    // A host that is gone stays gone when the server is killed, and misses what is written then; nothing is lost.
    let host = hosts[0].as_str().expect("a name");
    store.volume("fault", &["host-lost", host]).expect(0);
    let mount = places(&store).0;
    fs::write(mount.with_file_name("while-gone"), vec![9; 1 << 20]).expect("a file");
    File::open(mount.with_file_name("while-gone"))
        .and_then(|file| file.sync_all())
        .expect("synced");
    kill(&store.json("list", &[])["datastore"]["server-pid"]);
    store.wait_for_nothing_on_host();
    store.volume("start", &[]).expect(0);
    assert_eq!(fs::read(mount.with_file_name("while-gone")).expect("kept"), vec![9; 1 << 20]);
    assert_eq!(fs::read(&mount).expect("kept"), vec![1; 1 << 20]);
    store.volume("fault", &["host-returned", host]).expect(0);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let counted = store.json("list", &[])["datastore"]["cluster"].clone();
        let left = |reason: &str| counted[&format!("cluster.resync.{reason}.left")].as_f64();
        if left("stale") == Some(0.0) && left("repair") == Some(0.0) {
            assert_eq!(counted["cluster.data.lost"].as_f64(), Some(0.0));
            break;
        }
        assert!(Instant::now() < deadline, "{counted}");
        std::thread::sleep(Duration::from_millis(100));
    }
    witness.check(&store);
    store.refusal("fault", &["host-lost", "nobody"], "there is no host `nobody`");
    store.volume("rm", &["bare"]).expect(0);
    store.volume("stop", &[]).expect(0);
    store.volume("start", &[]).expect(0);
    assert_eq!(fs::read(&mount).expect("kept"), vec![1; 1 << 20]);
    store.volume("rm", &["--all"]).expect(0);
    assert!(!store.directory.exists());
}

/// Blocks of noise, and of text that can be compressed, each different from all others.
fn blocks_of(kind: &str, count: u32) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes = Vec::with_capacity(count as usize * 4096);
    for number in 0..count {
        let end = bytes.len() + 4096;
        let line = format!("line of text in block {number}, as it is in all of it\n").into_bytes();
        while bytes.len() < end {
            match kind {
                "noise" => bytes.extend(noise()),
                _ => bytes.extend(&line[..line.len().min(end - bytes.len())]),
            }
        }
    }
    bytes
}

/// Values of a cluster's series, once everything that was written is counted.
fn counted(store: &Store, logical_bytes: f64) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let cluster = store.json("stat", &["--interval", "0s"])["cluster"].clone();
        if cluster["cluster.reduction.logical"].as_f64() == Some(logical_bytes)
            && cluster["cluster.reduction.recalling"].as_f64() == Some(0.0)
        {
            return cluster;
        }
        assert!(Instant::now() < deadline, "{logical_bytes} bytes are not counted: {cluster:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn clusters_say_what_they_do_and_what_reduction_saves() {
    if let Some(reason) = cannot_attach() {
        eprintln!("skip: {reason}");
        return;
    }
    let store = Store::new();
    let design = ["data", "--size", "1GiB", "--design", "storagereview-optane-reduced"];
    let data = store.json("create", &design);
    let mut device = OpenOptions::new().write(true).open(path_of(&data, "link")).expect("a device");
    // 64 MiB of noise twice, and 32 MiB of text.
    let (noise, text) = (blocks_of("noise", 16_384), blocks_of("text", 8_192));
    for bytes in [&noise, &noise, &text] {
        device.write_all(bytes).expect("written");
    }
    device.sync_all().expect("synced");
    drop(device);
    // A volume that comes later is counted as well.
    store.json("create", &["later", "--size", "64MiB"]);
    let watched = store.json("stat", &["--interval", "200ms"]);
    let now = &watched["now"]["cluster"];
    assert_eq!(now["cluster.volume.later.available"].as_f64(), Some(1.0), "{now:#}");
    let written: f64 = now
        .as_object()
        .expect("series")
        .iter()
        .filter(|(name, _)| name.starts_with("cluster.host.") && name.ends_with(".vm.write.bytes"))
        .filter_map(|(_, value)| value.as_f64())
        .sum();
    assert!(written >= 2.0 * 160.0 * 1048576.0, "{written} bytes were written on both replicas");

    // What no elevator has a reason to destage is counted once nothing more is written: 40,960 blocks on each of two replicas,
    // of which 24,576 are different, 8,192 of them of text.
    let logical = 2.0 * 40_960.0 * 4096.0;
    counted(&store, logical);
    // What is in a write buffer when it stops is counted by the next start.
    store.volume("stop", &[]).expect(0);
    store.volume("start", &[]).expect(0);
    let cluster = counted(&store, logical);
    let value =
        |name: &str| cluster[&format!("cluster.reduction.{name}")].as_f64().expect("a value");
    assert_eq!(value("unique"), 2.0 * 24_576.0 * 4096.0);
    assert_eq!(value("stored"), 2.0 * (16_384.0 * 4096.0 + 8_192.0 * 2048.0));
    assert_eq!(value("dedupe-ratio"), 40_960.0 / 24_576.0);
    assert_eq!(value("compression-ratio"), 1.2);
    let memory = store.json("list", &[])["datastore"]["memory-bytes"].as_f64().expect("bytes");
    let limit = 100e6 + 0.01 * f64::from(1 << 30);
    assert!(memory <= limit, "{memory} bytes of memory, more than {limit}");

    // A disk group is lost with a device; what it held is built again elsewhere, and counted there.
    let group = cluster.as_object().expect("series").iter().find_map(|(name, value)| {
        let group = name.strip_prefix("cluster.group.")?.strip_suffix(".reduction.logical")?;
        (value.as_f64() > Some(0.0)).then_some(group)
    });
    let group = group.expect("a group that holds something");
    store.volume("fault", &["lost", &format!("{group}/disk0")]).expect(0);
    let deadline = Instant::now() + Duration::from_secs(60);
    let told = loop {
        let told = store.volume("stat", &["--interval", "100ms"]).expect(0);
        if told.contains("copying of volume data ended") {
            break told;
        }
        assert!(Instant::now() < deadline, "{told}");
    };
    for said in
        ["fault", "disk0 lost", "congestion", "buffer free", "reachable", "reduction:", "resync:"]
    {
        assert!(told.contains(said), "{said}: {told}");
    }
    let notices = store.json("stat", &["--interval", "0s"])["notices"].clone();
    let kinds: Vec<&str> =
        notices.as_array().expect("a list").iter().filter_map(|it| it["kind"].as_str()).collect();
    assert!(kinds.contains(&"fault") && kinds.contains(&"resync"), "{kinds:?}");
    store.volume("stop", &[]).expect(0);
    store.volume("start", &[]).expect(0);
    let cluster = counted(&store, logical);
    assert_eq!(cluster[&format!("cluster.group.{group}.reduction.logical")].as_f64(), Some(0.0));
    assert_eq!(cluster["cluster.reduction.compression-ratio"].as_f64(), Some(1.2));
    store.volume("rm", &["--all"]).expect(0);
}

/// One block of a device, read or written past all caches.
fn block(action: [&str; 3]) -> bool {
    let mut dd = std::process::Command::new("dd");
    let ended = dd.args(action).args(["bs=4096", "count=1", "status=none"]).output();
    ended.expect("dd runs").status.success()
}

#[test]
fn faults_of_a_cluster_are_shown_where_they_are() {
    if let Some(reason) = cannot_attach() {
        eprintln!("skip: {reason}");
        return;
    }
    let store = Store::new();
    let new = ["data", "--size", "64MiB", "--failures", "0", "--design", "six-hosts"];
    let lying = [&new[..], &["--durability", "lying"]].concat();
    store.refusal("create", &lying, "`--durability lying` is for single devices");
    assert!(!store.directory.exists());
    let data = store.json("create", &[&new[..], &["--durability", "flushed"]].concat());
    let device = path_of(&data, "link").to_string_lossy().into_owned();
    assert!(block(["if=/dev/urandom", &format!("of={device}"), "oflag=direct"]));
    assert!(block([&format!("if={device}"), "of=/dev/null", "iflag=direct"]));

    // Every policy can be placed on six hosts, and be asked for.
    for (name, asked) in [
        ("six", &["--failures", "2", "--erasure-coding"][..]),
        ("five", &["--failures", "2", "--no-checksum", "--reserve", "50"]),
    ] {
        let asked = [&[name, "--size", "32MiB"][..], asked].concat();
        store.json("create", &asked);
    }
    let much = ["much", "--size", "32MiB", "--reserve", "101"];
    store.refusal("create", &much, "use 0 to 100");

    // A component is called here what events call it. Its only copy rots: five reads fail, and one block is lost.
    let listed = store.json("list", &[]);
    let component = &listed["datastore"]["components"][0];
    assert_eq!((&component["name"], &component["state"]), (&"c0".into(), &"active".into()));
    assert!(store.volume("list", &[]).expect(0).contains("component c0 on "));
    store.volume("fault", &["bit-rot", "c0", "--at", "100"]).expect(0);
    for _ in 0..5 {
        assert!(
            !block([&format!("if={device}"), "of=/dev/null", "iflag=direct"]),
            "the loss is reported"
        );
    }
    let status = store.json("stat", &["--interval", "0s"]);
    assert_eq!(status["volumes"][0]["errors"], 5);
    assert!(status["volumes"][0]["stored-bytes"].as_u64() >= Some(4096), "{status:#}");
    let counted = &status["cluster"];
    assert_eq!(counted["cluster.volume.data.errors"].as_f64(), Some(5.0));
    assert_eq!(counted["cluster.data.lost"].as_f64(), Some(1.0));
    let text = store.volume("stat", &["--interval", "100ms"]).expect(0);
    assert!(text.contains("0 requests ended with an I/O error, 5 since the start"), "{text}");
    store.volume("fault", &["torn-write", "data", "--keep", "512B"]).expect(0);
    store.refusal("fault", &["torn-write", "data", "--keep", "100B"], "a multiple of 512 bytes");

    let slow = component["device"].as_str().expect("a device");
    store.volume("fault", &["slow", slow, "--factor", "10"]).expect(0);
    let devices = store.json("list", &[])["datastore"]["devices"].clone();
    let is_slow = |device: &&Value| device["condition"] == "slow";
    let slowed: Vec<&Value> = devices.as_array().expect("devices").iter().filter(is_slow).collect();
    assert!(slowed.len() == 1 && slowed[0]["name"] == slow, "{devices:#}");
    let text = store.volume("stat", &["--interval", "0s"]).expect(0);
    let line = text.lines().find(|line| line.starts_with(slow)).expect("a line of the device");
    assert!(line.contains(" slow "), "{line}");
    store.refusal("fault", &["lost", "nothing"], "/cache, ");

    let host = slow.split('/').next().expect("a host");
    store.refusal("fault", &["partition", host, host], "name each host once");
    let all: Vec<&str> = devices.as_array().expect("devices").iter().map(host_of).collect();
    let all: std::collections::BTreeSet<&str> = all.into_iter().collect();
    let everybody: Vec<&str> = ["partition"].into_iter().chain(all).collect();
    store.refusal("fault", &everybody, "leave at least one host on the other side");
    store.volume("fault", &["partition", host]).expect(0);
    let deadline = Instant::now() + Duration::from_secs(60);
    let reachable = format!("cluster.host.{host}.reachable");
    while store.json("list", &[])["datastore"]["cluster"][&reachable].as_f64() != Some(0.0) {
        assert!(Instant::now() < deadline, "{host} stays reachable");
        std::thread::sleep(Duration::from_millis(200));
    }
    let text = store.volume("stat", &["--interval", "0s"]).expect(0);
    assert!(text.contains("partitioned from the others") && !text.contains("host host"), "{text}");
    assert!(text.contains("components are unreachable or stale"), "{text}");
    let text = store.volume("list", &[]).expect(0);
    assert!(text.contains(&format!("host {host}: unreachable")), "{text}");
    let away: Vec<&str> =
        text.lines().filter(|it| it.contains(&format!("device {host}/"))).collect();
    assert!(away.iter().all(|it| !it.contains("healthy")), "{text}");
    assert!(
        away.iter().any(|it| it.contains("unreachable") && it.contains("in its write buffer")),
        "{text}"
    );
    assert!(!text.contains(" 0 B of"), "{text}");
    store.volume("fault", &["host-returned", host]).expect(0);
    store.volume("fault", &["host-frozen", host]).expect(0);
    let refusal = format!(": {host} is frozen; return it first");
    store.refusal("fault", &["host-frozen", host], &refusal);
    store.volume("fault", &["host-returned", host]).expect(0);
}

/// What ends all I/O of a cluster must not end the datastore: only one that runs can be mended.
#[test]
fn a_cluster_that_lost_its_hosts_starts_again() {
    if let Some(reason) = cannot_attach() {
        eprintln!("skip: {reason}");
        return;
    }
    let store = Store::new();
    let new = ["data", "--size", "64MiB", "--format", "ext4", "--design", "six-hosts"];
    let data = store.json("create", &new);
    assert_eq!(data["volatile-bytes"], Value::Null, "it is not counted");
    let file = path_of(&data, "mount").join("witness");
    let is_there = || fs::read(&file).is_ok_and(|bytes| bytes == vec![7; 1 << 20]);
    fs::write(&file, vec![7; 1 << 20]).expect("a file");
    File::open(&file).and_then(|file| file.sync_all()).expect("synced");

    // A power cut ends with the datastore.
    store.volume("fault", &["power-cut"]).expect(0);
    store.volume("stop", &["--force"]).expect(0);
    store.volume("start", &[]).expect(0);
    assert!(is_there());

    // Lost hosts stay lost: without them nothing can be mounted, and they can be returned.
    let listed = store.json("list", &[]);
    let components = listed["datastore"]["components"].as_array().expect("components").clone();
    let mut hosts: Vec<&str> = components.iter().map(|it| &it["device"]).map(host_in).collect();
    hosts.dedup();
    assert_eq!(hosts.len(), 2, "{components:?}");
    for host in &hosts {
        store.volume("fault", &["host-lost", host]).expect(0);
    }
    store.volume("stop", &["--force"]).expect(0);
    let started = store.volume("start", &[]);
    assert_eq!(started.code, Some(4), "{}", started.stderr);
    assert!(started.stderr.contains("volume `data` is not mounted"), "{}", started.stderr);
    assert!(!is_there());
    assert!(
        !store.directory.join("run/mnt/data").exists(),
        "it would be written to the host's disk"
    );
    for host in &hosts {
        store.volume("fault", &["host-returned", host]).expect(0);
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while store.volume("fault", &["power-on"]).code != Some(0) {
        assert!(Instant::now() < deadline, "it does not mount again");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(is_there());
    assert!(!store.volume("list", &[]).expect(0).contains("not mounted"));
}

fn host_in(device: &Value) -> &str {
    device.as_str().and_then(|name| name.split('/').next()).expect("HOST/GROUP/DEVICE")
}

/// The host of a device's status.
fn host_of(device: &Value) -> &str {
    host_in(&device["name"])
}

#[test]
fn faults_are_felt_and_mended() {
    if let Some(reason) = cannot_attach() {
        eprintln!("skip: {reason}");
        return;
    }
    let store = Store::new();
    let volume = store.json(
        "create",
        &[
            "data",
            "--size",
            "64MiB",
            "--format",
            "ext4",
            "--device",
            "dc1500m-960",
            "--durability",
            "flushed",
        ],
    );
    let mount = path_of(&volume, "mount");
    let synced = |name: &str| {
        let begin = Instant::now();
        fs::write(mount.join(name), vec![1; 1 << 20])
            .and_then(|()| File::open(mount.join(name))?.sync_all())
            .map(|()| begin.elapsed())
    };
    synced("before").expect("it works");
    store.volume("fault", &["slow", "dc1500m-960", "--factor", "1000"]).expect(0);
    let slow = synced("slow").expect("slow, but it works");
    assert!(slow > Duration::from_millis(100), "{slow:?}");
    assert_eq!(store.json("list", &[])["datastore"]["devices"][0]["condition"], "slow");
    store.volume("fault", &["mend", "dc1500m-960"]).expect(0);
    synced("mended").expect("it works");

    let stat = store.volume("stat", &["data", "--interval", "100ms"]).expect(0);
    assert!(stat.contains("host:") && stat.contains("latencies: emulated"), "{stat}");
    assert!(stat.contains("timing: "), "{stat}");
    let watched = store.json("stat", &["--interval", "100ms"]);
    assert_eq!(watched["evidence"], "emulated");
    assert!(watched["timing"]["valid"].is_boolean(), "{watched}");
    store.refusal("stat", &["--count", "0"], "--count");
    store.refusal("stat", &["--count", "3", "--interval", "0s"], "so --count has no effect");
    let totals = store.json("stat", &["--interval", "0s"]);
    assert!(totals["volumes"][0]["operations"][1]["bytes"].as_u64() >= Some(3 << 20), "{totals}");
    // Whoever asked for an interval took nothing from the verdict on the whole.
    assert!(totals["timing"]["valid"].is_boolean(), "{totals}");
    assert!(totals["timing"]["delayed"].as_u64() > Some(0), "{totals}");
    let said = store.volume("stat", &["--interval", "0s"]).expect(0);
    assert!(said.contains("timing since the start: "), "{said}");

    store.volume("fault", &["power-cut"]).expect(0);
    assert!(synced("dark").is_err());
    store.refusal("create", &["other", "--size", "1MiB"], "the power is off");
    store.volume("fault", &["power-on"]).expect(0);
    for name in ["before", "slow", "mended"] {
        assert_eq!(fs::read(mount.join(name)).expect("it was synced"), vec![1; 1 << 20]);
    }
    store.refusal("fault", &["power-on"], "the power is on");

    store.volume("fault", &["lost", "dc1500m-960"]).expect(0);
    assert!(synced("lost").is_err(), "the loss is reported");
    store.volume("stop", &["--force"]).expect(0);
    store.wait_for_nothing_on_host();
    store.volume("start", &[]).expect(0);
    assert_eq!(fs::read(mount.join("before")).expect("it is there"), vec![1; 1 << 20]);
}

/// What uses a file system that lost its power would keep its block device, so the volume could not come back.
#[test]
fn power_comes_back_once_nobody_uses_what_was_lost() {
    if let Some(reason) = cannot_attach() {
        eprintln!("skip: {reason}");
        return;
    }
    let store = Store::new();
    let data = ["data", "--size", "64MiB", "--format", "ext4", "--device", "null"];
    store.json("create", &data);
    let bare = store.json("create", &["bare", "--size", "32MiB"]);
    let mut witness = Witness { number: 0 };
    witness.write(&store);
    let in_use = File::open(places(&store).0).expect("a file");
    store.volume("fault", &["power-cut"]).expect(0);
    store.refusal("fault", &["power-on"], "volume `data` is in use on");
    assert_eq!(store.json("list", &[])["datastore"]["powered"], false);
    drop(in_use);

    // Not held in a way that can be asked for.
    let held = File::open(path_of(&bare, "block-device")).expect("a device");
    store.refusal("fault", &["power-on"], "stop it, then repeat `power-on`");
    assert_eq!(store.json("list", &[])["datastore"]["powered"], false);
    drop(held);
    store.volume("fault", &["power-on"]).expect(0);
    witness.check(&store);
    store.refusal("fault", &["power-on"], "the power is on");
}

/// The bytes of volumes are readable for their owner alone, also those of a datastore that was made before that was so.
#[test]
fn others_cannot_read_the_bytes_of_volumes() {
    let store = Store::new();
    let shared = "umask 022; exec \"$0\" \"$@\"";
    let create = |name: &str, more: &[&str]| {
        let directory = store.directory.to_str().expect("a readable path");
        let program = store.bench.underlay();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", shared]).arg(program.get_program());
        shell.args(["volume", "create", directory, name, "--size", "8MiB"]).args(more);
        shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = shell.output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    create("single", &["--device", "null"]);
    store.volume("stop", &[]).expect(0);
    let bytes = store.directory.join("volumes/single");
    assert_eq!(open_to_others(&store), Vec::<PathBuf>::new());
    // As they were made before.
    fs::set_permissions(&bytes, fs::Permissions::from_mode(0o644)).expect("ours");
    fs::set_permissions(store.directory.join("volumes"), fs::Permissions::from_mode(0o755))
        .expect("ours");
    assert_eq!(open_to_others(&store).len(), 2);
    store.volume("start", &[]).expect(0);
    assert_eq!(open_to_others(&store), Vec::<PathBuf>::new());
    store.volume("rm", &["--all"]).expect(0);

    create("many", &["--design", "kingston-nvme-vsan"]);
    assert!(store.directory.join("components/intents").exists());
    assert_eq!(open_to_others(&store), Vec::<PathBuf>::new());
    store.volume("rm", &["--all"]).expect(0);
}

/// Files and folders with data that others than their owner may look into.
fn open_to_others(store: &Store) -> Vec<PathBuf> {
    let mut open = Vec::new();
    let mut left = vec![store.directory.join("volumes"), store.directory.join("components")];
    while let Some(path) = left.pop() {
        let metadata = fs::metadata(&path).expect("it is there");
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            open.push(path);
        }
    }
    open
}

/// A command that was wrong can be corrected and given again.
#[test]
fn a_first_volume_that_cannot_be_leaves_no_datastore() {
    let store = Store::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let ended = |more: &[&str]| {
        let first = ["data", "--size", "64MiB"];
        let ended = store.volume("create", &[&first[..], more].concat());
        assert_ne!(ended.code, Some(0), "{more:?}");
        assert!(!store.directory.exists(), "{more:?} left {:?}", store.directory);
        assert_eq!(store.on_host(), Vec::<String>::new());
        (ended.code, ended.stderr)
    };
    let (code, said) = ended(&["--device", "null", "--format", "ext4", "--mount", "/nonexistent"]);
    assert!(code == Some(2) && said.contains("/nonexistent"), "{said}");
    let (code, said) = ended(&["--device", "null", "--nbd", &address]);
    assert!(code == Some(3) && said.contains("choose another port"), "{said}");
    let above = store.bench.path().to_str().expect("a readable path");
    let (code, said) = ended(&["--device", "null", "--format", "ext4", "--mount", above]);
    assert!(code == Some(2) && said.contains("would hide the datastore"), "{said}");
    let profile = store.bench.write("bad.toml", "name = \"x\"\nspeed = \"very\"\n");
    let (code, said) = ended(&["--device", profile.to_str().expect("a readable path")]);
    assert!(code == Some(2) && said.contains("bad.toml:2") && said.contains("speed"), "{said}");
    let design = store.bench.write(
        "design.toml",
        "name = \"mine\"\ncolour = \"red\"\n\n[datastore.emulated]\ndevices = [{ name = \"a\", profile = \"x\" }]\n",
    );
    let (code, said) = ended(&["--design", design.to_str().expect("a readable path")]);
    assert_eq!(code, Some(2), "{said}");
    for named in
        ["design.toml:2", "`colour`", "design.toml:5", "the device profile `x`", "2 problems"]
    {
        assert!(said.contains(named), "{named}: {said}");
    }
    let (code, said) = ended(&["--design", "six-host"]);
    assert!(code == Some(2) && said.contains("did you mean `six-hosts`?"), "{said}");
    let (code, said) = ended(&["--device", "null", "--format", "xfs"]);
    assert_eq!(code, Some(2), "{said}");
    if cannot_attach().is_none() {
        assert!(said.contains("make it 300 MiB or larger"), "{said}");
    }

    // What is shown of a built-in design is a file to start from.
    let text = store.bench.run(&["show", "six-hosts"]).expect(0);
    let text = text.replace("count = 6", "count = 3");
    let design = store.bench.write("mine.toml", &text);
    let mine = ["mine", "--size", "8MiB", "--design", design.to_str().expect("a readable path")];
    store.volume("create", &mine).expect(0);
    let devices = store.json("list", &[])["datastore"]["devices"].clone();
    assert_eq!(devices.as_array().map(Vec::len), Some(9), "{devices}");
    // Twice this is more than six devices of 1.92 TB can hold, whatever this host has.
    let large = ["large", "--size", "6TiB", "--failures", "1"];
    store.refusal("create", &large, "takes 12 TiB when it is full");
    store.volume("rm", &["--all"]).expect(0);

    // A directory that was there stays, empty.
    fs::create_dir(&store.directory).expect("a folder");
    store.refusal("create", &["NO", "--size", "8MiB", "--device", "null"], "not a volume name");
    assert_eq!(fs::read_dir(&store.directory).expect("still there").count(), 0);
    store.volume("create", &["data", "--size", "8MiB", "--device", "null"]).expect(0);
    if cannot_attach().is_none() {
        let inside = store.directory.join("run");
        for target in [&store.directory, &inside] {
            let target = target.to_str().expect("a readable path");
            let more = ["more", "--size", "64MiB", "--format", "ext4", "--mount", target];
            store.refusal("create", &more, "would hide the datastore");
        }
    }
    store.volume("rm", &["--all"]).expect(0);
}

/// Ctrl-C, at any moment, leaves what was there before.
#[test]
fn a_first_creation_that_is_interrupted_leaves_no_datastore() {
    let store = Store::new();
    let directory = store.directory.to_str().expect("a readable path");
    let mut command = store.bench.underlay();
    command.args(["volume", "create", directory, "data", "--size", "64MiB", "--device", "null"]);
    let mut creation = command.spawn().expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !store.directory.join("datastore.json").exists() {
        assert!(Instant::now() < deadline, "it never began");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = i32::try_from(creation.id()).expect("a process");
    // SAFETY: the process belongs to this test.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let status = creation.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert!(!store.directory.exists());
    assert_eq!(store.on_host(), Vec::<String>::new());
}

/// Whoever waited for it is gone, by Ctrl-C or by force, while the supervisor was still bringing everything up. Commands that come then wait for
/// the supervisor instead of taking the datastore for stopped.
#[test]
fn a_start_that_was_cut_short_can_be_stopped() {
    let store = Store::new();
    let state = || store.json("list", &[])["state"].clone();
    store.volume("create", &["data", "--size", "64MiB", "--device", "null"]).expect(0);
    assert_eq!(state(), "running");
    store.volume("stop", &[]).expect(0);
    let directory = store.directory.to_str().expect("a readable path");
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let mut command = store.bench.underlay();
        command.args(["volume", "start", directory]).stdout(std::process::Stdio::null());
        let mut starting = command.spawn().expect("it starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !store.directory.join("run").exists() {
            assert!(Instant::now() < deadline, "the supervisor never began");
            std::thread::sleep(Duration::from_millis(1));
        }
        let pid = i32::try_from(starting.id()).expect("a process");
        // SAFETY: the process belongs to this test, and was not waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        match starting.wait().expect("it ends").code() {
            Some(130) => assert_eq!(state(), "stopped", "it ended what it had begun"),
            // It was there before the signal was.
            Some(0) => assert_eq!(state(), "running"),
            // Killed: the supervisor goes on, and is waited for by whoever needs it.
            None => drop(store.volume("stat", &["--interval", "0s"]).expect(0)),
            other => panic!("{other:?}"),
        }
        store.volume("stop", &[]).expect(0);
        assert_eq!(state(), "stopped");
        assert_eq!(store.on_host(), Vec::<String>::new());
    }
    // What was left of a creation that was cut short is gone after the next start.
    let bytes = store.directory.join("volumes");
    fs::write(bytes.join("half-made"), "nothing").expect("a file");
    store.volume("start", &[]).expect(0);
    assert_eq!(fs::read_dir(&bytes).expect("the volumes").count(), 1);
    store.volume("rm", &["--all"]).expect(0);
}

/// A cluster that ended in order has nothing to copy at its next start.
#[test]
fn a_start_that_was_interrupted_ends_in_order() {
    let store = Store::new();
    let volume = ["data", "--size", "16MiB", "--design", "kingston-nvme-vsan"];
    store.volume("create", &volume).expect(0);
    store.volume("stop", &[]).expect(0);
    let directory = store.directory.to_str().expect("a readable path");
    let mut interrupted = 0;
    for _ in 0..5 {
        let mut command = store.bench.underlay();
        command.args(["volume", "start", directory]).stdout(std::process::Stdio::null());
        let mut starting = command.spawn().expect("it starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        let server = store.directory.join("run/datastore/c.sock");
        while !server.exists() {
            assert!(Instant::now() < deadline, "the server never began");
            std::thread::sleep(Duration::from_millis(1));
        }
        let pid = i32::try_from(starting.id()).expect("a process");
        // SAFETY: the process belongs to this test, and was not waited for.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
        if starting.wait().expect("it ends").code() == Some(130) {
            interrupted += 1;
        } else {
            store.volume("stop", &[]).expect(0);
        }
        let kept = fs::read_to_string(store.directory.join("cluster.json")).expect("its memory");
        assert!(kept.contains("\"ended-in-order\":true"), "{interrupted} were interrupted");
    }
    if interrupted == 0 {
        eprintln!("skip: no start could be interrupted");
    }
}

/// An io_uring closes its files a moment after its process has ended.
#[test]
fn a_volume_can_be_removed_right_after_it_was_loaded() {
    if let Some(reason) = cannot_attach() {
        eprintln!("skip: {reason}");
        return;
    }
    let store = Store::new();
    for _ in 0..3 {
        let create = ["bare", "--size", "32MiB"];
        let first: &[&str] = if store.directory.exists() { &[] } else { &["--device", "null"] };
        let bare = store.json("create", &[&create[..], first].concat());
        let device = path_of(&bare, "block-device");
        let device = device.to_str().expect("a readable path");
        let load = ["io", "4k-random-read", device, "--duration", "1s", "--warm-up", "0s"];
        store.bench.run(&load).expect(0);
        store.volume("rm", &["bare"]).expect(0);
    }
}

/// Connects as an NBD client of a volume.
fn nbd_client(volume: &Value) -> UnixStream {
    let uri = volume["nbd-uri"].as_str().expect("a URI");
    let (_, socket) = uri.split_once("socket=").expect("a socket");
    let mut stream = UnixStream::connect(socket).expect("a server");
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).expect("a greeting");
    let name = volume["name"].as_str().expect("a name").as_bytes();
    // Newstyle without zeros; then the oldest way to choose an export.
    let mut choice = 3u32.to_be_bytes().to_vec();
    choice.extend(b"IHAVEOPT");
    choice.extend(1u32.to_be_bytes());
    choice.extend((name.len() as u32).to_be_bytes());
    choice.extend(name);
    stream.write_all(&choice).expect("sent");
    stream.read_exact(&mut [0; 10]).expect("size and flags");
    stream
}

#[test]
fn a_volume_with_nbd_clients_is_in_use() {
    let store = Store::new();
    store.volume("create", &["data", "--size", "16MiB", "--device", "null"]).expect(0);
    let volume = || store.json("list", &[])["datastore"]["volumes"][0].clone();
    let client = nbd_client(&volume());
    assert_eq!(volume()["nbd-clients"], 1);
    store.refusal("rm", &["data"], "volume `data` is in use over NBD");
    store.refusal("stop", &[], "volume `data` is in use over NBD");
    store.refusal("rm", &["--all"], "volume `data` is in use over NBD");
    drop(client);
    // Who has just left is none.
    store.volume("stop", &[]).expect(0);
    store.volume("start", &[]).expect(0);
    let _client = nbd_client(&volume());
    store.volume("stop", &["--force"]).expect(0);
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_touched() {
    let store = Store::new();
    store.refusal("create", &["data", "--size", "1MiB"], "a new one needs a device");
    store.refusal(
        "create",
        &["data", "--size", "1MiB", "--device", "dc9999"],
        "no device profile `dc9999`",
    );
    store.refusal(
        "create",
        &["data", "--size", "1MiB", "--device", "null", "--nbd", "192.0.2.1:10809"],
        "not a loopback address",
    );
    assert!(!store.directory.exists());
    for command in ["list", "start", "stop", "stat"] {
        store.refusal(command, &[], "there is no datastore");
    }
    let device = ["--device", "null", "--nbd", "127.0.0.1:0"];
    store.volume("create", &[&["data", "--size", "4MiB"], &device[..]].concat()).expect(0);
    store.refusal("create", &["data", "--size", "1MiB"], "volume `data` already exists");
    store.refusal("create", &["DATA", "--size", "1MiB"], "is not a volume name");
    store.refusal("create", &["odd", "--size", "1000B"], "a multiple of 4 KiB");
    store.refusal("create", &["more", "--size", "1MiB", "--on", "x"], "no device `x`");
    store.refusal("create", &["more", "--size", "1MiB", "--device", "null"], "already");
    store.refusal("create", &["huge", "--size", "1000TiB"], "are free there");
    store.refusal("rm", &["more"], "there is no volume `more`; there are: data");
    store.refusal("fault", &["slow", "null", "--factor", "0.1"], "must lie between");
    store.refusal("fault", &["lost", "other"], "there is no device `other`; there are null");
    let status = store.json("list", &[]);
    let volumes = status["datastore"]["volumes"].as_array().expect("a list");
    assert_eq!(volumes.len(), 1);
    assert!(volumes[0]["nbd-tcp-uri"].as_str().expect("TCP").starts_with("nbd://127.0.0.1:"));
    fs::write(store.directory.join("mine"), "not the datastore's").expect("a file");
    let kept = store.volume("rm", &["--all"]);
    assert_eq!(kept.code, Some(3), "{}", kept.stderr);
    assert_eq!(fs::read(store.directory.join("mine")).expect("kept"), b"not the datastore's");
}
