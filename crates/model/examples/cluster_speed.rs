//! How many front-end I/Os a CPU-second carries through a whole cluster in virtual time, by policy and share of reads.
//!
//! `cargo run --release -p underlay-model --example cluster_speed [-- RAID-5]`. A closed loop of random 8 KiB requests at queue
//! depth 32, on hosts with one NVMe cache and two SATA devices; a word selects the lines that hold it. Time is that of this
//! process on a processor. The last column is a digest of all answers: a change that makes the model cheaper must leave it alone.

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{
    Checksum, Cluster, ClusterEvent, ClusterSettings, ClusterSpec, HostSpec, Method, NetworkSpec,
    Policy,
};
use underlay_model::{DiskGroupSpec, Request, RequestId, builtin};

const REQUESTS: u64 = 2_000_000;
const DEPTH: u64 = 32;
const VOLUME: Bytes = Bytes::from_gib(8);

fn cluster(hosts: usize) -> Cluster {
    let profile = |name| builtin::find(name).expect("built in");
    let host = |index: usize| HostSpec {
        name: format!("h{index}"),
        fault_domain: None,
        groups: vec![DiskGroupSpec::new(
            "g",
            profile("dc1500m-960"),
            vec![profile("dc500m-1920"), profile("dc500m-1920")],
        )],
    };
    let spec = ClusterSpec {
        hosts: (0..hosts).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(30),
            bytes_per_second: 3_125_000_000,
            divisor: 1,
        },
        settings: ClusterSettings::default(),
    };
    Cluster::new(spec, RootSeed(1)).expect("valid")
}

/// A request by number: a cheap hash stands for randomness, so that only the model is measured.
fn request(number: u64, read_tenths: u64) -> Request {
    let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let offset = (hash >> 32) % (VOLUME.0 / 8192) * 8192;
    if hash % 10 < read_tenths { Request::read(offset, 8192) } else { Request::write(offset, 8192) }
}

fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn measure(name: &str, hosts: usize, policy: Policy, read_tenths: u64) {
    let name = format!("{name:22} {:3} % reads", 10 * read_tenths);
    if !std::env::args().skip(1).all(|word| name.contains(&word)) {
        return;
    }
    let mut cluster = cluster(hosts);
    let volume = cluster.create_volume(Nanos::ZERO, "v", VOLUME, policy).expect("room");
    cluster.assume_written(volume).expect("room");
    let begin = processor_seconds();
    let (mut now, mut sent, mut done, mut digest) = (Nanos::ZERO, 0, 0, 0_u64);
    let mut events = Vec::new();
    while sent < DEPTH {
        cluster.submit(now, volume, &request(sent, read_tenths), RequestId(sent));
        sent += 1;
    }
    while done < REQUESTS {
        now = cluster.advance_to_event(Nanos(u64::MAX), &mut events);
        for event in events.drain(..) {
            if let ClusterEvent::Finished(finished) = event {
                done += 1;
                digest = (digest ^ finished.request.0 ^ finished.at.0.rotate_left(32))
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15);
                cluster.submit(now, volume, &request(sent, read_tenths), RequestId(sent));
                sent += 1;
            }
        }
    }
    let rate = REQUESTS as f64 / (processor_seconds() - begin);
    println!(
        "{name}: {:.2} million I/Os per processor second, virtual time {now}, digest {digest:016x}",
        rate / 1e6
    );
}

fn main() {
    let plain = Policy { failures_to_tolerate: 0, checksum: Checksum::On, ..Policy::DEFAULT };
    let parity = Policy { method: Method::ErasureCoding, ..Policy::DEFAULT };
    for read_tenths in [10, 7, 0] {
        measure("no redundancy, 1 host", 1, plain, read_tenths);
        measure("no redundancy, 4 hosts", 4, plain, read_tenths);
        measure("RAID-1, 4 hosts", 4, Policy::DEFAULT, read_tenths);
        measure("RAID-5, 4 hosts", 4, parity, read_tenths);
    }
}
