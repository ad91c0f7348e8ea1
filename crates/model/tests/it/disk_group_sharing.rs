//! How virtual machines and resynchronisation share a disk group, in virtual time.

use crate::common::{Load, Outcome, Plan, Stream, group_spec, run};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::closed_loop::{ClosedLoop, Pattern};
use underlay_model::{
    Device, DeviceProfile, DiskGroup, DiskGroupSpec, IoClass, Policy, SchedulerSpec, builtin,
};

const SEED: RootSeed = RootSeed(67);

fn one_disk(capacity: &str, policy: Policy) -> DiskGroupSpec {
    let mut spec = group_spec("dc1500m-960", &[capacity]);
    spec.scheduler = SchedulerSpec { policy, ..SchedulerSpec::DEFAULT };
    spec
}

fn measure(spec: DiskGroupSpec, streams: &[Stream], plan: Plan) -> Outcome {
    run(&mut DiskGroup::new(spec, SEED), streams, plan, SEED)
}

/// Eight outstanding MiB of resynchronisation reads, more than any device serves at once.
fn backlogged_resync() -> Stream {
    Stream::random(IoClass::Resync, 1.0, 1 << 20, Load::Closed(8)).within((1 << 40, 64 << 30))
}

/// The most that the device itself gives at this queue depth, bytes per second.
fn raw_rate(profile: &DeviceProfile, queue_depth: u32, block_bytes: u32) -> f64 {
    let spec = ClosedLoop {
        queue_depth,
        block_bytes,
        read_share: 1.0,
        pattern: Pattern::Random,
        extent: Bytes::from_gib(64),
        warm_up: 1_000,
        measured: 20_000,
    };
    underlay_model::closed_loop::run(&mut Device::new(profile, SEED, "raw"), &spec, SEED)
        .bytes_per_second()
}

/// The promise: at 60 % load with a backlogged resynchronisation on one SATA device, 99 % of the reads of virtual
/// machines take at most 0.5 ms; in order of arrival and with pieces of 1 MiB it is tens of milliseconds.
#[test]
fn reads_stay_fast_beside_a_backlogged_resync() {
    for sata in ["5200eco-1920", "dc500m-1920"] {
        let profile = builtin::find(sata).expect("built in");
        let reads = Load::Open(0.6 * raw_rate(&profile, 128, 8192) / 8192.0);
        let vm = Stream::random(IoClass::Vm, 1.0, 8192, reads);
        let streams = [vm, backlogged_resync()];
        let plan = Plan::millis(200, 2_200);
        let adaptive = measure(one_disk(sata, Policy::ADAPTIVE), &streams, plan);
        let p99 = adaptive.quantile_us(0, 0.99);
        assert!(p99 <= 500.0, "{sata}: {p99} us");
        // Work conservation: resynchronisation has the rest of the device.
        let used = adaptive.bytes_per_second(0) + adaptive.bytes_per_second(1);
        let whole = raw_rate(&profile, 32, 64 << 10);
        assert!(used > 0.95 * whole, "{sata}: {:.0} of {:.0} MB/s", used / 1e6, whole / 1e6);
        let unscheduled = measure(one_disk(sata, Policy::None), &streams, plan);
        let p99 = unscheduled.quantile_us(0, 0.99);
        assert!(p99 > 10_000.0, "{sata}, unscheduled: {p99} us");
    }
}

#[test]
fn saturating_reads_leave_resync_its_floor() {
    for (capacity, block_bytes) in [
        ("5200eco-1920", 8192),
        ("5200eco-1920", 4096),
        ("dc500m-1920", 65_536),
        ("dc1500m-960", 8192),
        ("dc1500m-960", 131_072),
    ] {
        let vm = Stream::random(IoClass::Vm, 1.0, block_bytes, Load::Closed(128));
        let spec = one_disk(capacity, Policy::ADAPTIVE);
        let both = measure(spec, &[vm, backlogged_resync()], Plan::millis(100, 1_100));
        let (vm, resync) = (both.bytes_per_second(0), both.bytes_per_second(1));
        let share = resync / (vm + resync);
        assert!((0.20..=0.25).contains(&share), "{capacity}, {block_bytes}: {share:.3}");
    }
}

