//! Managed servers with the real PostgreSQL of this host.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use underlay_core::Bytes;
use underlay_database::managed::BackupFormat;
use underlay_database::postgres::{
    Install, Listen, Liveness, LogCause, RestoreOptions, Server, ServerError, ServerSpec, StopMode,
    Template, find_installs,
};
use underlay_database::{Address, Secret, Target};
use underlay_host::{
    Cgroup, CgroupLimits, StateDir, Teardown, free_space, page_cache, skip, unprivileged_user,
};

/// A place on disk with a teardown stack, as a run has.
struct Place {
    path: PathBuf,
    teardown: Teardown,
    install: Install,
    // After the stack, which is unwound first.
    _dir: TempDir,
}

/// What a test needs under its clusters.
#[derive(Clone, Copy, PartialEq)]
enum Ground {
    /// A file system on a disk, with a page cache that can be dropped.
    Disk,
    /// Anything; memory if there is enough of it, because it is quick.
    Any,
}

/// `None` when this host has no PostgreSQL.
fn place(ground: Ground) -> Option<Place> {
    let install = find_installs(None).into_iter().next()?;
    let memory = Path::new("/dev/shm");
    let roomy = free_space(memory).is_ok_and(|free| free > Bytes::from_gib(4));
    let base = match ground {
        Ground::Any if memory.is_dir() && roomy => memory,
        _ => Path::new("/var/tmp"),
    };
    let dir = tempfile::Builder::new().prefix("underlay-pg").tempdir_in(base).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let path = dir.path().canonicalize().unwrap();
    let state = StateDir::at(path.join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    Some(Place { path, teardown, install, _dir: dir })
}

macro_rules! place_or_skip {
    ($ground:ident) => {
        match place(Ground::$ground) {
            Some(place) => place,
            None => skip!("no PostgreSQL 13 to 18 on this host"),
        }
    };
}

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Data, log and backups in separate directories named after `run`, as on three volumes.
fn spec(place: &Place, run: &str, pairs: &[(&str, &str)]) -> ServerSpec {
    let volume = |name: &str| {
        let dir = place.path.join(run).join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    };
    ServerSpec {
        name: run.to_string(),
        install: place.install.clone(),
        data: volume("data").join("pg"),
        wal: volume("wal").join("pg"),
        backup: volume("backup").join("pg"),
        settings: settings(pairs),
        run_as: unprivileged_user().unwrap(),
        cgroup: None,
        runtime_dir: place.path.join(run).join("runtime"),
        listen: Listen::Loopback,
    }
}

fn query(target: &Target, sql: &str) -> Result<Vec<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = target.connect().await.map_err(|error| error.to_string())?;
        let messages = client.simple_query(sql).await.map_err(|error| error.to_string())?;
        Ok(messages
            .iter()
            .filter_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => {
                    Some(row.get(0).unwrap_or_default().to_string())
                }
                _ => None,
            })
            .collect())
    })
}

fn one(target: &Target, sql: &str) -> String {
    query(target, sql).unwrap().remove(0)
}

const MAKE_ROWS: &str = "CREATE TABLE t AS SELECT g AS id, repeat(md5(g::text), 8) AS text \
     FROM generate_series(1, 20000) g; CREATE INDEX ON t (id)";
const SUM: &str =
    "SELECT count(*) || ' ' || sum(id) || ' ' || md5(string_agg(text, ',' ORDER BY id)) FROM t";

#[test]
fn a_server_lives_where_it_is_told_and_as_whom() {
    let place = place_or_skip!(Any);
    let spec = spec(&place, "life", &[("shared_buffers", "32MB"), ("Work_Mem", "7MB")]);
    let mut server = Server::create(&place.teardown, spec.clone()).unwrap();
    assert_eq!(server.liveness().unwrap(), Liveness::Stopped);
    assert!(matches!(server.stop(StopMode::Fast), Err(ServerError::NotRunning { .. })));
    let report = server.start().unwrap();
    assert!(!report.recovered && report.warnings.is_empty(), "{report:?}");
    assert!(matches!(server.start(), Err(ServerError::StillRunning { .. })));

    // The WAL is a link to its own directory, and is really written there.
    assert_eq!(fs::read_link(spec.data.join("pg_wal")).unwrap(), spec.wal);
    let target = server.target();
    let segment = one(&target, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())");
    assert!(spec.wal.join(segment).is_file());
    assert_eq!(one(&target, "SHOW data_directory"), spec.data.display().to_string());
    assert_eq!(one(&target, "SHOW data_checksums"), "on");

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
    assert!(place.teardown.unwind().is_empty());
}

