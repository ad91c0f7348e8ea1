//! Real files: what is refused, that nothing is written without leave, and a whole calibration of a small file.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use underlay_blockio::{
    BlockIoError, Existing, Job, MeasureSpec, Phase, Target, TargetKind, fill, measure, run,
};
use underlay_core::{Bytes, RootSeed};
use underlay_model::calibration::{DeviceIdentity, calibrate};
use underlay_study::find_io_profile;

const SIZE: Bytes = Bytes::from_mib(64);

/// A folder on a file system that takes direct I/O, or none where there is no such thing.
fn folder() -> Option<tempfile::TempDir> {
    let candidates = [PathBuf::from(env!("CARGO_TARGET_TMPDIR")), std::env::temp_dir()];
    candidates.iter().find_map(|parent| {
        let folder = tempfile::tempdir_in(parent).ok()?;
        let probe = Target::create(&folder.path().join("probe"), Bytes::from_mib(16));
        probe.is_ok().then_some(folder)
    })
}

fn spec() -> MeasureSpec {
    MeasureSpec {
        depths: vec![1, 8, 32],
        phase: Duration::from_millis(200),
        working_set: SIZE,
        seed: RootSeed(1),
    }
}

fn filled(path: &Path) -> Target {
    let target = Target::create(path, SIZE).expect("a new file");
    fill(&target, RootSeed(2), &mut |_| true).expect("space");
    // What other tests wrote is not to be written back meanwhile.
    rustix::fs::sync();
    target
}

fn ring_is_missing(error: &BlockIoError) -> bool {
    matches!(error, BlockIoError::NoRing { .. })
}

#[test]
fn a_real_file_is_calibrated() {
    let Some(folder) = folder() else {
        underlay_host::skip!("no file system here takes direct I/O");
    };
    let target = filled(&folder.path().join("data"));
    let mut phases = Vec::new();
    let measured = measure(&target, &spec(), &mut |phase| {
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
        true
    });
    let measured = match measured {
        Err(error) if ring_is_missing(&error) => underlay_host::skip!("{error}"),
        other => other.expect("a file can be measured"),
    };
    let expected = [
        Phase::Read(1),
        Phase::Read(8),
        Phase::Read(32),
        Phase::SequentialRead,
        Phase::SingleWrite,
        Phase::Burst,
        Phase::SequentialWrite,
        Phase::Sustained,
        Phase::Mixed,
    ];
    assert_eq!(phases, expected);
    let reads = &measured.measurements.reads;
    // Little's law on real time: requests in flight = rate x latency. A busy host loosens it at the edges.
    for point in reads {
        let in_flight = point.figures.iops * point.figures.mean_ns / 1e9;
        let expected = f64::from(point.queue_depth);
        assert!((0.5..1.3).contains(&(in_flight / expected)), "{in_flight} of {expected}");
    }
    let identity = DeviceIdentity {
        name: "real-file".to_string(),
        description: "A file".to_string(),
        source: "A test.".to_string(),
        capacity: target.size(),
    };
    let calibration = calibrate(&measured.measurements, &identity, RootSeed(3)).expect("measured");
    assert_eq!(calibration.profile.problems(), []);
    assert_eq!(calibration.points.len(), measured.measurements.points().len());
    println!("{:.1} %", calibration.mean_error_percent());
}

#[test]
fn reading_changes_nothing() {
    let Some(folder) = folder() else {
        underlay_host::skip!("no file system here takes direct I/O");
    };
    let path = folder.path().join("data");
    drop(filled(&path));
    let before = fs::read(&path).expect("readable");
    let target = Target::open(&path).expect("stored fully");
    assert!(!target.is_writable() && target.kind() == TargetKind::File);
    let spec = MeasureSpec { depths: vec![1, 8], phase: Duration::from_millis(50), ..spec() };
    match measure(&target, &spec, &mut |_| true) {
        Err(error) if ring_is_missing(&error) => underlay_host::skip!("{error}"),
        other => assert!(other.expect("readable").measurements.writes.is_none()),
    }
    let workload = find_io_profile("4k-random-write").expect("built in").merged();
    let job = Job {
        workload: &workload,
        working_set: SIZE,
        queue_depth: 4,
        warm_up: Duration::ZERO,
        measure: Duration::from_millis(20),
        interval: Duration::from_millis(10),
        seed: RootSeed(1),
    };
    let error = run(&target, &job, &mut || false).expect_err("opened for reading");
    assert!(matches!(error, BlockIoError::ReadOnly { .. }), "{error}");
    assert!(matches!(
        fill(&target, RootSeed(1), &mut |_| true),
        Err(BlockIoError::ReadOnly { .. })
    ));
    assert_eq!(fs::read(&path).expect("readable"), before, "not a byte changed");
}

#[test]
fn what_would_mislead_or_harm_is_refused() {
    let Some(folder) = folder() else {
        underlay_host::skip!("no file system here takes direct I/O");
    };
    let path = folder.path().join("sparse");
    let file = fs::File::create(&path).expect("a new file");
    file.set_len(SIZE.0).expect("a hole");
    file.write_all_at(&[1; 4096], 0).expect("one block");
    assert!(matches!(Target::open(&path), Err(BlockIoError::Sparse { .. })));
    assert!(matches!(Target::open(folder.path()), Err(BlockIoError::WrongKind { .. })));
    let small = folder.path().join("small");
    fs::File::create(&small).and_then(|mut file| file.write_all(&[1; 8192])).expect("a small file");
    assert!(matches!(Target::open(&small), Err(BlockIoError::TooSmall { .. })));
    let exists = Target::create(&path, SIZE).expect_err("the name is taken");
    assert!(matches!(exists, BlockIoError::Target { action: "create", .. }), "{exists}");
    // Leave to overwrite a device is no leave to overwrite a file.
    let error = Target::open_for_overwriting(&path, Existing::OverwriteDevice);
    let said = error.expect_err("a file").to_string();
    assert!(said.ends_with("is a regular file, not a block device"), "{said}");
    assert!(Target::open_for_overwriting(&path, Existing::OverwriteFile).is_ok());
}

#[test]
fn a_stop_is_heard_at_once() {
    let Some(folder) = folder() else {
        underlay_host::skip!("no file system here takes direct I/O");
    };
    let target = filled(&folder.path().join("data"));
    let mut asked = 0;
    let error = measure(&target, &spec(), &mut |_| {
        asked += 1;
        asked < 20
    });
    match error {
        Err(error) if ring_is_missing(&error) => underlay_host::skip!("{error}"),
        other => assert!(matches!(other, Err(BlockIoError::Interrupted)), "{other:?}"),
    }
}
