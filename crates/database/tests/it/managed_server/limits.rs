//! What a server is refused or runs into: settings, memory, space, places. Each is named.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use underlay_core::Bytes;
use underlay_database::Engine;
use underlay_database::postgres::{Install, LogCause, Server, ServerError, ServerSpec, StopMode};
use underlay_host::{Cgroup, CgroupLimits, page_cache, skip, unprivileged_user};
use underlay_testbed::{Bed, or_skip, query, settings, text};

use super::harness::{children_of, has_ended, spec};

#[test]
fn bad_settings_are_named_all_at_once_before_anything_starts() {
    let bed = or_skip!(Bed::anywhere(Engine::Postgresql));
    let bad = [
        ("shared_bufers", "1GB"),
        ("work_mem", "12 parsecs"),
        ("synchronous_commit", "maybe"),
        ("max_wal_size", "2GB"),
    ];
    let mut server = Server::create(&bed.teardown, spec(&bed, "bad", &bad)).unwrap();
    let error = server.start().unwrap_err();
    let ServerError::Settings { problems, .. } = &error else { panic!("{error}") };
    let names: Vec<&str> = problems.iter().map(|problem| problem.name.as_str()).collect();
    assert_eq!(names, ["shared_bufers", "synchronous_commit", "work_mem"]);
    let text = error.to_string();
    assert!(text.contains("unrecognized configuration parameter"), "{text}");
    assert!(text.contains("Available values: local, remote_write"), "{text}");
    assert!(server.pid().is_none());

    // A reserved one needs no server to be refused.
    server.set_settings(settings(&[("port", "5432"), ("wal_level", "replica")]));
    let text = server.start().unwrap_err().to_string();
    assert!(text.contains("`port = 5432`: a study cannot set this"), "{text}");

    // One with a dot is only unmasked by the running server.
    server.set_settings(settings(&[("no_such.thing", "1")]));
    let text = server.start().unwrap_err().to_string();
    assert!(text.contains("no loaded extension has such a setting"), "{text}");
    assert!(server.pid().is_none());

    // Values that contradict each other end the start, with the server's reason.
    server.set_settings(settings(&[("wal_level", "minimal")]));
    let error = server.start().unwrap_err();
    let ServerError::StartFailed(log) = &error else { panic!("{error}") };
    assert_eq!(log.cause, None);
    assert!(error.to_string().contains("requires wal_level"), "{error}");

    server.set_settings(settings(&[("fsync", "off"), ("synchronous_commit", "off")]));
    let report = server.start().unwrap();
    assert_eq!(report.warnings.len(), 2, "{report:?}");
    server.stop(StopMode::Fast).unwrap();
}

