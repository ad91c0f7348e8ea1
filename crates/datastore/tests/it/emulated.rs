//! Whole emulated datastores: life, reports, death, and what is refused.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::raw_server::{RawServer, RawSpec, flash};
use crate::common::{Site, cannot_emulate, emulated, profile, volume};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use underlay_core::{Bytes, Evidence};
use underlay_datastore::{
    Datastore, DatastoreError, DatastoreSpec, Durability, Timing, VolumeRequest,
};
use underlay_host::{
    Cgroup, CgroupLimits, FileSystem, Process, ProcessExit, ProcessSpec, StateDir, clean,
    find_program, skip,
};
use underlay_model::Operation;

/// Names the state directory to a copy of this test program that is to be killed.
const HOLD_VARIABLE: &str = "UNDERLAY_TEST_HOLD";

fn write_synced(path: &Path, bytes: usize) {
    fs::write(path, vec![7; bytes]).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn two_volumes_on_one_device_work_and_report_and_vanish() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = emulated(profile("5200eco-1920"), Durability::Profile);
    let volumes = [volume("data", 64, FileSystem::Ext4), volume("wal", 320, FileSystem::Xfs)];
    let mut datastore = site.open(&spec, &volumes).unwrap();
    assert_eq!(datastore.evidence(), Evidence::Emulated);
    for volume in datastore.volumes() {
        write_synced(&volume.path.join("file"), 1 << 20);
        let block_device = volume.block_device.as_deref().unwrap();
        assert!(Path::new("/sys/block").join(block_device).exists());
    }
    datastore.health().unwrap();

    let (series, values) = (datastore.series(), datastore.counters().unwrap());
    let value =
        |name: &str| values[series.iter().position(|series| series.name == name).expect(name)];
    assert_eq!(series.len(), values.len());
    assert!(value("volume.wal.write.bytes") >= (1 << 20) as f64);
    assert!(value("volume.data.flush.ios") >= 1.0);
    assert!(value("device.device.buffer.drained") > 0.0);
    assert_eq!(value("server.errors"), 0.0);

    let latency = datastore.latency().unwrap();
    assert!(latency.iter().any(|l| l.volume == "wal" && l.operation == Operation::Write));
    assert!(
        datastore.latency().unwrap().iter().all(|l| l.latency.count() < 50),
        "since the last call"
    );
    let report = datastore.timing().unwrap().unwrap();
    assert!(report.modelled_mean.is_some() && report.block_mean.is_some(), "{report:?}");

    datastore.close().unwrap();
    assert_eq!(site.teardown.registered().len(), 1, "only the scratch directory is left");
}

/// `io.CLASS.ios`, `.modelled` and `.actual` of all classes: log, read, data-write.
fn io_times(datastore: &mut Box<dyn Datastore>) -> Vec<f64> {
    let (series, values) = (datastore.series(), datastore.counters().unwrap());
    let of_class = series.iter().zip(values).filter(|(series, _)| series.name.starts_with("io."));
    of_class.map(|(_, value)| value).collect()
}

#[test]
fn excess_is_counted_where_a_model_delays_and_nowhere_else() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    const COMMITS: usize = 40;
    let commit = |path: &Path| {
        for i in 0..COMMITS {
            write_synced(&path.join(format!("segment-{i}")), 8192);
        }
    };
    let volumes = [volume("data", 64, FileSystem::Ext4), volume("wal", 64, FileSystem::Ext4)];
    let site = Site::new();
    let spec = emulated(profile("5200eco-1920"), Durability::Profile);
    let mut slow = site.open(&spec, &volumes).unwrap();
    let wal = slow.volumes()[1].path.clone();
    let before = io_times(&mut slow);
    commit(&wal);
    let after = io_times(&mut slow);
    let [ios, modelled, actual] = [0, 1, 2].map(|column| after[column] - before[column]);
    assert!(ios >= COMMITS as f64, "{before:?} {after:?}");
    assert!(modelled > 0.0, "{before:?} {after:?}");
    // Answers leave early by what the path takes: the sum may fall short of the model's by a little.
    assert!(actual > 0.8 * modelled, "{before:?} {after:?}");

    // As in a null twin: the model is not asked.
    slow.set_timing(Timing::Off).unwrap();
    let before = io_times(&mut slow);
    commit(&wal);
    assert_eq!(io_times(&mut slow), before);
    slow.close().unwrap();

    let site = Site::new();
    let spec = emulated(profile("null"), Durability::Profile);
    let mut null = site.open(&spec, &volumes).unwrap();
    commit(&null.volumes()[1].path.clone());
    assert!(io_times(&mut null).iter().all(|value| *value == 0.0), "no device, no excess");
    null.close().unwrap();
}

