//! Batch insertion on both engines: every mode, what a lost server keeps, and what is refused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use underlay_core::RootSeed;
use underlay_database::batch::{
    BatchError, BatchOptions, BatchReport, SessionEnd, describe, drop_schema, insert,
    insert_watched, rows_by_server_clock, verify,
};
use underlay_database::{Engine, ErrorClass, Target};
use underlay_testbed::{TestServer, execute, or_skip};
use underlay_workload::batch::{Claim, Loop, Mode, Parameters};

use super::harness::durable;

const ROWS: u32 = 3000;
/// More than can be inserted before the server is killed.
const ROWS_KILLED: u32 = 5_000_000;

/// All ways that there are.
const WAYS: [(Mode, Loop); 5] = [
    (Mode::Implicit, Loop::Client),
    (Mode::Explicit, Loop::Client),
    (Mode::Bulk, Loop::Client),
    (Mode::Implicit, Loop::Server),
    (Mode::Explicit, Loop::Server),
];

fn options((mode, place): (Mode, Loop), sessions: u32, rollback: bool) -> BatchOptions {
    BatchOptions {
        parameters: Parameters { rows: ROWS, seed: RootSeed(42) },
        mode,
        place,
        sessions,
        rollback,
    }
}

fn assert_verified(target: &Target, report: &BatchReport, rows: u32) {
    let verdict = verify(target, &report.options.parameters, report.claims()).unwrap();
    assert_eq!(verdict.violations, Vec::<String>::new());
    assert_eq!((verdict.rows, &verdict.checksum), (rows, &verdict.expected_checksum));
}

#[test]
fn batches_on_postgresql() {
    let mut running = or_skip!(TestServer::start(Engine::Postgresql, durable(Engine::Postgresql)));
    let target = running.server.target();
    exercise(&mut running, &target, "CREATE SCHEMA batch", "DROP SCHEMA batch", "batch.test");
}

#[test]
fn batches_on_mariadb() {
    let mut running = or_skip!(TestServer::start(Engine::Mariadb, durable(Engine::Mariadb)));
    let target = running.server.target();
    execute(&target, "CREATE DATABASE shop");
    let shop = target.with_database("shop");
    let foreign = ("CREATE TABLE theirs (a int)", "DROP TABLE theirs");
    exercise(&mut running, &shop, foreign.0, foreign.1, "test");
    a_removal_waits_for_what_a_stopped_client_began(&shop);
}

/// Otherwise the table would appear when nobody removes it any more.
fn a_removal_waits_for_what_a_stopped_client_began(shop: &Target) {
    insert(shop, &options(WAYS[2], 1, false), &|| false).unwrap();
    std::thread::scope(|scope| {
        let slow = "BEGIN NOT ATOMIC DO SLEEP(1.5); CREATE TABLE late (a int); END";
        scope.spawn(|| execute(shop, slow));
        std::thread::sleep(Duration::from_millis(500));
        drop_schema(shop).unwrap();
        // There already.
        execute(shop, "DROP TABLE late");
    });
}

fn exercise(running: &mut TestServer, target: &Target, theirs: &str, remove: &str, table: &str) {
    assert!(matches!(describe(target), Err(BatchError::NotThere)));
    refuses_what_others_made(target, theirs, remove);
    every_mode_inserts_the_same_rows(target);
    what_was_changed_is_found(target, table);
    a_rollback_leaves_nothing(target);
    a_stop_is_obeyed(target);
    for way in WAYS {
        a_killed_server_keeps_what_it_acknowledged(running, target, way);
    }
    drop_schema(target).unwrap();
    assert!(matches!(drop_schema(target), Err(BatchError::NotThere)));
}

fn refuses_what_others_made(target: &Target, theirs: &str, remove: &str) {
    execute(target, theirs);
    let wanted = options(WAYS[2], 1, false);
    assert!(matches!(insert(target, &wanted, &|| false), Err(BatchError::Foreign)));
    assert!(matches!(drop_schema(target), Err(BatchError::Foreign)));
    assert!(matches!(describe(target), Err(BatchError::Foreign)));
    execute(target, remove);
}

fn every_mode_inserts_the_same_rows(target: &Target) {
    let mut checksums = Vec::new();
    for (way, sessions) in WAYS.into_iter().zip([1, 3, 1, 2, 1]).chain([(WAYS[2], 2)]) {
        let (mode, place) = way;
        let report = insert(target, &options(way, sessions, false), &|| false).unwrap();
        assert!(report.is_complete(), "{mode}: {:?}", report.failure());
        assert_eq!((report.rows(), report.rows_acknowledged()), (u64::from(ROWS), u64::from(ROWS)));
        assert_eq!(report.rows_per_second.iter().sum::<u64>(), u64::from(ROWS), "{mode}");
        let are_single = mode != Mode::Bulk && place == Loop::Client;
        let statements = if are_single { u64::from(ROWS) } else { 0 };
        assert_eq!(report.insert_latency_ns.count(), statements);
        let commits = match way {
            (Mode::Implicit, Loop::Client) => ROWS,
            (Mode::Implicit, Loop::Server) => 0,
            _ => sessions,
        };
        assert_eq!(report.commit_latency_ns.count(), u64::from(commits), "{mode}");
        let series = rows_by_server_clock(target).unwrap();
        assert_eq!(series.iter().map(|(_, rows)| rows).sum::<u64>(), u64::from(ROWS), "{mode}");
        assert_verified(target, &report, ROWS);
        let described = describe(target).unwrap();
        let told = BatchOptions { place: Loop::Client, ..report.options };
        assert_eq!((described.options, described.complete), (told, true));
        let verdict = verify(target, &report.options.parameters, described.claims()).unwrap();
        assert_eq!(verdict.violation_count, 0);
        checksums.push(verdict.checksum);
    }
    checksums.dedup();
    assert_eq!(checksums.len(), 1);
}

