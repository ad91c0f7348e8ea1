//! The emulator in virtual time against the simulation: the same requests to the same cluster take the same time.
//!
//! The back end is driven as the server drives it, by a clock that jumps, behind a way that takes its time and is
//! compensated. What differs here would differ on every host, however quiet: the rules by which requests are given to the
//! model and answers leave. What the host itself does to them is measured by `examples/cluster_fidelity.rs`, not here.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;

use super::cluster::back_end::ClusterBackEnd;
use super::cluster::plane::ClusterPlane;
use crate::cluster_config::PolicyConfig;
use crate::config::VolumeConfig;
use underlay_core::{Bytes, Dilation, Nanos, RootSeed};
use underlay_export::path_cost::PathCompensation;
use underlay_export::{Asked, BackEnd, BlockRequest, Clock, Exchange, Force};
use underlay_model::cluster::{
    ClusterSettings, ClusterSpec, HostSpec, Method, NetworkSpec, Policy,
};
use underlay_model::{DeviceProfile, DiskGroupSpec, Operation, Request, builtin};
use underlay_simulation::{
    ClientSpec, ClusterTarget, RunSpec, SimulationResult, Target, TargetFinished, TargetOutcome,
    simulate,
};
use underlay_workload::block::{
    BlockStream, BlockWorkload, Concurrency, FlushPolicy, Locality, Pace, Region, Runs, SizeShare,
};

const SEED: RootSeed = RootSeed(1);
const VOLUME: Bytes = Bytes::from_mib(48);
const FILE: Bytes = Bytes::from_mib(32);
/// Small enough that destaging begins while the file is filled, and never ends under writes.
const BUFFER: Bytes = Bytes::from_mib(16);
/// So large that nothing is destaged.
const LARGE_BUFFER: Bytes = Bytes::from_mib(512);
const REQUESTS: u64 = 10_000;
/// Between two workloads; write buffers settle meanwhile.
const PAUSE: Nanos = Nanos::from_millis(200);

/// Share of reads, requests in flight.
const WORKLOADS: [(f64, u32); 5] = [(1.0, 8), (0.0, 1), (0.0, 8), (0.7, 1), (0.7, 8)];

/// The server with a cluster, as far as timing goes, and the way to it.
struct Emulated {
    back_end: ClusterBackEnd<u32>,
    exchange: Exchange<u32>,
    /// There and back together, for reads and for everything else.
    ways: [Nanos; 2],
    coming: VecDeque<(Nanos, u32, Request)>,
    leaving: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl Emulated {
    fn new(spec: ClusterSpec, policy: Policy, ways: [Nanos; 2], directory: &Path) -> Emulated {
        let plane = ClusterPlane::open(spec, SEED, directory, None).expect("a valid cluster");
        let mut back_end = ClusterBackEnd::new(plane);
        let mut exchange = Exchange::new(Clock::start(Dilation::NONE));
        let [reads_ns, writes_ns] = ways.map(|way| way.0);
        exchange.path.compensate(PathCompensation { reads_ns, writes_ns });
        let volume = VolumeConfig {
            name: "volume-1".to_string(),
            capacity_bytes: VOLUME.0,
            device: 0,
            backing_file: std::path::PathBuf::new(),
            policy: Some(PolicyConfig::from(policy)),
            host: Some(0),
        };
        back_end.add_volume(Nanos::ZERO, &volume).expect("room");
        let (coming, leaving) = (VecDeque::new(), BinaryHeap::new());
        Emulated { back_end, exchange, ways, coming, leaving }
    }

    /// One turn of the server: answers that are due, then what has arrived.
    fn turn(&mut self, now: Nanos) {
        self.back_end.take_due(now, &mut self.exchange);
        for answer in std::mem::take(&mut self.exchange.answers) {
            assert!(!answer.failed);
            let there = Nanos(self.ways[0].0 / 2);
            let back = self.ways[usize::from(answer.operation != Operation::Read)] - there;
            let slot = answer.client.expect("no discards are sent");
            self.leaving.push(Reverse((now + back, slot)));
            self.exchange.buffers.give(answer.buffer);
        }
        while let Some((arrived, slot, request)) = self.coming.pop_front_if(|(at, ..)| *at <= now) {
            let data = vec![1; request.length_bytes as usize];
            let offset = request.offset_bytes;
            let asked = match request.operation {
                Operation::Read => Asked::Read { offset, length: request.length_bytes },
                _ => Asked::Write { offset, data: &data, force: Force::Nothing },
            };
            let request = BlockRequest { client: slot, volume: 0, arrived, asked };
            self.back_end.submit(request, &mut self.exchange).expect("it has power");
            assert!(self.exchange.answers.is_empty(), "answered when it is due");
        }
    }

    /// The way there is the same for all.
    fn there(&self) -> Nanos {
        Nanos(self.ways[0].0 / 2)
    }

    fn next_turn(&self) -> Option<Nanos> {
        let coming = self.coming.front().map(|(at, ..)| *at);
        [coming, self.back_end.next_answer(&self.exchange.path)].into_iter().flatten().min()
    }
}

impl Target for Emulated {
    fn submit(&mut self, now: Nanos, _volume: usize, request: &Request, slot: u32) {
        self.coming.push_back((now + self.there(), slot, *request));
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        let leaving = self.leaving.peek().map(|Reverse((at, _))| *at);
        [self.next_turn(), leaving].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Nanos, finished: &mut Vec<TargetFinished>) {
        while let Some(next) = self.next_turn().filter(|next| *next <= now) {
            self.turn(next);
        }
        while self.leaving.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Some(Reverse((at, slot))) = self.leaving.pop() else { break };
            let (queue, outcome) = (Nanos::ZERO, TargetOutcome::Ok);
            finished.push(TargetFinished { slot, at, queue, outcome });
        }
    }
}