/// Without calibration nothing is answered early: no read may be faster than the device.
#[test]
fn no_answer_comes_before_the_model_allows() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec =
        RawSpec { profile: flash(true), durability: "profile", capacity_bytes: 64 << 20, seed: 1 };
    let mut server = RawServer::start(&site, &spec);
    let file = server.open();
    let reads = 300;
    for i in 0..reads {
        let begin = Instant::now();
        file.read_exact_at(&mut [0; 4096], i * 7919 % 16_000 * 4096).unwrap();
        let took = begin.elapsed();
        assert!(took >= Duration::from_micros(60), "{took:?}");
    }
    // An answer is counted just after it was sent.
    let stat = loop {
        let stat = server.ask("stat".into())["stat"].take();
        if stat["volumes"][0]["operations"][0]["ios"] == reads {
            break stat;
        }
    };
    let read = &stat["volumes"][0]["operations"][0];
    assert_eq!((&read["ios"], &read["bytes"]), (&json!(reads), &json!(reads * 4096)));
    // Where the host took the server's CPU away between arrival and answer, nothing was left to be held back.
    let number = |field: &str| stat[field].as_u64().unwrap();
    assert_eq!(number("delayed") + number("host-limited"), reads, "{stat}");
    assert!(number("delayed") >= reads * 9 / 10, "{stat}");
    assert!(read["latency-ns"].as_u64().unwrap() >= reads * 60_000);
}

/// A file system that cannot be mounted after a power cut must not keep its block device attached.
#[test]
fn a_volume_beyond_recovery_leaves_nothing_behind() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = emulated(profile("null"), Durability::Profile);
    let mut datastore = site.open(&spec, &[volume("data", 64, FileSystem::Ext4)]).unwrap();
    let device = Path::new("/dev").join(datastore.volumes()[0].block_device.as_ref().unwrap());
    let raw = std::fs::OpenOptions::new().write(true).open(&device).unwrap();
    raw.write_all_at(&vec![0; 1 << 20], 0).unwrap();
    raw.sync_all().unwrap();
    drop(raw);
    datastore.power_cut().unwrap();
    assert!(datastore.power_on().is_err(), "there is no file system any more");
    let _ = datastore.close();
    site.teardown.unwind();
    let backing = std::fs::read_to_string(
        Path::new("/sys/block").join(device.file_name().unwrap()).join("loop/backing_file"),
    );
    // Another test may have taken the number since, for a file that is still there.
    let left = backing.is_ok_and(|file| !Path::new(file.trim()).exists());
    assert!(!left, "the loop device is still attached to the dead export");
}

#[test]
fn timing_can_be_switched_off_and_on() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = emulated(profile("hdd-7200"), Durability::Profile);
    let mut datastore = site.open(&spec, &[volume("data", 64, FileSystem::Ext4)]).unwrap();
    let path = datastore.volumes()[0].path.clone();
    let mut sync_20 = |timing| {
        datastore.set_timing(timing).unwrap();
        let begin = Instant::now();
        (0..20).for_each(|i| write_synced(&path.join(format!("{i}")), 4096));
        begin.elapsed()
    };
    let (off, modelled) = (sync_20(Timing::Off), sync_20(Timing::Modelled));
    // Each needs two or more accesses of some 10 ms.
    assert!(modelled > Duration::from_millis(200), "{modelled:?}");
    assert!(off < modelled / 3, "{off:?} against {modelled:?}");
    let report = datastore.timing().unwrap().unwrap();
    assert!(report.modelled.quantile(0.5).unwrap() > 1_000_000, "{report:?}");
    datastore.close().unwrap();
}

