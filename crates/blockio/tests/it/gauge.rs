//! What is seen of a load from outside while it goes on.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use underlay_blockio::load::{LoadJob, LoadSpec, OnError, Operation, run_load, write_all};
use underlay_blockio::{IoGauge, Target};
use underlay_core::{Bytes, Dilation, RootSeed};
use underlay_study::find_io_profile;
use underlay_workload::block::{Concurrency, Content, ContentSpec, Pace};

const SIZE: Bytes = Bytes::from_mib(16);

/// The load is ended by what the gauge shows, long before its own end; everything that was done is in it, and no flush is a write.
#[test]
fn requests_are_counted_as_they_complete() {
    let candidates = [PathBuf::from(env!("CARGO_TARGET_TMPDIR")), std::env::temp_dir()];
    let opened = candidates.iter().find_map(|parent| {
        let folder = tempfile::tempdir_in(parent).ok()?;
        let target = Target::create(&folder.path().join("file"), SIZE).ok()?;
        Some((folder, target))
    });
    let Some((_folder, target)) = opened else { return };
    let content = Content::new(ContentSpec::NOISE, RootSeed(1)).expect("content");
    write_all(&target, SIZE, &content, 0, None, &mut |_| true).expect("space");
    let workload = find_io_profile("sql-80-20").expect("built in").merged();
    let gauge = IoGauge::default();
    let spec = LoadSpec {
        targets: vec![&target],
        verifiers: &[],
        jobs: vec![LoadJob {
            target: 0,
            name: "all".to_string(),
            workload: &workload,
            working_set: SIZE,
            concurrency: Concurrency { threads: 1, queue_depth: 4 },
            pace: Pace::CLOSED,
        }],
        content,
        dilation: Dilation::NONE,
        warm_up: Duration::ZERO,
        measure: Duration::from_secs(3600),
        seed: RootSeed(2),
        workers_max: 1,
        on_error: OnError::Continue,
        spin: Duration::ZERO,
        gauge: Some(&gauge),
    };
    let seen = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let mut stop = || seen(&gauge.reads) > 0 && seen(&gauge.writes) > 0;
    let result = run_load(&spec, &mut |_| {}, &mut stop).expect("a load");
    assert!(result.interrupted, "{result:?}");
    let (read, write) = (
        result.total(|kind| kind.operation == Operation::Read),
        result.total(|kind| kind.operation == Operation::Write),
    );
    assert_eq!((seen(&gauge.reads), seen(&gauge.read_bytes)), (read.completed, read.bytes));
    assert_eq!((seen(&gauge.writes), seen(&gauge.write_bytes)), (write.completed, write.bytes));
    assert_eq!(seen(&gauge.errors), 0);
}
