//! Backups on both engines: taken while transactions run, restored over a killed server, and judged by the
//! conditions of TPC-C and by what its users were told.

use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::runtime::Runtime;
use underlay_core::{Bytes, RootSeed};
use underlay_database::managed::{BackupFormat, BackupReport, ServerError, StopMode, Watch};
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, LoadOptions, Mode, OrderNumbers, Session, TableNames, check, load,
    order_numbers,
};
use underlay_database::{Engine, Target};
use underlay_testbed::{ONE_WAREHOUSE, TestServer, execute, or_skip, parameters, runtime};
use underlay_workload::tpcc::{Ledger, Parameters, Terminal, Transaction};

use super::harness::durable;

/// Sessions beside the backup.
const SESSIONS: u64 = 4;
/// How long they run at least before and after it.
const ALONE: Duration = Duration::from_millis(300);

/// An order that was acknowledged.
struct Order {
    sent: Instant,
    acknowledged: Instant,
    warehouse: u32,
    district: u32,
    id: u32,
}

struct Backup {
    begin: Instant,
    end: Instant,
    report: BackupReport,
}

#[test]
fn backups_under_load_on_postgresql() {
    exercise(Engine::Postgresql);
}

#[test]
fn backups_under_load_on_mariadb() {
    exercise(Engine::Mariadb);
}

#[test]
fn a_copy_beside_postgresql_takes_its_place() {
    copy(Engine::Postgresql);
}

#[test]
fn a_copy_beside_mariadb_takes_its_place() {
    copy(Engine::Mariadb);
}

/// Restored while the server runs, and used in its place afterwards; a backup that is stopped leaves nothing.
fn copy(engine: Engine) {
    let mut running = or_skip!(TestServer::start(engine, durable(engine)));
    let server = &mut running.server;
    let target = match engine {
        Engine::Postgresql => server.target(),
        Engine::Mariadb => {
            execute(&server.target(), "CREATE DATABASE shop");
            server.target().with_database("shop")
        }
    };
    execute(&target, "CREATE TABLE marks (id int PRIMARY KEY)");
    let tools = server.backup_tools();
    let stopped = tools.take(None, &Watch { stop: &|| true, written: &|_| {} });
    assert!(matches!(stopped, Err(ServerError::Stopped { .. })), "{stopped:?}");

    let written = Cell::new(Bytes::ZERO);
    let watch = Watch { stop: &|| false, written: &|bytes| written.set(bytes) };
    let backup = tools.take(None, &watch).unwrap();
    assert_eq!(written.get(), backup.bytes);
    let backups = fs::read_dir(backup.path.parent().unwrap()).unwrap();
    assert_eq!(backups.count(), 1, "the stopped one left something");
    // Its program counts data files only, and some of them in small pieces.
    let rate = backup.bytes.0 / 2;
    let limited = tools.take(Some(rate), &watch).unwrap();
    assert!(limited.duration > Duration::from_secs(1), "{limited:?}");
    tools.remove(&limited).unwrap();
    execute(&target, "INSERT INTO marks VALUES (1)");
    let stopped = tools.restore_copy(&backup, &Watch { stop: &|| true, written: &|_| {} });
    assert!(matches!(stopped, Err(ServerError::Stopped { .. })), "{stopped:?}");
    // A copy replaces one that is there, also one that is incomplete.
    let copy = tools.restore_copy(&backup, &watch).unwrap();
    let (restored, archived) = (copy.report.bytes, backup.bytes);
    assert!(
        restored > Bytes::from_mib(10) && restored.0 > archived.0 / 2,
        "{restored} of {archived}"
    );
    assert!(copy.report.began > backup.began);
    // The server was not disturbed.
    execute(&target, "INSERT INTO marks VALUES (2)");
    assert!(matches!(server.adopt(&copy), Err(ServerError::StillRunning { .. })));

    server.stop(StopMode::Fast).unwrap();
    server.adopt(&copy).unwrap();
    server.start().unwrap();
    let target = match engine {
        Engine::Postgresql => server.target(),
        Engine::Mariadb => server.target().with_database("shop"),
    };
    // Of what came after the backup nothing is there; these would be duplicates.
    execute(&target, "INSERT INTO marks VALUES (1), (2)");
    tools.remove(&backup).unwrap();
    assert!(!backup.path.exists() && copy.data.exists());
    server.stop(StopMode::Fast).unwrap();
}