#[test]
fn the_death_of_the_server_is_named_and_leaves_nothing() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = emulated(profile("null"), Durability::Profile);
    let mut datastore = site.open(&spec, &[volume("data", 64, FileSystem::Ext4)]).unwrap();
    kill(datastore.processes()[0].1);
    let error = loop {
        match datastore.health() {
            Ok(()) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    let DatastoreError::ServerDied { exit, .. } = &error else { panic!("{error}") };
    assert_eq!(exit, "killed by signal 9");
    assert!(matches!(datastore.counters(), Err(DatastoreError::ServerDied { .. })));
    drop(datastore);
    assert_eq!(site.teardown.unwind(), []);
}

/// Clients that are in the middle of I/O get errors and go on; nothing hangs, nothing stays.
#[test]
fn killing_the_server_under_load_hangs_nobody() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = emulated(profile("dc500m-1920"), Durability::Profile);
    let datastore = site.open(&spec, &[volume("data", 64, FileSystem::Ext4)]).unwrap();
    let path = datastore.volumes()[0].path.clone();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let path = path.join(format!("{writer}"));
            std::thread::spawn(move || {
                let write = |bytes: usize| -> std::io::Result<()> {
                    fs::write(&path, vec![7; bytes])?;
                    File::open(&path)?.sync_all()
                };
                (1..).map(|i| write(i % 50 * 4096 + 1)).find_map(Result::err).expect("endless")
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(100));
    kill(datastore.processes()[0].1);
    for writer in writers {
        let error = writer.join().unwrap();
        assert!(error.raw_os_error().is_some(), "{error}");
    }
    drop(datastore);
    assert_eq!(site.teardown.unwind(), []);
}

/// A client that can only go on when its dirty pages are written back through the server: the server must
/// not wait for that write-back itself.
#[test]
fn write_back_under_memory_pressure_goes_on() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let limits = CgroupLimits { memory: Some(Bytes::from_mib(24)), cpus: None };
    let (cgroup, unenforced) = Cgroup::create(&site.teardown, "ud-pressure", &limits).unwrap();
    let Some(cgroup) = cgroup.filter(|_| unenforced.is_empty()) else {
        skip!("memory cannot be limited here: {unenforced:?}");
    };
    let spec = emulated(profile("dc500m-1920"), Durability::Profile);
    let datastore = site.open(&spec, &[volume("data", 320, FileSystem::Ext4)]).unwrap();
    let target = datastore.volumes()[0].path.join("file");
    let writer = Process::spawn(
        &site.teardown,
        &ProcessSpec {
            name: "writer",
            program: &find_program("dd").expect("coreutils are everywhere"),
            args: vec![
                "if=/dev/zero".into(),
                format!("of={}", target.display()).into(),
                "bs=1M".into(),
                "count=200".into(),
                "conv=fsync".into(),
            ],
            env: Vec::new(),
            run_as: None,
            cgroup: Some(&cgroup),
            working_dir: Path::new("/"),
            output: site.scratch.join("writer.log"),
        },
    )
    .unwrap();
    let exit = writer.wait_for(Duration::from_secs(60)).unwrap();
    let log = fs::read_to_string(site.scratch.join("writer.log")).unwrap();
    assert_eq!(exit, Some(ProcessExit::Code(0)), "{log}");
    assert_eq!(fs::metadata(&target).unwrap().len(), 200 << 20);
    datastore.close().unwrap();
}

#[test]
fn a_lost_mount_is_named() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = emulated(profile("null"), Durability::Profile);
    let mut datastore = site.open(&spec, &[volume("data", 64, FileSystem::Ext4)]).unwrap();
    let path = datastore.volumes()[0].path.clone();
    rustix::mount::unmount(&path, rustix::mount::UnmountFlags::empty()).unwrap();
    let error = datastore.health().unwrap_err();
    assert!(
        matches!(&error, DatastoreError::LostMount { volume, .. } if volume == "data"),
        "{error}"
    );
    datastore.close().unwrap();
}

