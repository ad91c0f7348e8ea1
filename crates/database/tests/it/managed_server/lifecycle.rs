//! Where a server lives, as whom, who may connect, and what a kill leaves.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use underlay_database::postgres::{Listen, Liveness, Server, ServerError, ServerSpec, StopMode};
use underlay_database::{Address, Engine, Secret, Target};
use underlay_testbed::{Bed, or_skip, query, text};

use super::harness::{MAKE_ROWS, SUM, children_of, has_ended, spec};

#[test]
fn a_server_lives_where_it_is_told_and_as_whom() {
    let bed = or_skip!(Bed::anywhere(Engine::Postgresql));
    let spec = spec(&bed, "life", &[("shared_buffers", "32MB"), ("Work_Mem", "7MB")]);
    let mut server = Server::create(&bed.teardown, spec.clone()).unwrap();
    assert_eq!(server.liveness().unwrap(), Liveness::Stopped);
    assert!(matches!(server.stop(StopMode::Fast), Err(ServerError::NotRunning { .. })));
    let report = server.start().unwrap();
    assert!(!report.recovered && report.warnings.is_empty(), "{report:?}");
    assert!(matches!(server.start(), Err(ServerError::StillRunning { .. })));

    // The WAL is a link to its own directory, and is really written there.
    assert_eq!(fs::read_link(spec.data.join("pg_wal")).unwrap(), spec.wal);
    let target = server.target();
    let segment = text(&target, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())");
    assert!(spec.wal.join(segment).is_file());
    assert_eq!(text(&target, "SHOW data_directory"), spec.data.display().to_string());
    assert_eq!(text(&target, "SHOW data_checksums"), "on");

    // Not as root, if we are.
    let pid = server.pid().unwrap();
    let owner = fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    if let Some(user) = &spec.run_as {
        assert_eq!(owner, user.uid);
    }
    assert_ne!(owner, 0);

    // Settings in force: the study's, Underlay's, and where they come from.
    let in_force = server.settings_in_force().unwrap();
    let value = |name: &str| in_force.iter().find(|setting| setting.name == name).unwrap();
    assert_eq!(value("shared_buffers").value, "32MB");
    assert_eq!(value("work_mem").value, "7MB");
    assert_eq!(value("track_io_timing").value, "on");
    assert_eq!(value("cluster_name").value, "underlay-life");
    assert_eq!(value("shared_buffers").source, "configuration file");
    assert!(!in_force.iter().any(|setting| setting.name == "application_name"));

    assert!(server.is_alive());
    server.stop(StopMode::Fast).unwrap();
    assert!(!server.is_alive() && server.pid().is_none());
    assert!(bed.teardown.unwind().is_empty());
}

#[test]
fn who_may_connect() {
    let bed = or_skip!(Bed::anywhere(Engine::Postgresql));
    let mut server = Server::create(&bed.teardown, spec(&bed, "access", &[])).unwrap();
    server.start().unwrap();
    let tcp = server.tcp_target().unwrap();
    assert_eq!(text(&tcp, "SELECT current_user"), "underlay");
    for password in [None, Some(Secret::new("guessed"))] {
        let refused = query(&Target { password, ..tcp.clone() }, "SELECT 1").unwrap_err();
        assert!(refused.contains("password"), "{refused}");
    }
    let Address::UnixSocket(dir) = server.target().address else { panic!("a socket") };
    assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let config = fs::metadata(bed.path.join("access/runtime/postgresql.conf")).unwrap();
    assert_eq!(config.permissions().mode() & 0o777, 0o600);
    server.stop(StopMode::Smart).unwrap();

    // Without TCP nobody listens on the port.
    let quiet = ServerSpec { listen: Listen::UnixSocket, ..server.spec().clone() };
    let mut server = Server::open(&bed.teardown, quiet).unwrap();
    server.start().unwrap();
    assert!(server.tcp_target().is_none());
    assert!(std::net::TcpStream::connect(("127.0.0.1", server.port())).is_err());
    server.stop(StopMode::Immediate).unwrap();
}

