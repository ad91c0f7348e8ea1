//! What an open loop says of the requests that were due: those of the measured time, as every other figure.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use underlay_blockio::Target;
use underlay_blockio::load::{LoadJob, LoadResult, LoadSpec, OnError, run_load, write_all};
use underlay_core::{Bytes, Dilation, RootSeed};
use underlay_study::find_io_profile;
use underlay_workload::arrivals::Arrivals;
use underlay_workload::block::{Concurrency, Content, ContentSpec, Pace};

const SIZE: Bytes = Bytes::from_mib(16);
const WARM_UP: Duration = Duration::from_millis(600);
const MEASURE: Duration = Duration::from_millis(400);

/// Offers requests by a clock, with one in flight; none where no file takes direct I/O.
fn load(rate_per_second: f64, dilation: Dilation) -> Option<LoadResult> {
    let candidates = [PathBuf::from(env!("CARGO_TARGET_TMPDIR")), std::env::temp_dir()];
    let (_folder, target) = candidates.iter().find_map(|parent| {
        let folder = tempfile::tempdir_in(parent).ok()?;
        let target = Target::create(&folder.path().join("file"), SIZE).ok()?;
        Some((folder, target))
    })?;
    let content = Content::new(ContentSpec::NOISE, RootSeed(1)).expect("content");
    write_all(&target, SIZE, &content, 0, None, &mut |_| true).expect("space");
    let workload = find_io_profile("4k-random-read").expect("built in").merged();
    let spec = LoadSpec {
        targets: vec![&target],
        verifiers: &[],
        jobs: vec![LoadJob {
            target: 0,
            name: "all".to_string(),
            workload: &workload,
            working_set: SIZE,
            concurrency: Concurrency { threads: 1, queue_depth: 1 },
            pace: Pace::Open { rate_per_second, arrivals: Arrivals::Uniform },
        }],
        content,
        dilation,
        warm_up: WARM_UP,
        measure: MEASURE,
        seed: RootSeed(2),
        workers_max: 1,
        on_error: OnError::Stop,
        spin: Duration::ZERO,
        gauge: None,
    };
    Some(run_load(&spec, &mut |_| {}, &mut || false).expect("a load"))
}

fn close_to(found: u64, expected: f64) -> bool {
    (found as f64 / expected - 1.0).abs() < 0.02
}

#[test]
fn requests_of_the_warm_up_are_not_among_those_that_were_due() {
    let Some(slow) = load(1000.0, Dilation::NONE) else {
        underlay_host::skip!("no file system here takes direct I/O")
    };
    assert!(close_to(slow.due, 1000.0 * MEASURE.as_secs_f64()), "{} were due", slow.due);
    // More than any device does one by one: those of the warm-up are all that is started.
    let rate = 5e6;
    let fast = load(rate, Dilation::NONE).expect("as before");
    assert!(close_to(fast.due, rate * MEASURE.as_secs_f64()), "{} were due", fast.due);
    assert_eq!(fast.undelivered, fast.due);
    // The first of those has waited since the warm-up was over.
    let waited = fast.oldest_undelivered.0 as f64 / 1e9;
    assert!((waited / MEASURE.as_secs_f64() - 1.0).abs() < 0.02, "{waited} s");
}

/// Times and rates are in design time, and the host is told in its own: a request takes as much less of design time.
#[test]
fn a_dilated_load_takes_longer_and_says_the_same() {
    let dilation = Dilation::new(4).expect("in range");
    let begun = Instant::now();
    let Some(load) = load(1000.0, dilation) else {
        underlay_host::skip!("no file system here takes direct I/O")
    };
    assert!(begun.elapsed() >= dilation.wall_duration(WARM_UP + MEASURE));
    assert!(close_to(load.due, 1000.0 * MEASURE.as_secs_f64()), "{} were due", load.due);
    assert_eq!(load.duration, MEASURE.into());
    // What a worker costs this host is not divided.
    assert!(load.cost.busiest_permille < 1000, "{:?}", load.cost);
}
