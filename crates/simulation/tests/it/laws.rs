//! What any simulation must satisfy: conservation, Little's law, agreement with the closed loop of the model,
//! reproducibility; and what open loops must show that closed ones hide.

use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::closed_loop::{self, ClosedLoop, Pattern};
use underlay_model::{Device, Store, StoreDevice, StoreVolume, builtin};
use underlay_simulation::{
    ClientSpec, CurveSpec, RunSpec, SimulationResult, StoreTarget, rate_curve, simulate,
};
use underlay_workload::arrivals::Arrivals;
use underlay_workload::block::{BlockWorkload, Concurrency, Pace};

const WORKING_SET: Bytes = Bytes::from_gib(4);

fn target(profile: &str, volumes: usize) -> StoreTarget {
    let device = StoreDevice {
        name: "device".to_string(),
        profile: builtin::find(profile).expect("built in"),
    };
    let volume = StoreVolume { device: 0, capacity: WORKING_SET };
    StoreTarget::new(Store::new(&[device], &vec![volume; volumes], RootSeed(1)))
}

fn workload(name: &str) -> BlockWorkload {
    underlay_study::find_io_profile(name).expect("built in").merged()
}

fn client(workload: &BlockWorkload, volume: usize, queue_depth: u32, pace: Pace) -> ClientSpec<'_> {
    ClientSpec {
        name: "client".to_string(),
        volume,
        workload,
        working_set: WORKING_SET,
        concurrency: Concurrency { threads: 2, queue_depth },
        pace,
    }
}

fn span(warm_up_ms: u64, measure_ms: u64) -> RunSpec {
    RunSpec {
        begin: Nanos::ZERO,
        warm_up: Nanos::from_millis(warm_up_ms),
        measure: Nanos::from_millis(measure_ms),
        requests_max: u64::MAX,
    }
}

fn alone(
    profile: &str,
    name: &str,
    queue_depth: u32,
    pace: Pace,
    spec: RunSpec,
) -> SimulationResult {
    let workload = workload(name);
    let clients = [client(&workload, 0, queue_depth, pace)];
    simulate(&mut target(profile, 1), &clients, &spec, RootSeed(2))
}

#[test]
fn a_closed_client_agrees_with_the_closed_loop_of_the_model() {
    for (profile, queue_depth) in [("dc1500m-960", 16), ("5200eco-1920", 8), ("hdd-7200", 4)] {
        let seconds = if profile == "hdd-7200" { 100 } else { 1 };
        let spec = span(0, seconds * 1000);
        let simulated = alone(profile, "4k-random-read", queue_depth / 2, Pace::CLOSED, spec);
        let profile = builtin::find(profile).expect("built in");
        let mut device = Device::with_extent(&profile, WORKING_SET, RootSeed(1), "device");
        let spec = ClosedLoop {
            queue_depth,
            block_bytes: 4096,
            read_share: 1.0,
            pattern: Pattern::Random,
            extent: WORKING_SET,
            warm_up: 0,
            measured: 60_000,
        };
        let direct = closed_loop::run(&mut device, &spec, RootSeed(3));
        let near =
            |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.03, "{}: {a} {b}", profile.name);
        near(simulated.iops(), direct.iops());
        let total = simulated.total().response;
        near(total.mean().expect("reads"), direct.read.mean().expect("reads"));
        let p99 = |histogram: &underlay_core::Histogram| histogram.quantile(0.99).expect("reads");
        near(p99(&total) as f64, p99(&direct.read) as f64);
    }
}

#[test]
fn littles_law_holds() {
    for queue_depth in [1, 8, 64] {
        let result =
            alone("dc1500m-960", "4k-random-70-30", queue_depth, Pace::CLOSED, span(100, 1000));
        let in_flight = result.iops() * result.mean_response_ns().expect("requests") / 1e9;
        let expected = f64::from(2 * queue_depth);
        assert!((in_flight / expected - 1.0).abs() < 0.02, "{in_flight} of {expected}");
    }
}

#[test]
fn an_open_loop_delivers_its_rate_and_counts_waiting() {
    let open = |rate_per_second| Pace::Open { rate_per_second, arrivals: Arrivals::Poisson };
    let light = alone("5200eco-1920", "4k-random-read", 16, open(20_000.0), span(200, 2000));
    assert!((light.iops() / 20_000.0 - 1.0).abs() < 0.02, "{}", light.iops());
    assert!(light.backlog_at_end < 50);

    // Twice what the drive can do: throughput stays, the backlog and the response time grow.
    let heavy = alone("5200eco-1920", "4k-random-read", 16, open(200_000.0), span(200, 2000));
    assert!((60_000.0..96_000.0).contains(&heavy.iops()), "{}", heavy.iops());
    assert!(heavy.backlog_at_end > 150_000, "{}", heavy.backlog_at_end);
    let total = heavy.total();
    let (response, service) = (total.response.mean(), total.service.mean());
    assert!(response > service.map(|mean| 100.0 * mean), "{response:?} {service:?}");
}

