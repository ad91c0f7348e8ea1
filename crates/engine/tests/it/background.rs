//! Background work on the engine model: every byte of a copy once, limits that are kept, users who
//! feel it while it lasts.

use crate::scenario::{device, store, tpcc};
use underlay_core::{Arrivals, Bytes, Nanos, RootSeed};
use underlay_engine::{
    BackgroundPart, BackgroundResult, BackgroundSpec, CopySpec, EngineRun, LoadSpec, Scenario,
    Simulation, VolumeUse, VolumeWork, Window,
};
use underlay_model::target::StoreTarget;
use underlay_workload::block::{
    BlockStream, BlockWorkload, Concurrency, FlushPolicy, IoJob, Locality, Pace, Region, Runs,
    SizeShare,
};

const SECOND: Nanos = Nanos::from_secs(1);
const BLOCK: u32 = 1 << 20;

fn part(volume: usize, offset: Bytes, length: Bytes) -> VolumeUse {
    VolumeUse { volume, offset, length }
}

/// From the data volume, from its beginning, to the end of the log volume.
fn copy(length: Bytes) -> CopySpec {
    CopySpec {
        from: part(0, Bytes::ZERO, length),
        to: Some(part(1, Bytes::from_mib(512), Bytes::from_mib(64))),
        block_bytes: BLOCK,
        queue_depth: 4,
        bytes_per_second: None,
    }
}

fn work(work: VolumeWork) -> BackgroundSpec {
    let cpu_per_io = Nanos::from_micros(10);
    BackgroundSpec { name: "work".to_string(), host: 0, cpu_per_io, work }
}

/// Users of a database of 200 MB, who miss their caches, and the work.
fn beside(users: u32, spec: BackgroundSpec) -> Scenario {
    Scenario { background: vec![spec], ..tpcc(2, users, 4, Bytes::from_mib(24)) }
}

fn simulation(scenario: &Scenario, profile: &str) -> Simulation<StoreTarget> {
    let target = store(&device(profile), 1);
    let mut simulation = Simulation::new(scenario, target, RootSeed(3)).expect("valid");
    simulation.warm_caches(20_000);
    simulation
}

fn seconds(simulation: &mut Simulation<StoreTarget>, length: u64) -> EngineRun {
    let measure = Nanos::from_secs(length);
    simulation.run(&Window { warm_up: Nanos::ZERO, measure })
}

fn of_work(run: &EngineRun) -> &BackgroundResult {
    &run.background[0]
}

/// Little's law of each kind of requests, but for those in flight at the ends.
fn check_little(part: &BackgroundPart, in_flight: u64) {
    for io in part.all() {
        let difference = io.station.present_ns.abs_diff(io.station.stay_ns);
        let longest = u128::from(io.response.max().unwrap_or(0));
        assert!(difference <= u128::from(2 * in_flight) * longest, "{:?}", io.station);
        assert_eq!(io.response.count(), io.station.departures);
    }
}

#[test]
fn a_copy_reads_every_byte_once_writes_as_many_blocks_and_ends() {
    let length = Bytes(Bytes::from_mib(300).0 + 8192);
    let mut simulation =
        simulation(&beside(1, work(VolumeWork::Copy(copy(length)))), "dc500m-1920");
    simulation.begin_background(0, SECOND, None);
    let before = seconds(&mut simulation, 1);
    assert_eq!((of_work(&before).requests(), of_work(&before).ended), (0, None));
    let during = seconds(&mut simulation, 9);
    let done = of_work(&during);
    assert_eq!((done.began, done.is_complete), (Some(SECOND), true), "{done:?}");
    assert!(done.ended.is_some_and(|ended| ended > SECOND && ended < Nanos::from_secs(10)));
    let [from, to] = &done.parts[..] else { panic!("{done:?}") };
    assert_eq!((from.volume, to.volume), (0, 1));
    assert_eq!((from.read.bytes, from.write.bytes), (length.0, 0));
    // The last block is written whole.
    assert_eq!((to.read.bytes, to.write.bytes), (0, 301 << 20));
    assert_eq!((from.read.station.departures, to.write.station.departures), (301, 301));
    assert!([from, to].iter().all(|part| part.read.station.present() == 0));
    let after = seconds(&mut simulation, 1);
    assert_eq!((of_work(&after).requests(), of_work(&after).ended), (0, done.ended));
}