#[test]
fn who_may_connect() {
    let place = place_or_skip!(Any);
    let mut server = Server::create(&place.teardown, spec(&place, "access", &[])).unwrap();
    server.start().unwrap();
    let tcp = server.tcp_target().unwrap();
    assert_eq!(one(&tcp, "SELECT current_user"), "underlay");
    for password in [None, Some(Secret::new("guessed"))] {
        let refused = query(&Target { password, ..tcp.clone() }, "SELECT 1").unwrap_err();
        assert!(refused.contains("password"), "{refused}");
    }
    let Address::UnixSocket(dir) = server.target().address else { panic!("a socket") };
    assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let config = fs::metadata(place.path.join("access/runtime/postgresql.conf")).unwrap();
    assert_eq!(config.permissions().mode() & 0o777, 0o600);
    server.stop(StopMode::Smart).unwrap();

    // Without TCP nobody listens on the port.
    let quiet = ServerSpec { listen: Listen::UnixSocket, ..server.spec().clone() };
    let mut server = Server::open(&place.teardown, quiet).unwrap();
    server.start().unwrap();
    assert!(server.tcp_target().is_none());
    assert!(std::net::TcpStream::connect(("127.0.0.1", server.port())).is_err());
    server.stop(StopMode::Immediate).unwrap();
}

#[test]
fn a_long_path_gets_a_short_socket() {
    let place = place_or_skip!(Any);
    let long = "x".repeat(90);
    let mut spec = spec(&place, "long", &[]);
    spec.runtime_dir = place.path.join(long);
    let mut server = Server::create(&place.teardown, spec).unwrap();
    server.start().unwrap();
    assert_eq!(one(&server.target(), "SELECT 1"), "1");
    let Address::UnixSocket(dir) = server.target().address else { panic!("a socket") };
    assert!(!dir.starts_with(&place.path));
    server.kill().unwrap();
    assert!(place.teardown.unwind().is_empty());
    assert!(!dir.exists());
}

#[test]
fn what_was_committed_survives_a_kill() {
    let place = place_or_skip!(Any);
    let mut server = Server::create(&place.teardown, spec(&place, "kill", &[])).unwrap();
    server.start().unwrap();
    query(&server.target(), MAKE_ROWS).unwrap();
    let before = one(&server.target(), SUM);
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
    assert_eq!(one(&server.target(), SUM), before);

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

/// Gone, or a zombie that the first process of the system has not collected yet.
fn has_ended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

fn children_of(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap();
    text.split_ascii_whitespace().map(|child| child.parse().unwrap()).collect()
}

fn shared_memory_of(pid: u32) -> Vec<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut paths: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(5))
        .filter(|name| name.starts_with("/dev/shm/"))
        .map(PathBuf::from)
        .collect();
    paths.dedup();
    paths
}