#[test]
fn think_time_slows_a_closed_client_down() {
    let think = Pace::Closed { think: Nanos::from_millis(1) };
    let result = alone("null", "4k-random-read", 1, think, span(10, 1000));
    assert!((result.iops() - 2_000.0).abs() < 10.0, "{}", result.iops());
}

#[test]
fn neighbours_share_a_device() {
    let (read, write) = (workload("4k-random-read"), workload("128k-sequential-write"));
    let mut neighbour = client(&write, 1, 8, Pace::CLOSED);
    neighbour.name = "neighbour".to_string();
    let mut both = target("5200eco-1920", 2);
    let clients = [client(&read, 0, 1, Pace::CLOSED), neighbour];
    let disturbed = simulate(&mut both, &clients, &span(100, 1000), RootSeed(2));
    let quiet = alone("5200eco-1920", "4k-random-read", 1, Pace::CLOSED, span(100, 1000));
    let reads = |result: &SimulationResult| result.streams[0].read.response.count();
    assert!(3 * reads(&disturbed) < reads(&quiet), "{} {}", reads(&disturbed), reads(&quiet));
    assert_eq!(disturbed.streams.len(), 2);
    assert!(disturbed.streams[1].write.bytes > 0 && disturbed.streams[1].read.bytes == 0);
}

#[test]
fn a_curve_finds_the_knee() {
    let workload = workload("4k-random-read");
    let clients = [client(&workload, 0, 64, Pace::CLOSED)];
    let spec = CurveSpec {
        percents: vec![10, 50, 90, 120],
        warm_up: Nanos::from_millis(100),
        measure: Nanos::from_millis(500),
        requests_max: 100_000,
        requests_max_closed: 100_000,
    };
    let curve = rate_curve(|| target("dc1500m-960", 1), &clients, &spec, RootSeed(4));
    let (peak, _) = curve.peak_as_published();
    assert!((380_000.0..445_000.0).contains(&peak), "{peak}");
    let saturated: Vec<bool> = curve.points.iter().map(|point| point.is_saturated()).collect();
    assert_eq!(saturated, [false, false, false, true]);
    let service = |i: usize| curve.points[i].result.total().service.mean().expect("requests");
    assert!(service(0) < service(1) && service(1) < service(2));
    let below = curve.rate_below_as_published(0.15).expect("light points are fast");
    assert!((150_000.0..410_000.0).contains(&below), "{below}");
    assert_eq!(curve.rate_below_as_published(0.01), None);
}

/// An overloaded point serves each request as soon as the others, so its service time is fine; nobody who asks gets it.
#[test]
fn what_a_curve_keeps_is_read_by_response_from_points_that_are_not_overloaded() {
    let workload = workload("4k-random-read");
    let clients = [client(&workload, 0, 16, Pace::CLOSED)];
    let spec = CurveSpec {
        percents: vec![50, 90, 110, 120],
        warm_up: Nanos::from_millis(100),
        measure: Nanos::from_millis(500),
        requests_max: 100_000,
        requests_max_closed: 100_000,
    };
    let curve = rate_curve(|| target("dc1500m-960", 1), &clients, &spec, RootSeed(4));
    let overloaded = &curve.points[3];
    assert!(overloaded.is_saturated());
    assert!(overloaded.response_ms().expect("requests") > 5.0, "{overloaded:?}");
    let by_service = curve.rate_below_as_published(1.0).expect("all are");
    let kept = curve.highest_kept_below(1.0).expect("light points are fast");
    assert!(kept.offered.percent == 90 && kept.result.iops() < by_service, "{by_service}");
    let highest = curve.highest_kept().expect("light points are kept");
    assert_eq!(highest.offered.percent, 90);
    assert!(curve.highest_kept_below(0.01).is_none());
}

