//! Deduplication and compression of bytes that were really written, on real files, without a server around them.
//!
//! What is expected follows from how the data was made: so many different blocks of noise, so many of text, each so often.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::reduction::Space;
use rand::Rng;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{
    Checksum, ClusterSettings, ClusterSpec, HostSpec, NetworkSpec, Policy,
};
use underlay_model::{DiskGroupSpec, Reduction, ReductionCosts, Request, builtin};

use super::in_flight::InFlight;
use super::plane::ClusterPlane;

const BLOCK: usize = 4096;
const RUN_BLOCKS: usize = 16;

fn spec(reduction: Reduction) -> ClusterSpec {
    let device = |name: &str, mib: u64| {
        let mut profile = builtin::find(name).unwrap();
        profile.capacity = Bytes::from_mib(mib);
        profile
    };
    let host = |index: usize| {
        let mut group =
            DiskGroupSpec::new("g", device("dc1500m-960", 512), vec![device("dc500m-1920", 2048)]);
        group.write_buffer.usable = Bytes::from_mib(1);
        group.reduction = reduction;
        HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
    };
    ClusterSpec {
        // Two replicas and a witness: each of two groups has all of a volume.
        hosts: (0..3).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(20),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: ClusterSettings::default(),
    }
}

/// Block number `index` of its kind.
fn noise(index: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    RootSeed(index).stream("noise", 0).fill_bytes(&mut bytes);
    bytes
}

fn text(index: u64) -> Vec<u8> {
    let line = format!("line {index} of a text that repeats itself as texts do\n");
    line.bytes().cycle().take(BLOCK).collect()
}

struct Bench {
    plane: ClusterPlane<()>,
    directory: tempfile::TempDir,
    now: Nanos,
    checksum: Checksum,
}

