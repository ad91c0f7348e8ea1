//! Templates and backups: what is restored is what was there.

use std::collections::BTreeMap;
use std::fs;

use underlay_core::Bytes;
use underlay_database::Engine;
use underlay_database::managed::BackupFormat;
use underlay_database::postgres::{RestoreOptions, Server, ServerError, StopMode, Template};
use underlay_host::page_cache;
use underlay_testbed::{Bed, or_skip, query, settings, text};

use super::harness::{MAKE_ROWS, SUM, spec};

#[test]
fn a_template_restores_to_the_same_rows() {
    let bed = or_skip!(Bed::on_disk(Engine::Postgresql));
    let dir = bed.path.join("template");
    let mut server = Server::create(&bed.teardown, spec(&bed, "one", &[])).unwrap();
    server.start().unwrap();
    query(&server.target(), MAKE_ROWS).unwrap();
    let before = text(&server.target(), SUM);
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
    let other = spec(&bed, "two", &[("work_mem", "9MB")]);
    let options = RestoreOptions { log_ready: Bytes::from_mib(70) };
    let (mut restored, copied) =
        Template::open(&dir).unwrap().restore(&bed.teardown, other.clone(), &options).unwrap();
    assert_eq!(copied.files, captured.files);
    // Four segments of 16 MiB, of which the template may have one.
    let prepared = copied.bytes.0 - captured.bytes.0;
    assert!((48 << 20..=64 << 20).contains(&prepared), "{prepared}");
    assert_eq!(page_cache::cached(&other.data.join("base")).unwrap(), Bytes::ZERO);
    assert_eq!(fs::read_link(other.data.join("pg_wal")).unwrap(), other.wal);
    assert!(!restored.start().unwrap().recovered);
    assert_eq!(text(&restored.target(), SUM), before);
    assert_eq!(text(&restored.tcp_target().unwrap(), "SHOW work_mem"), "9MB");
    // The prepared segments are used, also through a crash.
    query(
        &restored.target(),
        "CREATE TABLE u AS SELECT * FROM t; SELECT pg_switch_wal(); INSERT INTO u SELECT * FROM t",
    )
    .unwrap();
    restored.kill().unwrap();
    assert!(restored.start().unwrap().recovered);
    assert_eq!(text(&restored.target(), "SELECT count(*) FROM u"), "40000");

    // Not over a running server; over a stopped one of ours, yes.
    let options = RestoreOptions { log_ready: Bytes::ZERO };
    let busy = template.restore(&bed.teardown, other.clone(), &options);
    assert!(matches!(busy, Err(ServerError::StillRunning { .. })), "{busy:?}");
    restored.stop(StopMode::Fast).unwrap();
    let (mut again, _) = template.restore(&bed.teardown, other.clone(), &options).unwrap();
    again.start().unwrap();
    assert_eq!(text(&again.target(), "SELECT count(*) FROM pg_class WHERE relname = 'u'"), "0");
    assert_eq!(text(&again.target(), SUM), before);
    again.stop(StopMode::Fast).unwrap();

    // A cluster of somebody else's is left alone.
    fs::remove_file(other.data.join("underlay.cluster")).unwrap();
    let foreign = template.restore(&bed.teardown, other.clone(), &options);
    assert!(matches!(foreign, Err(ServerError::ForeignCluster(_))), "{foreign:?}");
    assert!(other.data.join("PG_VERSION").exists());
}

#[test]
fn a_template_that_is_not_whole_is_refused() {
    let bed = or_skip!(Bed::anywhere(Engine::Postgresql));
    let dir = bed.path.join("template");
    let check = |reason: &str| match Template::open(&dir).unwrap_err() {
        ServerError::BadTemplate { reason: found, .. } => {
            assert!(found.contains(reason), "{found}");
        }
        other => panic!("{other}"),
    };
    check("cannot be read");
    let mut server = Server::create(&bed.teardown, spec(&bed, "torn", &[])).unwrap();
    Template::capture(&mut server, &dir, BTreeMap::new()).unwrap();
    Template::open(&dir).unwrap();
    let control = dir.join("data/global/pg_control");
    let bytes = fs::read(&control).unwrap();
    fs::write(&control, &bytes[..100]).unwrap();
    check("its manifest says");
    fs::write(&control, &bytes).unwrap();
    Template::open(&dir).unwrap();
    fs::write(dir.join("manifest.json"), b"{}").unwrap();
    check("cannot be parsed");
    fs::remove_file(dir.join("manifest.json")).unwrap();
    check("was interrupted");
}

#[test]
fn backups_restore() {
    let bed = or_skip!(Bed::anywhere(Engine::Postgresql));
    let mut server = Server::create(&bed.teardown, spec(&bed, "backup", &[])).unwrap();
    assert!(matches!(server.backup(BackupFormat::Plain), Err(ServerError::NotRunning { .. })));
    server.start().unwrap();
    query(&server.target(), MAKE_ROWS).unwrap();
    let before = text(&server.target(), SUM);
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
        assert_eq!(text(&server.target(), SUM), before, "{format:?}");
    }
    server.stop(StopMode::Fast).unwrap();
}

#[test]
#[ignore = "is a measurement that writes 4 GB; run it alone with --ignored --nocapture"]
fn how_fast_a_template_of_a_gigabyte_is() {
    let bed = or_skip!(Bed::on_disk(Engine::Postgresql));
    let fast = [("fsync", "off"), ("max_wal_size", "4GB"), ("checkpoint_timeout", "1h")];
    let mut server = Server::create(&bed.teardown, spec(&bed, "big", &fast)).unwrap();
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
    let dir = bed.path.join("template");
    let (template, report) = Template::capture(&mut server, &dir, BTreeMap::new()).unwrap();
    rate("capture", report);
    for log_ready in [Bytes::ZERO, Bytes::from_mib(512)] {
        let options = RestoreOptions { log_ready };
        let spec = spec(&bed, "copy", &[]);
        let (mut restored, report) = template.restore(&bed.teardown, spec, &options).unwrap();
        rate(&format!("restore with {log_ready} of prepared WAL"), report);
        eprintln!("start: {:.2} s", restored.start().unwrap().duration.as_secs_f64());
        restored.stop(StopMode::Fast).unwrap();
    }
}