/// At a tenth of what a disk can do, a hundred arrivals are sometimes eighty: that is chance, and no overload.
#[test]
fn few_arrivals_are_no_overload() {
    let workload = workload("4k-random-read");
    for seed in 0..20 {
        let pace = Pace::Open { rate_per_second: 20.0, arrivals: Arrivals::Poisson };
        let clients = [client(&workload, 0, 16, pace)];
        let result =
            simulate(&mut target("hdd-7200", 1), &clients, &span(500, 10_000), RootSeed(seed));
        assert!(!result.is_overloaded(), "seed {seed}: {} arrived", result.arrived);
        assert!((100..320).contains(&result.arrived), "{}", result.arrived);
    }
    let pace = Pace::Open { rate_per_second: 300.0, arrivals: Arrivals::Poisson };
    assert!(alone("hdd-7200", "4k-random-read", 16, pace, span(500, 10_000)).is_overloaded());
}

#[test]
fn a_window_says_whether_it_was_steady() {
    let steady = alone("dc1500m-960", "4k-random-read", 8, Pace::CLOSED, span(100, 200));
    assert!(steady.steadiness().is_some_and(|state| state.is_steady()), "{steady:?}");
    let mean = steady.rounds_per_second.iter().sum::<f64>() / 5.0;
    assert!((mean / steady.iops() - 1.0).abs() < 0.01, "{mean} {}", steady.iops());
    let per_place = steady.total().response.count() as f64 / 16.0;
    assert_eq!(steady.round_trips(), per_place);
}

#[test]
fn a_target_can_be_used_again() {
    let workload = workload("4k-random-70-30");
    let mut target = target("dc1500m-960", 1);
    let clients = [client(&workload, 0, 8, Pace::CLOSED)];
    let first = simulate(&mut target, &clients, &span(0, 100), RootSeed(2));
    let again = RunSpec { begin: first.end, ..span(0, 100) };
    let second = simulate(&mut target, &clients, &again, RootSeed(2));
    assert!(second.measured_from >= first.end);
    assert!((second.iops() / first.iops() - 1.0).abs() < 0.2);
}

fn any_pace() -> impl Strategy<Value = Pace> {
    prop_oneof![
        Just(Pace::CLOSED),
        (0u64..500).prop_map(|us| Pace::Closed { think: Nanos::from_micros(us) }),
        (100.0f64..50_000.0).prop_map(|rate_per_second| Pace::Open {
            rate_per_second,
            arrivals: Arrivals::Poisson
        }),
    ]
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(48))]

    /// The seconds add up to the measured window, every byte is counted once, and equal arguments give
    /// equal results.
    #[test]
    fn everything_is_conserved_and_repeats(
        pace in any_pace(), depth in 1u32..20, seed: u64,
        profile in prop_oneof![Just("dc1500m-960"), Just("5200eco-1920"), Just("p4800x-375")],
        name in prop_oneof![Just("4k-random-70-30"), Just("oracle"), Just("64k-sequential-90-10")],
    ) {
        let run = || {
            let workload = workload(name);
            let clients = [client(&workload, 0, depth, pace)];
            simulate(&mut target(profile, 1), &clients, &span(0, 150), RootSeed(seed))
        };
        let result = run();
        let totals = result.totals();
        for (index, total) in totals.iter().enumerate() {
            let count: u64 = result.seconds.iter().map(|second| second.count[index]).sum();
            let bytes: u64 = result.seconds.iter().map(|second| second.bytes[index]).sum();
            prop_assert_eq!(count, total.response.count());
            prop_assert_eq!(bytes, total.bytes);
            prop_assert!(total.service.sum() <= total.response.sum());
            prop_assert!(total.queue.sum() <= total.service.sum());
        }
        prop_assert!(result.failed == 0 && !result.swamped);
        prop_assert!(result.end >= result.measured_until);
        prop_assert_eq!(result, run());
    }
}

#[test]
fn a_rate_beyond_all_measure_ends_with_its_backlog() {
    let pace = Pace::Open { rate_per_second: 1e9, arrivals: Arrivals::Poisson };
    let result = alone("hdd-7200", "4k-random-read", 4, pace, span(500, 10_000));
    assert!(result.swamped && result.backlog_at_end > 1 << 20, "{}", result.backlog_at_end);
    assert_eq!(result.total().response.count(), 0, "it ended in the warm-up");
    // Swamped in the measured window: what was measured until then stays.
    let pace = Pace::Open { rate_per_second: 1e6, arrivals: Arrivals::Poisson };
    let result = alone("hdd-7200", "4k-random-read", 4, pace, span(500, 10_000));
    assert!(result.swamped && result.total().response.count() > 0);
    assert!(result.duration() < Nanos::from_secs(1), "{}", result.duration());
}

#[test]
#[should_panic(expected = "a closed loop on a target without delay")]
fn a_closed_loop_without_delay_is_no_endless_one() {
    alone("null", "4k-random-read", 4, Pace::CLOSED, span(0, 1000));
}
