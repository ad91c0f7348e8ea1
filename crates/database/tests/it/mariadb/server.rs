//! The life of a managed MariaDB.

use std::fs;
use std::os::unix::fs::MetadataExt;

use underlay_core::Bytes;
use underlay_database::Engine;
use underlay_database::managed::{
    BackupFormat, Install, Listen, Liveness, LogCause, RestoreOptions, ServerError, StopMode,
};
use underlay_database::mariadb::{Server, ServerSpec, Template};
use underlay_testbed::{Bed, or_skip, query, settings, text};

const MAKE_ROWS: &str = "CREATE TABLE shop.t ENGINE=InnoDB AS \
    SELECT seq AS id, repeat(md5(seq), 8) AS text FROM shop.seq_1_to_20000";
const SUM: &str = "SELECT concat(count(*), ' ', sum(id), ' ', sum(crc32(text))) FROM shop.t";

/// The spec of a server that is named after `run`.
fn spec(bed: &Bed, run: &str, pairs: &[(&str, &str)]) -> ServerSpec {
    let Install::Mariadb(install) = bed.install.clone() else { panic!("{:?}", bed.install) };
    bed.spec(install, run, pairs)
}

#[test]
fn a_server_lives_where_it_is_told_and_as_whom() {
    let bed = or_skip!(Bed::on_disk(Engine::Mariadb));
    let pairs = [("innodb_buffer_pool_size", "32M"), ("Max-Connections", "77")];
    let spec = ServerSpec { listen: Listen::Loopback, ..spec(&bed, "life", &pairs) };
    let mut server = Server::create(&bed.teardown, spec.clone()).unwrap();
    assert_eq!(server.liveness().unwrap(), Liveness::Stopped);
    assert!(matches!(server.stop(StopMode::Fast), Err(ServerError::NotRunning { .. })));
    let report = server.start().unwrap();
    assert!(!report.recovered && report.warnings.is_empty(), "{report:?}");
    assert!(matches!(server.start(), Err(ServerError::StillRunning { .. })));

    // Data and redo log are where the volumes are, and nowhere else.
    let target = server.target();
    assert!(spec.wal.join("ib_logfile0").is_file());
    assert!(spec.data.join("db/ibdata1").is_file() && !spec.data.join("db/ib_logfile0").exists());
    let data = text(&target, "SELECT @@datadir");
    assert_eq!(data.trim_end_matches('/'), spec.data.join("db").display().to_string());

    // Not as root, if we are.
    let pid = server.pid().unwrap();
    let owner = fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    if let Some(user) = &spec.run_as {
        assert_eq!(owner, user.uid);
    }
    assert_ne!(owner, 0);

    // What is in force, and who says so.
    let in_force = server.settings_in_force().unwrap();
    let setting = |name: &str| in_force.iter().find(|setting| setting.name == name).unwrap();
    assert_eq!(setting("max_connections").value, "77");
    assert_eq!(setting("max_connections").source, "config");
    assert_eq!(setting("innodb_buffer_pool_size").value, (32 << 20).to_string());
    assert_eq!(setting("innodb_io_capacity").source, "compile-time");

    // Over the loopback interface with the password alone, and only the accounts that are ours.
    let tcp = server.tcp_target().unwrap();
    assert_eq!(text(&tcp, "SELECT 1"), "1");
    let without = underlay_database::Target { password: None, ..tcp.clone() };
    assert!(query(&without, "SELECT 1").unwrap_err().contains("Access denied"));
    let root = underlay_database::Target { user: "root".to_string(), ..without };
    assert!(query(&root, "SELECT 1").is_err());
    let accounts = "SELECT concat(user, '@', host) FROM mysql.user ORDER BY 1";
    let accounts = query(&target, accounts).unwrap();
    assert_eq!(accounts, ["mariadb.sys@localhost", "root@localhost", "underlay@127.0.0.1"]);

    server.stop(StopMode::Fast).unwrap();
    assert_eq!(server.liveness().unwrap(), Liveness::Stopped);
    let mut again = Server::open(&bed.teardown, spec).unwrap();
    again.set_settings(settings(&[("innodb_flush_log_at_trx_commit", "2")]));
    let report = again.start().unwrap();
    assert_eq!(report.warnings.len(), 1, "{report:?}");
    again.stop(StopMode::Smart).unwrap();
}