#[test]
fn a_copy_has_no_more_in_flight_than_its_depth_and_is_no_faster_than_its_rate() {
    let present = |queue_depth, bytes_per_second| {
        let copy = CopySpec { queue_depth, bytes_per_second, ..copy(Bytes::from_gib(6)) };
        let mut simulation = simulation(&beside(1, work(VolumeWork::Copy(copy))), "dc500m-1920");
        simulation.begin_background(0, Nanos::ZERO, None);
        let run = seconds(&mut simulation, 5);
        let [from, to] = &of_work(&run).parts[..] else { panic!("{:?}", run.background) };
        [from, to].into_iter().for_each(|part| check_little(part, u64::from(queue_depth)));
        let busy = |part: &BackgroundPart| {
            part.read.station.mean_present(run.length())
                + part.write.station.mean_present(run.length())
        };
        (busy(from) + busy(to), from.read.bytes)
    };
    // As fast as it goes, each place always has a request in flight.
    for depth in [1, 4, 16] {
        let (busy, _) = present(depth, None);
        assert!((busy / f64::from(depth) - 1.0).abs() < 1e-6, "{busy} of {depth}");
    }
    let (busy, bytes) = present(4, Some(20_000_000));
    // The first block is due at once, the next one when the first was paid for.
    let paid = 100_000_000..=100_000_000 + u64::from(BLOCK);
    assert!(paid.contains(&bytes), "{bytes} in 5 s");
    assert!(busy < 1.0, "{busy}");
}

#[test]
fn users_feel_a_copy_on_their_device_only_while_it_lasts() {
    let copy = VolumeWork::Copy(CopySpec { queue_depth: 16, ..copy(Bytes::from_gib(8)) });
    let run = |begins: bool| {
        let mut simulation = simulation(&beside(16, work(copy.clone())), "5200eco-1920");
        seconds(&mut simulation, 5);
        if begins {
            simulation.begin_background(0, Nanos::ZERO, Some(Nanos::from_secs(4)));
        }
        [4, 4].map(|length| seconds(&mut simulation, length))
    };
    let headlines = |runs: &[EngineRun; 2]| [runs[0].headline(0), runs[1].headline(0)];
    let (quiet, disturbed) = (run(false), run(true));
    let ([alone, later], [beside, afterwards]) = (headlines(&quiet), headlines(&disturbed));
    assert!(beside < 0.8 * alone, "{beside} with the copy, {alone} without");
    assert!(afterwards > 0.9 * later, "{afterwards} after the copy, {later} without");
    let stopped = of_work(&disturbed[1]);
    let ended = stopped.ended.expect("stopped");
    // What was in flight is waited for.
    assert!(ended >= Nanos::from_secs(9) && ended < Nanos::from_secs(10), "{ended}");
    assert!(!stopped.is_complete && of_work(&quiet[1]).began.is_none());
    assert_eq!(run(true), disturbed, "equal seeds, equal results");
}

/// Random requests of 4 KiB, of which so many are reads.
fn random(read_share: f64, concurrency: Concurrency, pace: Pace) -> IoJob {
    durable(read_share, concurrency, pace, FlushPolicy::Cached)
}

/// The same, whose writes are to be durable.
fn durable(
    read_share: f64,
    concurrency: Concurrency,
    pace: Pace,
    durability: FlushPolicy,
) -> IoJob {
    let stream = BlockStream {
        name: "all".to_string(),
        weight: 1.0,
        read_share,
        sizes: vec![SizeShare { bytes: 4096, weight: 1.0 }],
        random_share: 1.0,
        locality: Locality::Uniform,
        runs: Runs::PerThread,
        region: Region::WHOLE,
        durability,
    };
    let workload = BlockWorkload { name: "random".to_string(), streams: vec![stream] };
    IoJob { workload, concurrency, pace }
}