#[test]
fn what_cannot_fit_is_refused_without_a_trace() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = emulated(profile("null"), Durability::Profile);
    let huge = VolumeRequest { capacity: Bytes(1 << 49), ..volume("data", 0, FileSystem::Ext4) };
    let error = site.open(&spec, &[huge]).err().expect("refused");
    assert!(matches!(error, DatastoreError::NoSpace { .. }), "{error}");
    let twice = [volume("data", 64, FileSystem::Ext4), volume("data", 64, FileSystem::Ext4)];
    assert!(matches!(site.open(&spec, &twice), Err(DatastoreError::DuplicateVolume(_))));
    assert!(matches!(site.open(&spec, &[]), Err(DatastoreError::NoVolumes)));
    let bad = [volume("Data/", 64, FileSystem::Ext4)];
    assert!(matches!(site.open(&spec, &bad), Err(DatastoreError::BadVolumeName(_))));
    assert_eq!(site.teardown.registered().len(), 1, "nothing but the scratch directory");
    assert_eq!(fs::read_dir(&site.scratch).unwrap().count(), 0);
}

/// A device faster than any export must be refused, with the measured floor.
#[test]
fn a_device_faster_than_the_host_is_refused() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let mut fast = profile("dc1500m-960");
    let underlay_model::Medium::Flash(flash) = &mut fast.medium else { panic!("flash") };
    (flash.base, flash.read_service) = (underlay_core::Nanos(100), underlay_core::Nanos(100));
    let site = Site::new();
    let spec = emulated(fast, Durability::Profile);
    let error = site.open(&spec, &[volume("data", 64, FileSystem::Ext4)]).err().expect("refused");
    assert!(matches!(error, DatastoreError::FasterThanHost { .. }), "{error}");
    assert_eq!(site.teardown.unwind(), []);
}

#[test]
fn a_path_datastore_is_a_directory_per_volume() {
    let site = Site::new();
    let directory = tempfile::tempdir().unwrap();
    let spec = DatastoreSpec::Path { directory: directory.path().to_path_buf() };
    let volumes = [volume("data", 1, FileSystem::Ext4), volume("wal", 1, FileSystem::Ext4)];
    let mut datastore = site.open(&spec, &volumes).unwrap();
    assert_eq!(datastore.evidence(), Evidence::Measured);
    assert_ne!(datastore.volumes()[0].path, datastore.volumes()[1].path);
    datastore.volumes().iter().for_each(|volume| write_synced(&volume.path.join("file"), 4096));
    datastore.health().unwrap();
    assert!(datastore.series().is_empty() && datastore.counters().unwrap().is_empty());
    assert!(datastore.timing().unwrap().is_none());
    assert!(matches!(datastore.power_cut(), Err(DatastoreError::NotEmulated(_))));
    datastore.close().unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Not a test of its own: the owner that the next test kills.
#[test]
fn owner_to_be_killed() {
    let Ok(state) = std::env::var(HOLD_VARIABLE) else { return };
    let state = StateDir::at(state.into()).unwrap();
    let site = Site::in_state(state);
    let spec = emulated(profile("null"), Durability::Profile);
    let datastore = site.open(&spec, &[volume("data", 64, FileSystem::Ext4)]).unwrap();
    println!("\nholding {}", datastore.processes()[0].1);
    std::thread::sleep(Duration::from_secs(600));
}

/// kill -9 of owner and server together: another process cleans up everything.
#[test]
fn killed_owners_and_servers_can_be_cleaned_up() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let directory = tempfile::Builder::new().prefix("ud").tempdir().unwrap();
    let state = StateDir::at(directory.path().join("s")).unwrap();
    for kills_server in [false, true] {
        let mut owner = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "emulated::owner_to_be_killed", "--nocapture"])
            .env(HOLD_VARIABLE, state.root())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
        let server = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("holding ")?.parse::<u32>().ok())
            .expect("the owner brought up its datastore");
        kill(owner.id());
        owner.wait().unwrap();
        if kills_server {
            kill(server);
        }
        let report = clean(&state).unwrap();
        assert!(report.failed.is_empty(), "{report:?}");
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let root = state.root().to_str().unwrap();
        assert!(!mounts.contains(root), "{mounts}");
        // Empty or absent: gone, or waiting for init to collect it.
        let command_line = fs::read(format!("/proc/{server}/cmdline")).unwrap_or_default();
        assert!(command_line.is_empty(), "{}", String::from_utf8_lossy(&command_line));
    }
}
