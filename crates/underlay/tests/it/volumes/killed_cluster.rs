//! The server and the supervisor of a cluster are killed with `kill -9` while one of its hosts is away. What was flushed must
//! stay readable without that host, and after its devices were replaced.
//!
//! Real processes, real files, real NBD connections; so it needs neither root nor block devices. Every moment of a kill is
//! covered by the simulation in the `datastore` crate (`kill_tests`, `cluster_simulation`), which kills no process.

use super::{Store, host_in, kill, nbd_client};
use serde_json::Value;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 4096;
/// 16 MiB.
const BLOCKS: usize = 4096;
/// Blocks of one request, 256 KiB.
const BLOCKS_AT_ONCE: usize = 64;
/// Blocks of a stripe unit of 1 MiB: one block in each is rewritten, so on every member of the rows.
const BLOCKS_OF_UNIT: usize = 256;
/// Several times as long as a cluster takes to notice that a host is silent, 5 s.
const LIMIT: Duration = Duration::from_secs(30);

/// Requests of the NBD protocol.
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;

/// An NBD client of the volume.
struct Client {
    stream: UnixStream,
}

impl Client {
    fn connect(store: &Store) -> Client {
        let stream = nbd_client(&store.json("list", &[])["datastore"]["volumes"][0]);
        stream.set_read_timeout(Some(LIMIT)).expect("a socket");
        Client { stream }
    }

    /// Sends a request without waiting for its reply.
    fn send(&mut self, kind: u16, block: usize, length: usize, data: &[u8]) {
        let offset = (block * BLOCK_BYTES) as u64;
        let mut request = Vec::with_capacity(28 + data.len());
        request.extend_from_slice(&0x2560_9513_u32.to_be_bytes());
        request.extend_from_slice(&0_u16.to_be_bytes());
        request.extend_from_slice(&kind.to_be_bytes());
        request.extend_from_slice(&offset.to_be_bytes()); // the cookie
        request.extend_from_slice(&offset.to_be_bytes());
        request.extend_from_slice(&(length as u32).to_be_bytes());
        request.extend_from_slice(data);
        self.stream.write_all(&request).expect("sent");
    }

    /// Waits for the reply to the only request that is under way. Returns its error number, 0 = none.
    fn reply(&mut self, data: &mut [u8]) -> io::Result<u32> {
        let mut head = [0_u8; 16];
        self.stream.read_exact(&mut head)?;
        assert_eq!(head[..4], 0x6744_6698_u32.to_be_bytes(), "a simple reply");
        let error = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        if error == 0 {
            self.stream.read_exact(data)?;
        }
        Ok(error)
    }

    fn write(&mut self, block: usize, data: &[u8]) {
        self.send(WRITE, block, data.len(), data);
        assert_eq!(self.reply(&mut []).expect("a reply"), 0, "the write of block {block} fails");
    }

    fn flush(&mut self) {
        self.send(FLUSH, 0, 0, &[]);
        assert_eq!(self.reply(&mut []).expect("a reply"), 0, "the flush fails");
    }

    /// `None` if the read fails.
    fn read(&mut self, block: usize, blocks: usize) -> Option<Vec<u8>> {
        let mut data = vec![0; blocks * BLOCK_BYTES];
        self.send(READ, block, data.len(), &[]);
        let error = self.reply(&mut data).expect("a reply");
        (error == 0).then_some(data)
    }
}