/// Its recovery may take as long as the storage pleases; nobody needs its end.
#[test]
fn one_that_recovers_from_a_crash_is_not_waited_for() {
    let bed = or_skip!(Bed::anywhere(Engine::Postgresql));
    let settings = [("fsync", "off"), ("checkpoint_timeout", "1h"), ("max_wal_size", "4GB")];
    let mut server = Server::create(&bed.teardown, spec(&bed, "recovers", &settings)).unwrap();
    server.start().unwrap();
    query(&server.target(), MAKE_ROWS).unwrap();
    // Enough that its recovery can be caught.
    query(
        &server.target(),
        "CREATE TABLE log AS SELECT i, md5(i::text) FROM generate_series(1, 400000) i",
    )
    .unwrap();
    assert_eq!(server.crash(), None);
    let postmaster = server.pid().unwrap();
    let send = |pid: u32, signal| {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        // It may have ended in the meantime.
        let _ = rustix::process::kill_process(pid, signal);
    };
    let title = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let named =
        |name: &str| children_of(postmaster).into_iter().find(|pid| title(*pid).contains(name));
    let victim = named("walwriter").expect("every server has one");
    send(victim, rustix::process::Signal::KILL);
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < Duration::from_secs(60), "no recovery was seen");
        if let Some(pid) = named("startup") {
            send(pid, rustix::process::Signal::STOP);
            if named("startup") == Some(pid) {
                break;
            }
        }
    }
    let crash = server.crash().expect("it was logged");
    assert!(crash.contains("signal 9"), "{crash}");
    assert_eq!(server.crash(), None, "told once");
    let begin = Instant::now();
    let stopped = server.stop(StopMode::Fast);
    assert!(matches!(stopped, Err(ServerError::Died(_))), "{stopped:?}");
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    assert!(has_ended(postmaster));
    assert!(server.start().unwrap().recovered);
    server.stop(StopMode::Fast).unwrap();
}

#[test]
fn a_long_path_gets_a_short_socket() {
    let bed = or_skip!(Bed::anywhere(Engine::Postgresql));
    let long = "x".repeat(90);
    let mut spec = spec(&bed, "long", &[]);
    spec.runtime_dir = bed.path.join(long);
    let mut server = Server::create(&bed.teardown, spec).unwrap();
    server.start().unwrap();
    assert_eq!(text(&server.target(), "SELECT 1"), "1");
    let Address::UnixSocket(dir) = server.target().address else { panic!("a socket") };
    assert!(!dir.starts_with(&bed.path));
    server.kill().unwrap();
    assert!(bed.teardown.unwind().is_empty());
    assert!(!dir.exists());
}

#[test]
fn what_was_committed_survives_a_kill() {
    let bed = or_skip!(Bed::anywhere(Engine::Postgresql));
    let mut server = Server::create(&bed.teardown, spec(&bed, "kill", &[])).unwrap();
    server.start().unwrap();
    query(&server.target(), MAKE_ROWS).unwrap();
    let before = text(&server.target(), SUM);
    let (data, pid) = (server.spec().data.clone(), server.pid().unwrap());
    let children = children_of(pid);
    assert!(children.len() >= 4, "{children:?}");
    let shared = shared_memory_of(pid);
    server.kill().unwrap();
    // All of it is gone at once, shared memory included.
    assert!(children.iter().chain([&pid]).all(|pid| has_ended(*pid)));
    assert!(!shared.is_empty() && shared.iter().all(|path| !path.exists()), "{shared:?}");
    assert!(data.join("postmaster.pid").exists());
    assert_eq!(server.liveness().unwrap(), Liveness::Stopped);

    assert!(server.start().unwrap().recovered);
    assert_eq!(text(&server.target(), SUM), before);

    // One that dies by itself is noticed.
    let shared = shared_memory_of(server.pid().unwrap());
    let children = children_of(server.pid().unwrap());
    let pid = i32::try_from(server.pid().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    while server.is_alive() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(matches!(server.liveness().unwrap(), Liveness::Died(_)));
    assert!(matches!(server.stop(StopMode::Fast), Err(ServerError::Died(_))));
    // When all its processes have ended too, nobody could find out any more what it shared.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !children.iter().all(|pid| has_ended(*pid)) {
        assert!(Instant::now() < deadline, "children outlive their server");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!shared.is_empty() && shared.iter().all(|path| path.exists()), "{shared:?}");
    server.kill().unwrap();
    assert!(shared.iter().all(|path| !path.exists()), "{shared:?}");
    assert!(server.start().unwrap().recovered);
    server.stop(StopMode::Fast).unwrap();
    assert!(!server.start().unwrap().recovered);
}

/// What a server shares; only its children use the segment of its statistics.
fn shared_memory_of(pid: u32) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::new();
    for pid in children_of(pid).into_iter().chain([pid]) {
        // A child may have ended in the meantime.
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let names = maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5));
        paths.extend(
            names.filter(|name| name.starts_with("/dev/shm/PostgreSQL.")).map(PathBuf::from),
        );
    }
    paths
}