#[test]
fn the_memory_limit_counts_the_page_cache_of_the_database() {
    let bed = or_skip!(Bed::on_disk(Engine::Postgresql));
    let limits = CgroupLimits { memory: Some(Bytes::from_mib(64)), cpus: Some(1.5) };
    let (cgroup, unenforced) = Cgroup::create(&bed.teardown, "test-pg", &limits).unwrap();
    let Some(cgroup) = cgroup.filter(|_| unenforced.is_empty()) else {
        skip!("limits cannot be enforced here: {unenforced:?}");
    };
    let pairs = [("shared_buffers", "16MB"), ("max_wal_size", "256MB")];
    let spec = ServerSpec { cgroup: Some(cgroup.clone()), ..spec(&bed, "limit", &pairs) };
    let mut server = Server::create(&bed.teardown, spec.clone()).unwrap();
    server.start().unwrap();

    // In force for the postmaster and for a backend.
    let pid: u32 = server.pid().unwrap();
    let own = memory_limit_of(pid);
    assert_eq!(own, 64 << 20);
    for child in children_of(pid) {
        // One that is about to end is in no group any more, a moment before it counts as ended.
        let deadline = Instant::now() + Duration::from_secs(10);
        while memory_limit_of(child) != own && !has_ended(child) {
            assert!(Instant::now() < deadline, "{child}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    // A table of twice the limit is not in memory after it was written and read.
    query(
        &server.target(),
        "CREATE TABLE wide (a int, b text); ALTER TABLE wide ALTER b SET STORAGE PLAIN;
         INSERT INTO wide SELECT g, repeat(md5(g::text), 200) FROM generate_series(1, 16000) g;
         CHECKPOINT",
    )
    .unwrap();
    assert_eq!(text(&server.target(), "SELECT count(*) FROM wide WHERE b > ''"), "16000");
    let size: u64 = text(&server.target(), "SELECT pg_table_size('wide')").parse().unwrap();
    assert!(size > 120 << 20, "{size}");
    let cached = page_cache::cached(&spec.data.join("base")).unwrap();
    assert!(cached < Bytes::from_mib(64), "{cached}");
    assert_eq!(cgroup.oom_kills().unwrap_or(0), 0);
    assert_eq!(server.log_tail().cause, None);

    // A session that takes more than the limit is killed, and the log's tail says of what.
    let failed = query(
        &server.target(),
        "SELECT length(string_agg(g::text, ',')) FROM generate_series(1, 30000000) g",
    );
    assert!(failed.is_err(), "{failed:?}");
    // The postmaster writes its log a moment after the session saw the end of its connection.
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.log_tail().cause.is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    if cgroup.oom_kills().is_some() {
        assert_eq!(server.log_tail().cause, Some(LogCause::OutOfMemory), "{:?}", server.log_tail());
    }
    server.wait_ready(Duration::from_secs(60)).unwrap();
    server.stop(StopMode::Fast).unwrap();
}

/// The memory limit in bytes of the group that a process is in.
fn memory_limit_of(pid: u32) -> u64 {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let in_v1 = groups.lines().find_map(|line| line.split_once(":memory:"));
    let path = match in_v1 {
        Some((_, group)) => format!("/sys/fs/cgroup/memory{group}/memory.limit_in_bytes"),
        None => {
            let Some((_, group)) = groups.lines().find_map(|line| line.split_once("0::")) else {
                return 0;
            };
            format!("/sys/fs/cgroup{group}/memory.max")
        }
    };
    // Where there is no limit at all, or no such file any more, it is not ours.
    fs::read_to_string(path).unwrap_or_default().trim().parse().unwrap_or(0)
}

#[test]
fn a_full_volume_is_named() {
    let bed = or_skip!(Bed::on_disk(Engine::Postgresql));
    if unprivileged_user().unwrap().is_none() {
        skip!("mounting a small volume needs root");
    }
    use underlay_host::{FileSystem, LoopDevice, Mount, make_file_system};
    let backing = bed.path.join("volume");
    fs::File::create(&backing).unwrap().set_len(96 << 20).unwrap();
    let device = LoopDevice::attach(&bed.teardown, &backing, 4096).unwrap();
    make_file_system(device.device(), FileSystem::Ext4).unwrap();
    let target = bed.path.join("mnt");
    bed.teardown.create_directory(&target).unwrap();
    let mount =
        Mount::make(&bed.teardown, device.device(), &target, FileSystem::Ext4, "noatime").unwrap();

    // The log fills its volume.
    let pairs = [("max_wal_size", "2GB"), ("checkpoint_timeout", "1h")];
    let full = ServerSpec { wal: mount.target().join("pg"), ..spec(&bed, "full", &pairs) };
    let mut server = Server::create(&bed.teardown, full).unwrap();
    server.start().unwrap();
    let failed = query(
        &server.target(),
        "CREATE TABLE t AS SELECT repeat(md5(g::text), 30) FROM generate_series(1, 200000) g",
    );
    assert!(failed.is_err());
    let log = server.log_tail();
    assert_eq!(log.cause, Some(LogCause::DiskFull), "{log:?}");
    assert!(log.headline().contains("No space left on device"), "{}", log.headline());
    server.kill().unwrap();
    assert!(bed.teardown.unwind().is_empty());
}

#[test]
fn a_place_that_cannot_be_reached_is_named() {
    let bed = or_skip!(Bed::anywhere(Engine::Postgresql));
    let Some(user) = unprivileged_user().unwrap() else { skip!("needs root") };
    let spec = spec(&bed, "closed", &[]);
    let blocked = spec.data.parent().unwrap();
    fs::set_permissions(blocked, fs::Permissions::from_mode(0o700)).unwrap();
    let error = Server::create(&bed.teardown, spec.clone()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("user `{}` cannot enter", user.name)), "{text}");
    assert!(text.contains(&format!("chmod o+x {}", blocked.display())), "{text}");

    let as_root = ServerSpec { run_as: None, ..spec.clone() };
    assert!(matches!(Server::create(&bed.teardown, as_root), Err(ServerError::AsRoot(_))));
    let relative = ServerSpec { data: PathBuf::from("data"), ..spec.clone() };
    assert!(Server::create(&bed.teardown, relative).is_err());
    let old = Install { major: 12, ..spec.install.clone() };
    let error = Server::create(&bed.teardown, ServerSpec { install: old, ..spec }).unwrap_err();
    assert!(matches!(error, ServerError::UnsupportedVersion { .. }), "{error}");
}