impl Bench {
    fn new(checksum: Checksum) -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let plane = Bench::open(directory.path(), checksum);
        Bench { plane, directory, now: Nanos::ZERO, checksum }
    }

    fn open(directory: &Path, checksum: Checksum) -> ClusterPlane<()> {
        let spec = spec(Reduction::DedupeCompress(ReductionCosts::DEFAULT));
        let memory = directory.join("cluster.json");
        let mut plane = ClusterPlane::open(spec, RootSeed(1), directory, Some(&memory)).unwrap();
        let policy = Policy { checksum, ..Policy::DEFAULT };
        plane.add_volume(Nanos::ZERO, "data", 256 << 20, policy).unwrap();
        plane
    }

    fn request(&mut self, request: &Request, buffer: Vec<u8>) {
        let bytes = request.length_bytes;
        let in_flight = InFlight::new((), 0, self.now, 0..bytes as usize);
        let id = self.plane.submit(request, buffer, in_flight, Nanos::ZERO);
        let done = self.plane.complete_now(id).expect("nothing keeps it");
        assert!(!done.failed);
    }

    /// Writes blocks one after the other from a block of the volume on.
    fn write(&mut self, first: usize, blocks: &[Vec<u8>]) {
        for (run, blocks) in blocks.chunks(RUN_BLOCKS).enumerate() {
            let bytes = blocks.concat();
            let offset = ((first + run * RUN_BLOCKS) * BLOCK) as u64;
            let request = Request::write(offset, bytes.len() as u32);
            self.request(&request, bytes);
        }
    }

    fn discard(&mut self, first: usize, blocks: usize) {
        let request = Request::discard((first * BLOCK) as u64, (blocks * BLOCK) as u32);
        self.request(&request, Vec::new());
    }

    /// Ends, in order or not, and begins again: what was in a write buffer is there, and all is counted.
    fn restart(self, in_order: bool) -> Bench {
        let Bench { mut plane, directory, checksum, .. } = self;
        if in_order {
            plane.conclude();
        }
        drop(plane);
        let plane = Bench::open(directory.path(), checksum);
        Bench { plane, directory, now: Nanos::ZERO, checksum }
    }

    /// Lets time pass until everything that is not in a write buffer is counted.
    fn settle(&mut self) -> Space {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            self.now += Nanos::from_millis(30);
            self.plane.advance(self.now, &mut Vec::new());
            let reduced = self.plane.reduced().expect("the groups reduce");
            let groups: Vec<_> = self.plane.cluster.groups().map(|(group, ..)| group).collect();
            let buffered: u64 = groups
                .into_iter()
                .map(|group| {
                    let counters = self.plane.cluster.group_counters(group).unwrap();
                    counters.write_buffer.account.buffered_bytes / BLOCK as u64
                })
                .sum();
            if reduced.recalling == 0 && reduced.uncounted_blocks <= buffered {
                return reduced.total();
            }
            assert!(Instant::now() < deadline, "{reduced:?}, {buffered} blocks are buffered");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn space(logical: u64, noise: u64, text: u64) -> Space {
    // Two groups have everything.
    Space {
        logical_bytes: 2 * logical * 4096,
        unique_bytes: 2 * (noise + text) * 4096,
        stored_bytes: 2 * (noise * 4096 + text * 2048),
        compressed_blocks: 2 * text,
    }
}

/// 1000 blocks of noise, 600 of text, and all of it a second time; zeros between.
fn fill(bench: &mut Bench) {
    let noise: Vec<_> = (0..1000).map(noise).collect();
    let text: Vec<_> = (0..600).map(text).collect();
    bench.write(0, &noise);
    bench.write(2000, &text);
    bench.write(4000, &noise);
    bench.write(6000, &text);
    bench.write(8000, &vec![vec![0; BLOCK]; 500]);
}

#[test]
fn ratios_are_those_of_the_data() {
    for (checksum, in_order) in [(Checksum::On, true), (Checksum::On, false), (Checksum::Off, true)]
    {
        let mut bench = Bench::new(checksum);
        fill(&mut bench);
        // What is still in the write buffer is not stored yet: some of what was written, not more.
        let before = bench.settle();
        let all = space(3200, 1000, 600);
        assert!(before.logical_bytes > all.logical_bytes / 2, "{before:?}");
        assert!(before.logical_bytes <= all.logical_bytes, "{before:?}");
        bench = bench.restart(in_order);
        assert_eq!(bench.settle(), all, "{checksum:?}, in order: {in_order}");
        assert_eq!(all.dedupe_ratio(), 2.0);
        assert_eq!(all.compression_ratio(), 1600.0 / 1300.0);
        // Overwritten by text that is there: a copy of 100 blocks of noise is gone, and then the other.
        let known: Vec<_> = (0..100).map(text).collect();
        bench.write(0, &known);
        bench = bench.restart(in_order);
        assert_eq!(bench.settle(), space(3200, 1000, 600));
        bench.write(4000, &known);
        // Trimmed: one copy of 50 blocks of noise, both of 30 of text.
        bench.discard(200, 50);
        bench.discard(2570, 30);
        bench.discard(6570, 30);
        bench = bench.restart(in_order);
        assert_eq!(bench.settle(), space(3200 - 110, 900, 570), "{checksum:?}, {in_order}");
        // A volume that is removed takes its blocks with it.
        bench.plane.remove_volume(bench.now, 0);
        let deadline = Instant::now() + Duration::from_secs(30);
        while bench.settle() != Space::default() {
            assert!(Instant::now() < deadline, "{:?}", bench.plane.reduced());
        }
    }
}

/// What is small stays in the write buffer, where nothing makes room for anything.
#[test]
fn what_is_never_destaged_is_counted_once_it_is_quiet() {
    let mut bench = Bench::new(Checksum::On);
    let blocks: Vec<_> = (0..40).map(|index| noise(index % 20)).collect();
    bench.write(0, &blocks);
    let uncounted = |bench: &mut Bench| bench.plane.reduced().expect("it reduces").uncounted_blocks;
    bench.now += Nanos::from_millis(500);
    bench.plane.advance(bench.now, &mut Vec::new());
    assert_eq!(
        uncounted(&mut bench),
        80,
        "nothing makes room for anything, and it may change again"
    );
    // It wakes up for this alone, whoever else is there.
    let counted = |bench: &mut Bench, wanted: Space| {
        let deadline = Instant::now() + Duration::from_secs(30);
        while bench.plane.reduced().expect("it reduces").total() != wanted || uncounted(bench) > 0 {
            assert!(Instant::now() < deadline, "{:?}", bench.plane.reduced());
            if let Some(next) = bench.plane.next_wakeup() {
                bench.now = next.max(bench.now);
                bench.plane.advance(bench.now, &mut Vec::new());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    counted(&mut bench, space(40, 20, 0));
    // Counted again where it changes.
    let known: Vec<_> = (0..10).map(text).collect();
    bench.write(0, &known);
    counted(&mut bench, space(40, 20, 10));
    bench.write(20, &known);
    counted(&mut bench, space(40, 10, 10));
}

/// What the elevator writes follows from what the data turned out to be.
#[test]
fn the_model_learns_from_the_data() {
    let mut bench = Bench::new(Checksum::On);
    let stored_per_block = |bench: &mut Bench| {
        let counters = bench.plane.cluster.group_counters(underlay_model::cluster::GroupId(0));
        let reduction = counters.unwrap().reduction;
        (reduction.blocks, reduction.stored_bytes)
    };
    // One text again and again: hardly anything is stored.
    let same = vec![text(1); 2048];
    for round in 0..4 {
        bench.write(round * 2048, &same);
        bench.settle();
    }
    let before = stored_per_block(&mut bench);
    bench.write(10_000, &same);
    bench.settle();
    let after = stored_per_block(&mut bench);
    let (blocks, bytes) = (after.0 - before.0, after.1 - before.1);
    assert!(blocks > 500, "{blocks} blocks were destaged");
    let ratio = bytes as f64 / (blocks as f64 * 4096.0);
    assert!(ratio < 0.1, "the model stored {ratio:.2} of what was destaged");
}

/// A disk group that is added while the server runs counts from its first component on, whether others reduce or not.
#[test]
fn a_group_added_to_a_running_cluster_counts() {
    for before in [Reduction::Off, Reduction::DedupeCompress(ReductionCosts::DEFAULT)] {
        let directory = tempfile::tempdir().unwrap();
        let mut plane: ClusterPlane<()> =
            ClusterPlane::open(spec(before), RootSeed(1), directory.path(), None).unwrap();
        let mut group =
            spec(Reduction::DedupeCompress(ReductionCosts::DEFAULT)).hosts[0].groups[0].clone();
        group.name = "added".to_string();
        // The only one that is large enough.
        group.capacity[0].capacity = Bytes::from_gib(64);
        let host = plane.cluster.find_host("h0").unwrap();
        plane.add_group(Nanos::ZERO, host, &group).unwrap();
        let policy =
            Policy { failures_to_tolerate: 0, space_reservation_percent: 100, ..Policy::DEFAULT };
        plane.add_volume(Nanos::ZERO, "data", 3 << 30, policy).unwrap();
        let volume = plane.cluster.volume_status(plane.volume(0).unwrap()).unwrap();
        assert_eq!(volume.components[0].device.group.0, 3, "on the group that was added");
        let mut bench = Bench { plane, directory, now: Nanos::ZERO, checksum: Checksum::On };
        let blocks: Vec<_> = (0..1000).map(|index| text(index % 500)).collect();
        bench.write(0, &blocks);
        let space = bench.settle();
        // Some of it is still in the write buffer.
        assert!(space.logical_bytes > 500 * 4096, "{space:?}");
        assert_eq!(space.compressed_blocks * 4096, space.unique_bytes, "{space:?}");
        let names: Vec<String> =
            bench.plane.series().iter().map(|series| series.name.to_string()).collect();
        assert!(names.iter().any(|name| name.contains("h0/added.reduction")), "{names:?}");
        assert_eq!(bench.plane.performance(bench.now).len(), names.len());
    }
}

#[test]
fn nothing_is_counted_where_nothing_is_reduced() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(Reduction::Off);
    let mut plane: ClusterPlane<()> =
        ClusterPlane::open(spec, RootSeed(1), directory.path(), None).unwrap();
    assert_eq!(plane.reduced(), None);
    assert!(plane.series().iter().all(|series| !series.name.contains("reduction")));
    assert_eq!(plane.performance(Nanos::from_secs(1)).len(), plane.series().len());
}