fn exercise(engine: Engine) {
    let mut running = or_skip!(TestServer::start(engine, durable(engine)));
    if engine == Engine::Mariadb {
        running.database = Some("tpcc");
    }
    let parameters = parameters(ONE_WAREHOUSE);
    let options = LoadOptions { parallel: 2, progress: &|_| {} };
    // Not a copy of a loaded database: its server has read nothing yet, and is slow at first.
    load(&running.target(), &parameters, &options).unwrap();
    let (target, server, runtime) = (running.target(), &mut running.server, &running.bed.runtime);
    let numbers =
        |target: &Target| runtime.block_on(order_numbers(target, &TableNames::of(engine))).unwrap();
    let before = numbers(&target);

    let (ends, ordered) = (AtomicBool::new(false), AtomicU64::new(0));
    let (backup, orders) = thread::scope(|scope| {
        let users = scope.spawn(|| use_until(&target, &parameters, &ends, &ordered));
        thread::sleep(ALONE);
        // A server that has read nothing yet may need longer for its first orders.
        let begin = Instant::now();
        while ordered.load(Ordering::Relaxed) <= 20 && begin.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(10));
        }
        let begin = Instant::now();
        let report = server.backup(BackupFormat::Archive).unwrap();
        let backup = Backup { begin, end: Instant::now(), report };
        thread::sleep(ALONE);
        ends.store(true, Ordering::Relaxed);
        (backup, users.join().unwrap())
    });
    let last = numbers(&target).sum();
    let report = &backup.report;
    assert!(report.path.parent().unwrap().ends_with("backup/db"), "{report:?}");
    assert!(report.bytes > Bytes::from_mib(50) && report.bytes_per_second() > 0.0);
    assert!(matches!(server.restore(report), Err(ServerError::StillRunning { .. })));

    server.kill().unwrap();
    let restored = server.restore(report).unwrap();
    assert!(restored.bytes > Bytes::from_mib(50), "{restored:?}");
    server.start().unwrap();
    assert_holds(runtime, &target, &ledger_at(&backup, &orders), &before);
    let at_backup = numbers(&target).sum();
    assert!(at_backup < last, "what came after the backup is still there");
    server.stop(StopMode::Fast).unwrap();
    // A restore leaves the backup as it was.
    server.restore(report).unwrap();
    server.start().unwrap();
    assert_eq!(numbers(&target).sum(), at_backup);
    server.stop(StopMode::Fast).unwrap();
    assert!(matches!(server.backup(BackupFormat::Plain), Err(ServerError::NotRunning { .. })));
}

/// What a backup must hold: all that was acknowledged when it began. What was under way until it ended
/// may be in it.
fn ledger_at(backup: &Backup, orders: &[Order]) -> Ledger {
    let mut ledger = Ledger::new();
    for order in orders {
        if order.acknowledged < backup.begin {
            ledger.acknowledge(order.warehouse, order.district, order.id);
        } else if order.sent < backup.end {
            ledger.unknown(order.warehouse, order.district);
        }
    }
    assert!(ledger.acknowledged_count() > 10 && ledger.unknown_count() > 10);
    ledger
}

fn assert_holds(runtime: &Runtime, target: &Target, ledger: &Ledger, before: &OrderNumbers) {
    let tables = TableNames::of(target.engine);
    let options = CheckOptions {
        warehouses: 1,
        parallel: 2,
        moment: CheckMoment::AfterRun,
        ledger: Some((ledger, before)),
        tables: &tables,
    };
    let report = runtime.block_on(check(target, options)).unwrap();
    assert!(report.is_clean(), "{:#?}", report.failures().collect::<Vec<_>>());
    assert_eq!(report.results.len(), 22);
}

/// The orders of all sessions until `ends`, counted in `ordered` meanwhile. Any error fails the test.
fn use_until(
    target: &Target,
    parameters: &Parameters,
    ends: &AtomicBool,
    ordered: &AtomicU64,
) -> Vec<Order> {
    let sessions = (0..SESSIONS).map(|user| async move {
        let mut session = Session::connect(target, parameters, Mode::Procedures).await.unwrap();
        let mut terminal = Terminal::with_inputs(parameters, user, RootSeed(7));
        let mut orders = Vec::new();
        while !ends.load(Ordering::Relaxed) {
            let transaction = terminal.next();
            let sent = Instant::now();
            let outcome = session.run(&transaction).await.unwrap();
            if let (Transaction::NewOrder(order), Some(id)) = (transaction, outcome.order_id) {
                let (warehouse, district) = (order.warehouse, order.district);
                let acknowledged = Instant::now();
                orders.push(Order { sent, acknowledged, warehouse, district, id });
                ordered.fetch_add(1, Ordering::Relaxed);
            }
        }
        orders
    });
    runtime().block_on(join_all(sessions)).into_iter().flatten().collect()
}