#[test]
fn a_template_restores_to_the_same_rows() {
    let place = place_or_skip!(Disk);
    let dir = place.path.join("template");
    let mut server = Server::create(&place.teardown, spec(&place, "one", &[])).unwrap();
    server.start().unwrap();
    query(&server.target(), MAKE_ROWS).unwrap();
    let before = one(&server.target(), SUM);
    let labels = settings(&[("warehouses", "1")]);
    let running = Template::capture(&mut server, &dir, labels.clone());
    assert!(matches!(running, Err(ServerError::StillRunning { .. })), "{running:?}");
    server.kill().unwrap();
    let unclean = Template::capture(&mut server, &dir, labels.clone());
    assert!(matches!(unclean, Err(ServerError::NotCleanlyStopped { .. })), "{unclean:?}");
    server.start().unwrap();
    server.stop(StopMode::Fast).unwrap();
    // As a capture that was cut short leaves it.
    fs::create_dir_all(dir.join("data/base")).unwrap();
    fs::write(dir.join("data/base/torn"), b"x").unwrap();
    let (template, captured) = Template::capture(&mut server, &dir, labels.clone()).unwrap();
    assert_eq!(template.manifest().labels, labels);
    assert!(captured.files > 900 && captured.bytes > Bytes::from_mib(20), "{captured:?}");
    // Only the needed segment of the log.
    assert!(fs::read_dir(dir.join("wal")).unwrap().count() <= 3);
    let again = Template::capture(&mut server, &dir, labels);
    assert!(matches!(again, Err(ServerError::NotEmpty(_))), "{again:?}");

    // To other directories, with other settings, and prepared WAL.
    let other = spec(&place, "two", &[("work_mem", "9MB")]);
    let options = RestoreOptions { log_ready: Bytes::from_mib(70) };
    let (mut restored, copied) =
        Template::open(&dir).unwrap().restore(&place.teardown, other.clone(), &options).unwrap();
    assert_eq!(copied.files, captured.files);
    // Four segments of 16 MiB, of which the template may have one.
    let prepared = copied.bytes.0 - captured.bytes.0;
    assert!((48 << 20..=64 << 20).contains(&prepared), "{prepared}");
    assert_eq!(page_cache::cached(&other.data.join("base")).unwrap(), Bytes::ZERO);
    assert_eq!(fs::read_link(other.data.join("pg_wal")).unwrap(), other.wal);
    assert!(!restored.start().unwrap().recovered);
    assert_eq!(one(&restored.target(), SUM), before);
    assert_eq!(one(&restored.tcp_target().unwrap(), "SHOW work_mem"), "9MB");
    // The prepared segments are used, also through a crash.
    query(
        &restored.target(),
        "CREATE TABLE u AS SELECT * FROM t; SELECT pg_switch_wal(); INSERT INTO u SELECT * FROM t",
    )
    .unwrap();
    restored.kill().unwrap();
    assert!(restored.start().unwrap().recovered);
    assert_eq!(one(&restored.target(), "SELECT count(*) FROM u"), "40000");

    // Not over a running server; over a stopped one of ours, yes.
    let options = RestoreOptions { log_ready: Bytes::ZERO };
    let busy = template.restore(&place.teardown, other.clone(), &options);
    assert!(matches!(busy, Err(ServerError::StillRunning { .. })), "{busy:?}");
    restored.stop(StopMode::Fast).unwrap();
    let (mut again, _) = template.restore(&place.teardown, other.clone(), &options).unwrap();
    again.start().unwrap();
    assert_eq!(one(&again.target(), "SELECT count(*) FROM pg_class WHERE relname = 'u'"), "0");
    assert_eq!(one(&again.target(), SUM), before);
    again.stop(StopMode::Fast).unwrap();

    // A cluster of somebody else's is left alone.
    fs::remove_file(other.data.join("underlay.cluster")).unwrap();
    let foreign = template.restore(&place.teardown, other.clone(), &options);
    assert!(matches!(foreign, Err(ServerError::ForeignCluster(_))), "{foreign:?}");
    assert!(other.data.join("PG_VERSION").exists());
}

#[test]
fn a_template_that_is_not_whole_is_refused() {
    let place = place_or_skip!(Any);
    let dir = place.path.join("template");
    let check = |reason: &str| match Template::open(&dir).unwrap_err() {
        ServerError::BadTemplate { reason: found, .. } => {
            assert!(found.contains(reason), "{found}");
        }
        other => panic!("{other}"),
    };
    check("cannot be read");
    let mut server = Server::create(&place.teardown, spec(&place, "torn", &[])).unwrap();
    Template::capture(&mut server, &dir, BTreeMap::new()).unwrap();
    Template::open(&dir).unwrap();
    let control = dir.join("data/global/pg_control");
    let bytes = fs::read(&control).unwrap();
    fs::write(&control, &bytes[..100]).unwrap();
    check("its manifest says");
    fs::write(&control, &bytes).unwrap();
    Template::open(&dir).unwrap();
    fs::write(dir.join("manifest.json"), b"{}").unwrap();
    check("cannot be understood");
    fs::remove_file(dir.join("manifest.json")).unwrap();
    check("cut short");
}