/// Writes of both classes meet in the write buffer: once it is full, its room is what they share.
#[test]
fn saturating_writes_leave_resync_its_floor() {
    let mut spec = one_disk("5200eco-1920", Policy::ADAPTIVE);
    spec.write_buffer.usable = Bytes::from_mib(256);
    let vm = Stream::random(IoClass::Vm, 0.0, 8192, Load::Closed(64));
    let resync = Stream::random(IoClass::Resync, 0.0, 64 << 10, Load::Closed(16))
        .within((1 << 40, 64 << 30));
    let both = measure(spec, &[vm, resync], Plan::millis(5_000, 9_000));
    let (vm, resync) = (both.bytes_per_second(0), both.bytes_per_second(1));
    let share = resync / (vm + resync);
    assert!((0.19..=0.26).contains(&share), "{share:.3} of {:.1} MB/s", (vm + resync) / 1e6);
}

#[test]
fn alone_each_class_has_the_whole_device() {
    for capacity in ["5200eco-1920", "dc500m-1920", "dc1500m-960", "hdd-7200"] {
        let profile = builtin::find(capacity).expect("built in");
        for (class, depth, block_bytes) in [
            (IoClass::Vm, 32, 8192),
            (IoClass::Vm, 256, 4096),
            (IoClass::Resync, 16, 65_536),
            (IoClass::Metadata, 32, 4096),
            (IoClass::Namespace, 32, 4096),
        ] {
            let stream = Stream::random(class, 1.0, block_bytes, Load::Closed(depth));
            let plan = match capacity {
                "hdd-7200" => Plan::millis(1_000, 31_000),
                _ => Plan::millis(50, 550),
            };
            let spec = one_disk(capacity, Policy::ADAPTIVE);
            let alone = measure(spec, &[stream], plan).bytes_per_second(0);
            // A disk knows 32 commands: with more the drive itself could choose no better.
            let depth = if capacity == "hdd-7200" { depth.min(32) } else { depth };
            let raw = raw_rate(&profile, depth, block_bytes);
            assert!(
                alone >= 0.95 * raw,
                "{capacity}, {class:?} at {depth}: {:.1} of {:.1} MB/s",
                alone / 1e6,
                raw / 1e6
            );
        }
    }
}

/// Large pieces are what hurts: the same policy with slices of 1 MiB is several times slower in the tail.
#[test]
fn the_slice_decides_the_tail() {
    let p99 = |slice: Bytes| {
        let mut spec = one_disk("5200eco-1920", Policy::ADAPTIVE);
        spec.scheduler.slice = slice;
        let vm = Stream::random(IoClass::Vm, 1.0, 8192, Load::Open(30_000.0));
        measure(spec, &[vm, backlogged_resync()], Plan::millis(100, 1_100)).quantile_us(0, 0.99)
    };
    let (small, medium, large) =
        (p99(Bytes::from_kib(64)), p99(Bytes::from_kib(256)), p99(Bytes::from_mib(1)));
    assert!(small * 1.5 < medium && medium * 1.5 < large, "{small} {medium} {large}");
}

#[test]
fn a_static_limit_holds_and_costs_bandwidth() {
    let limit = Policy::StaticLimit { bytes_per_second: 50_000_000 };
    let resync = Stream::random(IoClass::Resync, 1.0, 64 << 10, Load::Closed(8));
    let rate = measure(one_disk("5200eco-1920", limit), &[resync], Plan::millis(200, 2_200))
        .bytes_per_second(0);
    assert!((rate / 50e6 - 1.0).abs() < 0.02, "{rate}");
}