/// A part of each SATA drive, with the network of the fidelity benchmark.
fn sata(hosts: usize, divisor: u32) -> ClusterSpec {
    let part = |name| DeviceProfile { divisor, ..builtin::find(name).expect("built in") };
    cluster(hosts, &part("s3610-400"), &part("5200eco-1920"), BUFFER)
}

/// Disks throughout.
fn disks(hosts: usize, buffer: Bytes) -> ClusterSpec {
    let disk = builtin::find("hdd-7200").expect("built in");
    cluster(hosts, &disk, &disk, buffer)
}

fn cluster(
    hosts: usize,
    cache: &DeviceProfile,
    capacity: &DeviceProfile,
    buffer: Bytes,
) -> ClusterSpec {
    let host = |index: usize| {
        let capacity = vec![capacity.clone()];
        let mut group = DiskGroupSpec::new(&format!("g{index}"), cache.clone(), capacity);
        group.write_buffer.usable = buffer;
        HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
    };
    ClusterSpec {
        hosts: (0..hosts).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(50),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: ClusterSettings::default(),
    }
}

fn workload(read_share: f64, bytes: u32, random_share: f64) -> BlockWorkload {
    let stream = BlockStream {
        name: "data".to_string(),
        weight: 1.0,
        read_share,
        sizes: vec![SizeShare { bytes, weight: 1.0 }],
        random_share,
        locality: Locality::Uniform,
        runs: Runs::PerThread,
        region: Region::WHOLE,
        durability: FlushPolicy::Cached,
    };
    BlockWorkload { name: "load".to_string(), streams: vec![stream] }
}

fn run<T: Target>(
    target: &mut T,
    workload: &BlockWorkload,
    queue_depth: u32,
    begin: Nanos,
    requests_max: u64,
) -> SimulationResult {
    let client = ClientSpec {
        name: "client".to_string(),
        volume: 0,
        workload,
        working_set: FILE,
        concurrency: Concurrency { threads: 1, queue_depth },
        pace: Pace::CLOSED,
    };
    let measure = Nanos::from_secs(3_600);
    let spec = RunSpec { begin, warm_up: Nanos::ZERO, measure, requests_max };
    simulate(target, &[client], &spec, SEED)
}