/// Noise, different for each block and each of its versions.
fn content(block: usize, version: u64) -> Vec<u8> {
    let mut state = ((block as u64) << 8) | version;
    let mut bytes = Vec::with_capacity(BLOCK_BYTES);
    while bytes.len() < BLOCK_BYTES {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bytes.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    bytes
}

/// What the blocks of the volume may hold.
struct Expected {
    /// Of each block: the versions that a read may return. Several only while a write was not answered.
    versions: Vec<Vec<u64>>,
}

impl Expected {
    /// Fills the volume and flushes it.
    fn fill(client: &mut Client) -> Expected {
        for first in (0..BLOCKS).step_by(BLOCKS_AT_ONCE) {
            let blocks = first..first + BLOCKS_AT_ONCE;
            let contents: Vec<Vec<u8>> = blocks.map(|block| content(block, 0)).collect();
            client.write(first, &contents.concat());
        }
        client.flush();
        Expected { versions: vec![vec![0]; BLOCKS] }
    }

    /// Rewrites the block at this place of every stripe unit, and waits for the replies.
    fn rewrite(&mut self, client: &mut Client, place: usize, version: u64) {
        for block in (place..BLOCKS).step_by(BLOCKS_OF_UNIT) {
            client.write(block, &content(block, version));
            self.versions[block] = vec![version];
        }
    }

    /// The same without waiting for any reply.
    fn begin_rewrite(&mut self, client: &mut Client, place: usize, version: u64) {
        for block in (place..BLOCKS).step_by(BLOCKS_OF_UNIT) {
            client.send(WRITE, block, BLOCK_BYTES, &content(block, version));
            self.versions[block].push(version);
        }
    }

    /// Reads the whole volume. A block that one of two versions was read of keeps it.
    fn check(&mut self, client: &mut Client, when: &str) {
        let (mut unreadable, mut wrong) = (Vec::new(), Vec::new());
        for first in (0..BLOCKS).step_by(BLOCKS_AT_ONCE) {
            let together = client.read(first, BLOCKS_AT_ONCE);
            for block in first..first + BLOCKS_AT_ONCE {
                let found = match &together {
                    Some(bytes) => {
                        Some(bytes[(block - first) * BLOCK_BYTES..][..BLOCK_BYTES].to_vec())
                    }
                    // One block that cannot be read fails the whole request.
                    None => client.read(block, 1),
                };
                let Some(found) = found else {
                    unreadable.push(block);
                    continue;
                };
                let mut allowed = self.versions[block].clone();
                allowed.retain(|version| content(block, *version) == found);
                match allowed.is_empty() {
                    true => wrong.push(block),
                    false => self.versions[block] = allowed,
                }
            }
        }
        assert!(
            unreadable.is_empty() && wrong.is_empty(),
            "{when}: of {BLOCKS} blocks {} are unreadable (the first: {:?}), and {} hold something else (the first: {:?})",
            unreadable.len(),
            unreadable.first(),
            wrong.len(),
            wrong.first()
        );
    }
}

/// Kills supervisor and server, and starts the datastore on the files that they left.
fn kill_both_and_start(store: &Store) {
    let listed = store.json("list", &[]);
    // The supervisor first: it would take everything down when its server dies.
    kill(&listed["datastore"]["supervisor-pid"]);
    kill(&listed["datastore"]["server-pid"]);
    store.volume("start", &[]).expect(0);
}

/// Whether the cluster counts a host as there: 1 or 0.
fn reachable(store: &Store, host: &str) -> Option<f64> {
    let series = format!("cluster.host.{host}.reachable");
    store.json("list", &[])["datastore"]["cluster"][&series].as_f64()
}

/// Until every member of the volume has all of its data.
fn wait_until_rebuilt(store: &Store) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let components = store.json("list", &[])["datastore"]["components"].clone();
        let is_whole = |it: &Value| it["state"] == "active" && it["stale-bytes"] == 0;
        if components.as_array().expect("components").iter().all(is_whole) {
            return;
        }
        assert!(Instant::now() < deadline, "it is not rebuilt: {components:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// `fault` makes a host go away; the policy tolerates so many of them.
fn kill_while_a_host_is_away(policy: &str, tolerated: usize, fault: &str) {
    let store = Store::new();
    let failures = tolerated.to_string();
    let size = ["data", "--size", "16MiB", "--design", "six-hosts"];
    let protection = ["--erasure-coding", "--failures", failures.as_str()];
    let volume = store.json("create", &[&size[..], &protection].concat());
    assert_eq!(volume["policy"], policy);
    let mut client = Client::connect(&store);
    let mut expected = Expected::fill(&mut client);

    // Hosts that hold parts of the volume, and the devices of the one that goes away.
    let listed = store.json("list", &[])["datastore"].clone();
    let components = listed["components"].as_array().expect("components");
    let mut hosts: Vec<&str> = components.iter().map(|it| host_in(&it["device"])).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let (away, others) = hosts.split_first().expect("hosts");
    let devices = listed["devices"].as_array().expect("devices").iter();
    let names = devices.map(|device| device["name"].as_str().expect("a name"));
    let of_away = format!("{away}/");
    let devices_of_away: Vec<&str> = names.filter(|name| name.starts_with(&of_away)).collect();
    assert_eq!(devices_of_away.len(), 3, "a cache device and two disks");

    // The cluster has not noticed yet that the host is away; writes that need it are under way.
    store.volume("fault", &[fault, away]).expect(0);
    expected.begin_rewrite(&mut client, 17, 1);
    kill_both_and_start(&store);
    let mut client = Client::connect(&store);
    assert_eq!(reachable(&store, away), Some(0.0), "it stays away");
    expected.check(&mut client, "killed before the silence was noticed");

    // It has. Writes are answered without the host and not flushed, and some are under way.
    expected.rewrite(&mut client, 18, 2);
    expected.begin_rewrite(&mut client, 19, 3);
    kill_both_and_start(&store);
    let mut client = Client::connect(&store);
    assert_eq!(reachable(&store, away), Some(0.0), "it stays away");
    expected.check(&mut client, "killed after writes without the host");

    // Everything that the host held has to come from the others.
    for device in devices_of_away {
        store.volume("fault", &["replace", device]).expect(0);
    }
    store.volume("fault", &["host-returned", away]).expect(0);
    wait_until_rebuilt(&store);
    expected.check(&mut client, "the host is back with new devices");

    // What was rebuilt decides what is read, once as many other hosts are lost as the policy tolerates.
    for host in &others[..tolerated] {
        store.volume("fault", &["host-lost", host]).expect(0);
    }
    expected.check(&mut client, "rebuilt, and without others");
}

#[test]
fn raid_5_survives_a_kill_while_a_host_is_frozen() {
    kill_while_a_host_is_away("RAID-5", 1, "host-frozen");
}

#[test]
fn raid_6_survives_a_kill_while_a_host_is_partitioned() {
    kill_while_a_host_is_away("RAID-6", 2, "partition");
}