#[test]
fn a_killed_server_recovers_what_was_committed() {
    let bed = or_skip!(Bed::on_disk(Engine::Mariadb));
    let mut server =
        Server::create(&bed.teardown, spec(&bed, "crash", &[("innodb_log_file_size", "8M")]))
            .unwrap();
    server.start().unwrap();
    let target = server.target();
    query(&target, "CREATE DATABASE shop").unwrap();
    query(&target, MAKE_ROWS).unwrap();
    let sum = text(&target, SUM);
    server.kill().unwrap();
    assert_eq!(server.liveness().unwrap(), Liveness::Stopped);
    let dir = bed.path.join("template");
    let torn = Template::capture(&mut server, &dir, settings(&[]));
    assert!(matches!(torn, Err(ServerError::NotCleanlyStopped { .. })), "{torn:?}");
    let report = server.start().unwrap();
    assert!(report.recovered, "{:?}", server.log_tail());
    assert_eq!(text(&target, SUM), sum);

    // Somebody else kills it: its death is noticed.
    let pid = rustix::process::Pid::from_raw(server.pid().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let begin = std::time::Instant::now();
    while server.is_alive() {
        assert!(begin.elapsed().as_secs() < 10, "a killed server is still there");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(matches!(server.liveness().unwrap(), Liveness::Died(_)));
    assert!(server.start().unwrap().recovered);
    server.stop(StopMode::Immediate).unwrap();
}

#[test]
fn backups_of_both_forms_restore() {
    let bed = or_skip!(Bed::on_disk(Engine::Mariadb));
    let small = [("innodb_log_file_size", "8M"), ("innodb_buffer_pool_size", "32M")];
    let mut server = Server::create(&bed.teardown, spec(&bed, "backup", &small)).unwrap();
    server.start().unwrap();
    let target = server.target();
    query(&target, "CREATE DATABASE shop").unwrap();
    query(&target, MAKE_ROWS).unwrap();
    let sum = text(&target, SUM);
    for format in [BackupFormat::Plain, BackupFormat::Archive] {
        let backup = server.backup(format).unwrap();
        assert_eq!(backup.path.parent(), Some(server.spec().backup.as_path()));
        assert!(backup.bytes > Bytes::from_mib(20) && backup.bytes_per_second() > 0.0);
        query(&target, "DELETE FROM shop.t WHERE id > 10").unwrap();
        server.stop(StopMode::Fast).unwrap();
        let restored = server.restore(&backup).unwrap();
        assert!(restored.bytes > Bytes::from_mib(20), "{restored:?}");
        // The redo log is on its own volume again, and nothing of the backup's own is left.
        assert!(server.spec().wal.join("ib_logfile0").is_file());
        let left: Vec<String> = fs::read_dir(server.spec().data.join("db"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("backup") || name.starts_with("ib_logfile"))
            .collect();
        assert_eq!(left, Vec::<String>::new());
        server.start().unwrap();
        assert_eq!(text(&target, SUM), sum, "{format:?}");
    }

    // One that fails leaves nothing that looks like a backup: this table's file is gone.
    fs::remove_file(server.spec().data.join("db/ibdata1")).unwrap();
    let failed = server.backup(BackupFormat::Plain).unwrap_err().to_string();
    assert!(failed.contains("ibdata1"), "{failed}");
    assert_eq!(fs::read_dir(&server.spec().backup).unwrap().count(), 2);
    server.kill().unwrap();
}

#[test]
fn wrong_settings_are_refused_all_at_once_and_nothing_starts() {
    let bed = or_skip!(Bed::on_disk(Engine::Mariadb));
    let mut server = Server::create(&bed.teardown, spec(&bed, "settings", &[])).unwrap();
    let check = |server: &mut Server, pairs: &[(&str, &str)], wanted: &[&str]| {
        server.set_settings(settings(pairs));
        let error = server.start().unwrap_err();
        let ServerError::Settings { problems, .. } = &error else { panic!("{error}") };
        assert_eq!(problems.len(), wanted.len(), "{error}");
        for text in wanted {
            assert!(error.to_string().contains(text), "{error} lacks {text}");
        }
        assert_eq!(server.pid(), None);
    };
    check(
        &mut server,
        &[("datadir", "/tmp"), ("port", "1")],
        &["the study's volumes", "a free one"],
    );
    check(
        &mut server,
        &[
            ("inodb_buffer_pool_size", "1G"),
            ("innodb_buffer_pool_size", "1000"),
            ("innodb_flush_method", "fast"),
            ("max_connections", "12x"),
            ("innodb_io_capacity", "300"),
        ],
        &["unknown variable", "adjusted to", "innodb-flush-method", "max_connections"],
    );
    server.set_settings(settings(&[("innodb_io_capacity", "300")]));
    server.start().unwrap();
    server.stop(StopMode::Fast).unwrap();

    // What only a start shows: the cause is named.
    fs::remove_file(server.spec().wal.join("ib_logfile0")).unwrap();
    let error = server.start().unwrap_err();
    let ServerError::StartFailed(log) = &error else { panic!("{error}") };
    assert!(log.lines.iter().any(|line| line.contains("Aborting")), "{log:?}");
    assert_ne!(log.cause, Some(LogCause::DiskFull), "{log:?}");
}

#[test]
fn a_template_starts_anywhere_with_any_log() {
    let bed = or_skip!(Bed::on_disk(Engine::Mariadb));
    let small = [("innodb_log_file_size", "8M"), ("innodb_buffer_pool_size", "32M")];
    let mut server = Server::create(&bed.teardown, spec(&bed, "load", &small)).unwrap();
    server.start().unwrap();
    query(&server.target(), "CREATE DATABASE shop").unwrap();
    query(&server.target(), MAKE_ROWS).unwrap();
    let sum = text(&server.target(), SUM);
    let dir = bed.path.join("template");
    let running = Template::capture(&mut server, &dir, settings(&[]));
    assert!(matches!(running, Err(ServerError::StillRunning { .. })), "{running:?}");
    server.stop(StopMode::Fast).unwrap();
    let labels = settings(&[("key", "a")]);
    let (template, captured) = Template::capture(&mut server, &dir, labels.clone()).unwrap();
    assert!(captured.bytes > Bytes::from_mib(20), "{captured:?}");
    assert_eq!(Template::open(&dir).unwrap().manifest(), template.manifest());
    assert_eq!(template.manifest().labels, labels);

    // Twice in the same place, the second over the first, with another size of the log.
    let large = [("innodb_log_file_size", "32M"), ("innodb_buffer_pool_size", "64M")];
    for (pairs, log_ready) in [(small, Bytes::ZERO), (large, Bytes::from_mib(1))] {
        let spec = spec(&bed, "run", &pairs);
        let options = RestoreOptions { log_ready };
        let (mut run, _) = template.restore(&bed.teardown, spec.clone(), &options).unwrap();
        assert!(!run.start().unwrap().recovered);
        assert_eq!(text(&run.target(), SUM), sum);
        let log = fs::metadata(spec.wal.join("ib_logfile0")).unwrap().len();
        assert_eq!(log, if pairs == small { 8 << 20 } else { 32 << 20 });
        let busy = template.restore(&bed.teardown, spec, &options);
        assert!(matches!(busy, Err(ServerError::StillRunning { .. })), "{:?}", busy.err());
        query(&run.target(), "UPDATE shop.t SET text = 'changed' WHERE id < 100").unwrap();
        run.stop(StopMode::Immediate).unwrap();
    }

    // A torn template is none.
    fs::remove_file(dir.join("data/db/shop/t.ibd")).unwrap();
    assert!(matches!(Template::open(&dir), Err(ServerError::BadTemplate { .. })));
}