#[test]
fn block_loads_keep_their_depth_or_their_rate() {
    let place = part(0, Bytes::from_gib(7), Bytes::from_mib(256));
    let concurrency = Concurrency { threads: 2, queue_depth: 4 };
    let load = |job| LoadSpec { job, place };
    let run = |pace| {
        let loads = vec![load(random(0.7, concurrency, pace))];
        let mut simulation = simulation(&beside(1, work(VolumeWork::Loads(loads))), "p4500-2000");
        simulation.begin_background(0, Nanos::ZERO, Some(Nanos::from_secs(5)));
        let run = seconds(&mut simulation, 5);
        let done = of_work(&run);
        let [part] = &done.parts[..] else { panic!("{done:?}") };
        check_little(part, u64::from(concurrency.in_flight()));
        let requests = done.requests() as f64;
        let reads = part.read.station.departures as f64 / requests;
        assert!((reads - 0.7).abs() < 0.02, "{reads}");
        assert_eq!(part.read.bytes, 4096 * part.read.station.departures);
        let [read, write] =
            [&part.read, &part.write].map(|io| io.station.mean_present(run.length()));
        (requests / 5.0, read + write)
    };
    let (fastest, busy) = run(Pace::CLOSED);
    assert!((busy - 8.0).abs() < 1e-6, "{busy} in flight");
    let (paused, _) = run(Pace::Closed { think: Nanos::from_millis(4) });
    assert!(paused > 1_500.0 && paused < 2_000.0, "8 places, each after 4 ms: {paused}");
    let arrivals = Arrivals::Poisson;
    let (rate, busy) = run(Pace::Open { rate_per_second: 3_000.0, arrivals });
    assert!((rate / 3_000.0 - 1.0).abs() < 0.05 && busy < 8.0, "{rate}, {busy} in flight");
    // More than the device can do waits, with all places busy.
    let (most, busy) = run(Pace::Open { rate_per_second: 2.0 * fastest, arrivals });
    assert!((most / fastest - 1.0).abs() < 0.05 && busy > 7.9, "{most} of {fastest}, {busy}");
}

#[test]
fn writes_are_flushed_as_often_as_their_stream_says() {
    let place = part(0, Bytes::from_gib(7), Bytes::from_mib(256));
    let concurrency = Concurrency { threads: 2, queue_depth: 1 };
    let run = |durability| {
        let job = durable(0.5, concurrency, Pace::CLOSED, durability);
        let loads = vec![LoadSpec { job, place }];
        let mut simulation = simulation(&beside(1, work(VolumeWork::Loads(loads))), "dc500m-1920");
        simulation.begin_background(0, Nanos::ZERO, None);
        let run = seconds(&mut simulation, 2);
        let part = &of_work(&run).parts[0];
        check_little(part, u64::from(concurrency.in_flight()));
        let [_, writes, flushes] = part.all().map(|io| io.station.departures);
        (writes, flushes)
    };
    let (writes, flushes) = run(FlushPolicy::FlushEvery(3));
    // Each thread may have one to come.
    assert!(writes > 100 && (writes / 3).abs_diff(flushes) <= 2, "{writes}, {flushes}");
    for durability in [FlushPolicy::Cached, FlushPolicy::WriteThrough] {
        assert_eq!(run(durability).1, 0);
    }
}

#[test]
fn work_that_cannot_be_is_refused() {
    let said = |work: BackgroundSpec| -> String {
        let problems = beside(1, work).problems();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(said(work(VolumeWork::Copy(copy(Bytes::from_gib(1))))), "");
    let large = CopySpec { block_bytes: 128 << 20, queue_depth: 0, ..copy(Bytes::from_gib(1)) };
    let elsewhere = BackgroundSpec { host: 3, ..work(VolumeWork::Copy(large)) };
    let refused = said(elsewhere);
    for what in ["host 3 does not exist", "queue depth is 0", "block size is"] {
        assert!(refused.contains(what), "{refused}");
    }
    let concurrency = Concurrency { threads: 1, queue_depth: 1 };
    let tiny = part(0, Bytes::ZERO, Bytes(512));
    let load = LoadSpec { job: random(1.0, concurrency, Pace::CLOSED), place: tiny };
    assert!(said(work(VolumeWork::Loads(vec![load]))).contains("background work `work`: "));
}