/// The file is filled, then one workload after the other: mean, p50, p99 in ns of reads and writes, and the rate.
fn measure<T: Target>(target: &mut T) -> Vec<(String, f64)> {
    let filled = run(target, &workload(0.0, 1 << 20, 0.0), 4, Nanos::ZERO, FILE.0 >> 20);
    let mut end = filled.end;
    let mut figures = Vec::new();
    for (read_share, queue_depth) in WORKLOADS {
        let load = workload(read_share, 4096, 1.0);
        let result = run(target, &load, queue_depth, end + PAUSE, REQUESTS);
        end = result.end;
        let mut figure = |name: &str, value: f64| {
            let reads = 100.0 * read_share;
            figures.push((format!("{reads} % reads, depth {queue_depth}: {name}"), value));
        };
        figure("rate", result.iops());
        for (side, latencies) in ["read", "write"].into_iter().zip(result.totals()) {
            let histogram = &latencies.response;
            if let Some(mean) = histogram.mean() {
                figure(&format!("{side} mean"), mean);
                for quantile in [0.5, 0.99] {
                    let value = histogram.quantile(quantile).expect("it has a mean") as f64;
                    figure(&format!("{side} {quantile}"), value);
                }
            }
        }
    }
    figures
}

/// Compares every figure; what may differ by how much depends on its name.
fn compare(spec: &ClusterSpec, policy: Policy, ways: [Nanos; 2], allowed: impl Fn(&str) -> f64) {
    let mut simulated = ClusterTarget::new(spec, policy, &[VOLUME], SEED).expect("room");
    let directory = tempfile::tempdir().expect("a directory");
    let mut emulated = Emulated::new(spec.clone(), policy, ways, directory.path());
    let (simulated, emulated) = (measure(&mut simulated), measure(&mut emulated));
    assert_eq!(simulated.len(), emulated.len());
    let mut list = String::new();
    let mut differs = false;
    for ((name, expected), (_, seen)) in simulated.iter().zip(&emulated) {
        let error = seen / expected - 1.0;
        let too_much = error.abs() > allowed(name);
        differs |= too_much;
        let mark = if too_much { " <" } else { "" };
        let percent = 100.0 * error;
        list += &format!(
            "\n{name}: {expected:.0} simulated, {seen:.0} emulated, {percent:+.2} %{mark}"
        );
    }
    assert!(!differs, "{} hosts, {policy:?}:{list}", spec.hosts.len());
}

const MIRROR: Policy = Policy::DEFAULT;
const PARITY: Policy = Policy { method: Method::ErasureCoding, ..Policy::DEFAULT };

/// The designs of the fidelity benchmark.
fn designs() -> [(ClusterSpec, Policy); 5] {
    let [first, second, third] = sata_designs();
    [first, second, third, (disks(3, BUFFER), MIRROR), (disks(4, BUFFER), PARITY)]
}

fn sata_designs() -> [(ClusterSpec, Policy); 3] {
    [(sata(3, 8), MIRROR), (sata(4, 8), PARITY), (sata(3, 1), MIRROR)]
}

#[test]
fn without_a_way_the_emulator_is_the_simulation() {
    for (spec, policy) in designs() {
        compare(&spec, policy, [Nanos::ZERO; 2], |_| 1e-9);
    }
}

/// A phase of a request that begins earlier meets other requests and programs in the devices, so tails differ as those of two
/// seeds do, and medians a little, which may lie between reads that cross the network and others; rates and means do not.
fn allowed_with_a_way(name: &str) -> f64 {
    match name.rsplit(' ').next() {
        Some("0.99") => 0.20,
        Some("0.5") => 0.08,
        _ => 0.03,
    }
}

#[test]
fn a_compensated_way_changes_nothing() {
    for (spec, policy) in sata_designs() {
        let way = Nanos::from_micros(60);
        compare(&spec, policy, [way; 2], allowed_with_a_way);
    }
}

/// Nor does it where a moment too late costs a whole turn of a disk: who writes one log after the other on a platter. Where arms
/// are goes through everything, so more than with flash is left to chance.
#[test]
fn a_compensated_way_loses_no_turn_of_a_disk() {
    for (spec, policy) in [(disks(3, LARGE_BUFFER), MIRROR), (disks(4, LARGE_BUFFER), PARITY)] {
        for way in [30, 60, 120].map(Nanos::from_micros) {
            compare(&spec, policy, [way; 2], |name| 2.0 * allowed_with_a_way(name));
        }
    }
}

/// The bytes of a write move when it takes effect, right before it is answered: that makes its way longer than a read's.
#[test]
fn a_longer_way_of_writes_is_not_made_up_for_at_the_cost_of_reads() {
    let ways = [40, 100].map(Nanos::from_micros);
    for (spec, policy) in sata_designs() {
        compare(&spec, policy, ways, allowed_with_a_way);
    }
}