/// The automatic throttle of 6.6.1: it goes down while virtual machines are slow and up again when they are not.
#[test]
fn the_latency_watermark_follows_the_latency() {
    let policy = Policy::LatencyWatermark {
        low: Nanos::from_micros(300),
        high: Nanos::from_millis(1),
        interval: Nanos::from_millis(100),
        step_bytes_per_second: 20_000_000,
        floor_bytes_per_second: 10_000_000,
    };
    let second = Nanos::from_secs;
    let vm =
        Stream::random(IoClass::Vm, 1.0, 8192, Load::Closed(192)).between(second(3), second(6));
    let resync = Stream::random(IoClass::Resync, 1.0, 256 << 10, Load::Closed(4))
        .within((1 << 40, 64 << 30));
    let plan = Plan { warm_up: Nanos::ZERO, end: second(9), interval: second(1) };
    let outcome = measure(one_disk("5200eco-1920", policy), &[vm, resync], plan);
    let line: Vec<f64> =
        outcome.streams[1].time_line.iter().map(|bytes| *bytes as f64 / 1e6).collect();
    assert!(line[2] > 3.0 * line[5], "before and while virtual machines are slow: {line:?}");
    assert!(line[8] > 2.0 * line[5], "recovers: {line:?}");
}

/// The four stages of VMware's experiment on one time line: resynchronisation alone; virtual machines join and mostly
/// read; then mostly write, both saturating; they leave.
#[test]
fn the_four_stages_are_visible() {
    let mut spec = group_spec("pm1725a-1600", &["dc500m-1920", "dc500m-1920"]);
    spec.write_buffer.usable = Bytes::from_mib(512);
    let second = Nanos::from_secs;
    let reading =
        Stream::random(IoClass::Vm, 1.0, 8192, Load::Closed(128)).between(second(2), second(5));
    let writing =
        Stream::random(IoClass::Vm, 0.1, 8192, Load::Closed(128)).between(second(5), second(11));
    // A rebalance within the group: as much is written as read.
    let resync = Stream::random(IoClass::Resync, 0.5, 64 << 10, Load::Closed(32))
        .within((1 << 40, 64 << 30));
    let plan = Plan { warm_up: Nanos::ZERO, end: second(14), interval: second(1) };
    let streams = [reading, writing, resync];
    let outcome = measure(spec, &streams, plan);
    let rate = |stream: usize, seconds: std::ops::Range<usize>| {
        let line = &outcome.streams[stream].time_line;
        let count = seconds.len() as f64;
        seconds.map(|s| line.get(s).copied().unwrap_or(0) as f64).sum::<f64>() / count / 1e6
    };
    // In the first second the empty buffer takes more than the capacity devices do.
    let alone = rate(2, 1..2);
    let beside_reads = rate(2, 3..5);
    let beside_writes = rate(2, 8..11);
    let after = rate(2, 12..14);
    let reads = rate(0, 3..5);
    assert!(beside_reads < 0.5 * alone, "joins: {beside_reads} of {alone} MB/s");
    // Half of its bytes are reads, which meet those of the virtual machines on the capacity devices.
    let share = beside_reads / (beside_reads + 2.0 * reads);
    assert!((0.20..=0.25).contains(&share), "{share}");
    // Both write as much as the elevator allows, and resynchronisation reads no more than it writes. It gets a little less than
    // its floor of the writes, as its reads wait for devices that destage all the time.
    let writes = rate(1, 8..11) * 0.9;
    let share = beside_writes / 2.0 / (beside_writes / 2.0 + writes);
    assert!((0.15..=0.25).contains(&share), "{share}: {beside_writes} beside {writes} MB/s");
    assert!(beside_writes < 0.5 * alone, "stays held back: {beside_writes} of {alone} MB/s");
    assert!(after > 0.9 * alone, "takes the bandwidth back: {after} of {alone} MB/s");
    assert!(rate(1, 8..11) > 10.0, "writes go on: {} MB/s", rate(1, 8..11));
}