#[test]
fn bad_settings_are_named_all_at_once_before_anything_starts() {
    let place = place_or_skip!(Any);
    let bad = [
        ("shared_bufers", "1GB"),
        ("work_mem", "12 parsecs"),
        ("synchronous_commit", "maybe"),
        ("max_wal_size", "2GB"),
    ];
    let mut server = Server::create(&place.teardown, spec(&place, "bad", &bad)).unwrap();
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
fn backups_restore() {
    let place = place_or_skip!(Any);
    let mut server = Server::create(&place.teardown, spec(&place, "backup", &[])).unwrap();
    assert!(matches!(server.backup(BackupFormat::Plain), Err(ServerError::NotRunning { .. })));
    server.start().unwrap();
    query(&server.target(), MAKE_ROWS).unwrap();
    let before = one(&server.target(), SUM);
    for format in [BackupFormat::Plain, BackupFormat::Archive] {
        let backup = server.backup(format).unwrap();
        assert!(backup.path.starts_with(&server.spec().backup));
        assert!(backup.bytes > Bytes::from_mib(20) && backup.bytes_per_second() > 0.0);
        query(&server.target(), "DELETE FROM t WHERE id > 10").unwrap();
        assert!(matches!(server.restore(&backup), Err(ServerError::StillRunning { .. })));
        server.stop(StopMode::Fast).unwrap();
        let restored = server.restore(&backup).unwrap();
        assert!(restored.bytes > Bytes::from_mib(20), "{restored:?}");
        assert_eq!(fs::read_link(server.spec().data.join("pg_wal")).unwrap(), server.spec().wal);
        assert!(server.start().unwrap().recovered);
        assert_eq!(one(&server.target(), SUM), before, "{format:?}");
    }
    server.stop(StopMode::Fast).unwrap();
}

#[test]
fn the_memory_limit_counts_the_page_cache_of_the_database() {
    let place = place_or_skip!(Disk);
    let limits = CgroupLimits { memory: Some(Bytes::from_mib(64)), cpus: Some(1.5) };
    let (cgroup, unenforced) = Cgroup::create(&place.teardown, "test-pg", &limits).unwrap();
    let Some(cgroup) = cgroup.filter(|_| unenforced.is_empty()) else {
        skip!("limits cannot be enforced here: {unenforced:?}");
    };
    let pairs = [("shared_buffers", "16MB"), ("max_wal_size", "256MB")];
    let spec = ServerSpec { cgroup: Some(cgroup.clone()), ..spec(&place, "limit", &pairs) };
    let mut server = Server::create(&place.teardown, spec.clone()).unwrap();
    server.start().unwrap();

    // In force for the postmaster and for a backend.
    let pid: u32 = server.pid().unwrap();
    let own = memory_limit_of(pid);
    assert_eq!(own, 64 << 20);
    for child in children_of(pid) {
        // One that has just ended is in no group any more.
        assert!(memory_limit_of(child) == own || has_ended(child), "{child}");
    }

    // A table of twice the limit is not in memory after it was written and read.
    query(
        &server.target(),
        "CREATE TABLE wide (a int, b text); ALTER TABLE wide ALTER b SET STORAGE PLAIN;
         INSERT INTO wide SELECT g, repeat(md5(g::text), 200) FROM generate_series(1, 16000) g;
         CHECKPOINT",
    )
    .unwrap();
    assert_eq!(one(&server.target(), "SELECT count(*) FROM wide WHERE b > ''"), "16000");
    let size: u64 = one(&server.target(), "SELECT pg_table_size('wide')").parse().unwrap();
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
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

#[test]
fn a_full_volume_is_named() {
    let place = place_or_skip!(Disk);
    if unprivileged_user().unwrap().is_none() {
        skip!("mounting a small volume needs root");
    }
    use underlay_host::{FileSystem, LoopDevice, Mount, make_file_system};
    let backing = place.path.join("volume");
    fs::File::create(&backing).unwrap().set_len(96 << 20).unwrap();
    let device = LoopDevice::attach(&place.teardown, &backing, 4096).unwrap();
    make_file_system(device.device(), FileSystem::Ext4).unwrap();
    let target = place.path.join("mnt");
    place.teardown.create_directory(&target).unwrap();
    let mount = Mount::make(&place.teardown, device.device(), &target, FileSystem::Ext4, "noatime")
        .unwrap();

    // The log fills its volume.
    let pairs = [("max_wal_size", "2GB"), ("checkpoint_timeout", "1h")];
    let full = ServerSpec { wal: mount.target().join("pg"), ..spec(&place, "full", &pairs) };
    let mut server = Server::create(&place.teardown, full).unwrap();
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
    assert!(place.teardown.unwind().is_empty());
}

#[test]
fn a_place_that_cannot_be_reached_is_named() {
    let place = place_or_skip!(Any);
    let Some(user) = unprivileged_user().unwrap() else { skip!("needs root") };
    let spec = spec(&place, "closed", &[]);
    let blocked = spec.data.parent().unwrap();
    fs::set_permissions(blocked, fs::Permissions::from_mode(0o700)).unwrap();
    let error = Server::create(&place.teardown, spec.clone()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("user `{}` may not pass through", user.name)), "{text}");
    assert!(text.contains(&format!("chmod o+x {}", blocked.display())), "{text}");

    let as_root = ServerSpec { run_as: None, ..spec.clone() };
    assert!(matches!(Server::create(&place.teardown, as_root), Err(ServerError::AsRoot(_))));
    let relative = ServerSpec { data: PathBuf::from("data"), ..spec.clone() };
    assert!(Server::create(&place.teardown, relative).is_err());
    let old = Install { major: 12, ..spec.install.clone() };
    let error = Server::create(&place.teardown, ServerSpec { install: old, ..spec }).unwrap_err();
    assert!(matches!(error, ServerError::UnsupportedVersion { .. }), "{error}");
}

#[test]
#[ignore = "is a measurement that writes 4 GB; run it alone with --ignored --nocapture"]
fn how_fast_a_template_of_a_gigabyte_is() {
    let place = place_or_skip!(Disk);
    let fast = [("fsync", "off"), ("max_wal_size", "4GB"), ("checkpoint_timeout", "1h")];
    let mut server = Server::create(&place.teardown, spec(&place, "big", &fast)).unwrap();
    server.start().unwrap();
    query(
        &server.target(),
        "CREATE TABLE t (id bigint, text text); ALTER TABLE t ALTER text SET STORAGE PLAIN;
         INSERT INTO t SELECT g, repeat(md5(g::text), 15) FROM generate_series(1, 2500000) g;
         CREATE INDEX ON t (id)",
    )
    .unwrap();
    server.stop(StopMode::Fast).unwrap();
    let rate = |name: &str, report: underlay_database::postgres::CopyReport| {
        eprintln!(
            "{name}: {} files, {}, {:.2} s, {:.0} MB/s",
            report.files,
            report.bytes,
            report.duration.as_secs_f64(),
            report.bytes_per_second() / 1e6
        );
    };
    let dir = place.path.join("template");
    let (template, report) = Template::capture(&mut server, &dir, BTreeMap::new()).unwrap();
    rate("capture", report);
    for log_ready in [Bytes::ZERO, Bytes::from_mib(512)] {
        let options = RestoreOptions { log_ready };
        let spec = spec(&place, "copy", &[]);
        let (mut restored, report) = template.restore(&place.teardown, spec, &options).unwrap();
        rate(&format!("restore with {log_ready} of prepared WAL"), report);
        eprintln!("start: {:.2} s", restored.start().unwrap().duration.as_secs_f64());
        restored.stop(StopMode::Fast).unwrap();
    }
}