fn what_was_changed_is_found(target: &Target, table: &str) {
    let report = insert(target, &options(WAYS[2], 1, false), &|| false).unwrap();
    let count = || verify(target, &report.options.parameters, report.claims()).unwrap();
    execute(target, &format!("UPDATE {table} SET qty = '1' WHERE rec_num = 7"));
    let verdict = count();
    assert_eq!(verdict.violation_count, 1, "{verdict:?}");
    assert!(verdict.violations[0].starts_with("row 7 "), "{verdict:?}");
    execute(target, &format!("DELETE FROM {table} WHERE rec_num = 7"));
    assert_eq!(count().violation_count, 1);
    execute(target, &format!("DELETE FROM {table} WHERE rec_num = {ROWS}"));
    assert_eq!(count().violation_count, 2);
    execute(target, &format!("UPDATE {table} SET price = NULL WHERE rec_num = 8"));
    // Not a row any more, and so a gap before the next.
    assert_eq!(count().violation_count, 3);
}

fn a_rollback_leaves_nothing(target: &Target) {
    for way in WAYS.into_iter().filter(|(mode, _)| *mode != Mode::Implicit) {
        let report = insert(target, &options(way, 2, true), &|| false).unwrap();
        assert!(report.is_complete(), "{:?}", report.failure());
        assert_eq!((report.rows(), report.rows_acknowledged()), (u64::from(ROWS), 0));
        assert_verified(target, &report, 0);
    }
}

fn a_stop_is_obeyed(target: &Target) {
    let ends = |way| {
        // However long the host takes to come to the first row.
        let taken = AtomicU64::new(0);
        let stop = || taken.load(Ordering::Relaxed) > 0;
        let mut wanted = options(way, 2, false);
        wanted.parameters.rows = ROWS_KILLED;
        let took = |rows| {
            taken.fetch_add(rows, Ordering::Relaxed);
        };
        let report = insert_watched(target, &wanted, &stop, &took).unwrap();
        assert!(report.sessions.iter().all(|session| session.end == SessionEnd::Stopped));
        assert!(!describe(target).unwrap().complete);
        report
    };
    for place in Loop::ALL {
        let implicit = ends((Mode::Implicit, place));
        assert!(implicit.rows_acknowledged() > 0);
        assert_verified(target, &implicit, implicit.rows_acknowledged() as u32);
        let explicit = ends((Mode::Explicit, place));
        assert!(explicit.rows() > 0);
        assert_verified(target, &explicit, 0);
    }
}

/// Implicit transactions keep every acknowledged row, an explicit one and a stream none.
fn a_killed_server_keeps_what_it_acknowledged(
    running: &mut TestServer,
    target: &Target,
    way: (Mode, Loop),
) {
    let mode = way.0;
    let parameters = Parameters { rows: ROWS_KILLED, seed: RootSeed(7) };
    let wanted = BatchOptions { parameters, ..options(way, 2, false) };
    let taken = AtomicU64::new(0);
    let took = |rows| {
        taken.fetch_add(rows, Ordering::Relaxed);
    };
    let report = std::thread::scope(|scope| {
        let inserting = scope.spawn(|| insert_watched(target, &wanted, &|| false, &took).unwrap());
        // However long the host takes to come to the first rows.
        let begin = Instant::now();
        while taken.load(Ordering::Relaxed) <= 10 && begin.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
        running.server.kill().unwrap();
        inserting.join().unwrap()
    });
    for session in &report.sessions {
        match &session.end {
            SessionEnd::Failed(error) => assert_eq!(error.class, ErrorClass::ConnectionLost),
            other => panic!("{mode}: a session ended with {other:?} before the server was killed"),
        }
    }
    assert!(report.rows() > 10, "{mode}: only {} rows before the kill", report.rows());
    running.server.start().unwrap();
    running.server.wait_ready(Duration::from_secs(30)).unwrap();

    let verdict = verify(target, &wanted.parameters, report.claims()).unwrap();
    assert_eq!(verdict.violations, Vec::<String>::new(), "{mode}");
    if mode == Mode::Implicit {
        assert_eq!(report.rows_acknowledged(), report.rows());
        let kept = u64::from(verdict.rows);
        // Of each session a request may be committed and not answered: a row, or all that the server was given.
        let perhaps = if way.1 == Loop::Client { 1 } else { 250 };
        let most = report.rows() + 2 * perhaps;
        assert!((report.rows()..=most).contains(&kept), "{kept} of {}", report.rows());
        // An account of more than was kept does not pass.
        let more = 2 * perhaps as u32;
        let claim =
            |claim: &Claim| Claim { least: claim.least + more, most: claim.most + more, ..*claim };
        let more = report.claims().iter().map(claim).collect();
        assert!(verify(target, &wanted.parameters, more).unwrap().violation_count > 0);
    } else {
        assert_eq!((verdict.rows, report.rows_acknowledged()), (0, 0), "{mode}");
    }
    let described = describe(target).unwrap();
    assert!(!described.complete);
    let verdict = verify(target, &wanted.parameters, described.claims()).unwrap();
    assert_eq!(verdict.violation_count, 0, "{mode}: {:?}", verdict.violations);
}
