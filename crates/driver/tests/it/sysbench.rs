//! Sysbench's transactions on a real PostgreSQL and a real MariaDB: every script, a server that is killed under them,
//! and Debian's sysbench on our tables and ours on its.

use std::process::Command;
use std::time::{Duration, Instant};

use underlay_core::RootSeed;
use underlay_database::sysbench::{
    Session, SysbenchConnector, SysbenchError, Tally, check, describe, drop_tables, load,
    prepare_bulk, tally,
};
use underlay_database::{Address, Engine, ErrorClass};
use underlay_driver::{DriveSpec, DriveSummary, Driver, Mix, ServerCpu, Weights};
use underlay_testbed::{TestServer, or_skip, texts};
use underlay_workload::sysbench::{
    Distribution, Outcome, Parameters, SHAPE, Script, Sysbench, SysbenchAccounting,
};
use underlay_workload::transactional::Workload;

use crate::support::{commits, small, work_until};

const USERS: u32 = 4;

fn parameters(script: Script) -> Parameters {
    Parameters::new(3, 2_000, RootSeed(5), Distribution::Special, script).unwrap()
}

fn wait<T>(host: &TestServer, work: impl Future<Output = T>) -> T {
    host.bed.runtime.block_on(work)
}

/// Carries out statements in turn and returns the first column of the first row of the last, a number.
fn execute(host: &TestServer, statements: &[&str]) -> Option<i64> {
    let answers: Vec<_> = statements.iter().map(|sql| texts(&host.target(), sql)).collect();
    answers.last()?.first().map(|text| text.parse().unwrap())
}

fn tally_now(host: &TestServer) -> Tally {
    wait(host, tally(&host.target(), &parameters(Script::ReadWrite))).unwrap()
}

fn drive(host: &TestServer, script: Script) -> DriveSummary<SysbenchAccounting> {
    let connector = SysbenchConnector::new(host.target(), parameters(script));
    let spec = DriveSpec::new(RootSeed(9), USERS);
    let driver = Driver::start(spec, connector, Instant::now()).unwrap();
    driver.set_users(USERS);
    work_until(&driver, 20);
    driver.stop()
}

fn assert_clean(host: &TestServer, run: Option<(&Tally, &SysbenchAccounting)>, when: &str) {
    let parameters = parameters(Script::ReadWrite);
    let results = wait(host, check(&host.target(), &parameters, run)).unwrap();
    let of_run = run.map_or(0, |(_, accounting)| 1 + usize::from(accounting.k_added().is_some()));
    assert_eq!(results.len(), 2 + of_run);
    for result in results {
        assert_eq!(result.violation, None, "{}, {when}", result.check.id());
    }
}

#[test]
fn real_tables_of_postgresql_are_driven_by_both() {
    all_scenes(Engine::Postgresql);
}

#[test]
fn real_tables_of_mariadb_are_driven_by_both() {
    all_scenes(Engine::Mariadb);
}

/// One server for all scenes: starting it costs more than most of them.
fn all_scenes(engine: Engine) {
    let mut host = or_skip!(TestServer::start(engine, small(engine)));
    if engine == Engine::Mariadb {
        execute(&host, &["CREATE DATABASE scenes"]);
        host.database = Some("scenes");
    }
    divided_tables_are_like_whole_ones(&host);
    bulk_tables_of_others_are_left_alone(&host);
    let described = wait(&host, describe(&host.target())).unwrap();
    assert_eq!(described.parameters, parameters(Script::ReadWrite));
    every_script_does_what_it_says(&host);
    loads_are_driven_and_accounted_for(&host);
    weights_change_under_way(&host);
    processor_time_is_told_by_type(&host);
    a_killed_server_keeps_what_it_acknowledged(&mut host);
    broken_tables_are_caught(&host);
    sysbench_drives_our_tables(&host);
    we_drive_sysbenchs_tables(&host);
}

/// More connections than tables divide them; with fewer each table is one connection's, whose tables stay.
fn divided_tables_are_like_whole_ones(host: &TestServer) {
    let mut tallies = Vec::new();
    for loaders in [5, 2] {
        if loaders == 2 {
            wait(host, drop_tables(&host.target())).unwrap();
        }
        let loaded = load(&host.target(), &parameters(Script::ReadWrite), loaders).unwrap();
        assert_eq!(loaded.rows, 6_000);
        assert!(loaded.bytes > 6_000 * 180, "{loaded:?}");
        tallies.push(tally_now(host));
        assert_clean(host, None, "after a load");
        if host.target().engine == Engine::Postgresql {
            // Pages without a row stay where several connections made a table longer at once.
            for table in ["sbtest1", "sbtest2", "sbtest3"] {
                let unseen = format!(
                    "SELECT greatest((SELECT count(DISTINCT (ctid::text::point)[0]) FROM {table}) - relallvisible, 0) \
                       FROM pg_class WHERE oid = '{table}'::regclass"
                );
                assert_eq!(execute(host, &[&unseen]), Some(0), "{table}: not all may see all rows");
            }
        }
        // Keys and numbers go on where the load ended.
        let insert = "INSERT INTO sbtest2 (k, c, pad) VALUES (1, '', '')";
        execute(host, &[insert]);
        let next = "SELECT count(*) FROM sbtest2 WHERE id = 2001";
        assert_eq!(execute(host, &[next]), Some(1), "{loaders} loaders");
        execute(host, &["DELETE FROM sbtest2 WHERE id = 2001"]);
    }
    assert_eq!(tallies[0].rows, 6_000);
    assert_eq!(tallies[0], tallies[1]);
}

/// A table that happens to have such a name is neither emptied nor dropped.
fn bulk_tables_of_others_are_left_alone(host: &TestServer) {
    let target = host.target();
    execute(
        host,
        &["CREATE TABLE sbtest_bulk2 (id INTEGER)", "INSERT INTO sbtest_bulk2 VALUES (7)"],
    );
    let refused = wait(host, prepare_bulk(&target, 2)).unwrap_err().to_string();
    assert!(refused.contains("`sbtest_bulk2` that underlay did not create"), "{refused}");
    wait(host, prepare_bulk(&target, 1)).unwrap();
    execute(host, &["INSERT INTO sbtest_bulk1 (id) VALUES (1)"]);
    wait(host, prepare_bulk(&target, 1)).unwrap();
    assert_eq!(execute(host, &["SELECT count(*) FROM sbtest_bulk1"]), Some(0), "emptied again");
    wait(host, drop_tables(&target)).unwrap();
    assert_eq!(execute(host, &["SELECT count(*) FROM sbtest_bulk2"]), Some(1));
    // Not ours any more, so it is there to be created.
    execute(host, &["CREATE TABLE sbtest_bulk1 (id INTEGER)", "DROP TABLE sbtest_bulk1"]);
    execute(host, &["DROP TABLE sbtest_bulk2"]);
    load(&target, &parameters(Script::ReadWrite), 2).unwrap();
}

fn every_script_does_what_it_says(host: &TestServer) {
    let target = host.target();
    wait(host, prepare_bulk(&target, 1)).unwrap();
    host.bed.runtime.block_on(async {
        let mut session = Session::connect(&target, 3).await.unwrap();
        for script in Script::ALL {
            let mut user = Sysbench::new(parameters(script)).user(0, RootSeed(2));
            let transaction = user.next_of(&Mix::Prescribed);
            let outcome = session.run(&transaction).await.unwrap();
            // Every id is there but the one that `delete` takes, and `delete` comes after the others.
            let expected = Sysbench::imagined(&transaction);
            assert_eq!(Outcome { rows_read: 0, ..outcome }, expected, "{script}");
            let reads =
                matches!(script, Script::ReadWrite | Script::ReadOnly | Script::PointSelect);
            assert_eq!(outcome.rows_read > 0, reads, "{script}: {outcome:?}");
        }
    });
    let counted = execute(host, &["SELECT count(*) FROM sbtest_bulk1 WHERE id BETWEEN 1 AND 1000"]);
    assert_eq!(counted, Some(1_000));
}

fn loads_are_driven_and_accounted_for(host: &TestServer) {
    for script in [Script::ReadWrite, Script::UpdateIndex, Script::Insert, Script::Delete] {
        let before = tally_now(host);
        let counted = commits::counted(host);
        let summary = drive(host, script);
        commits::assert_said_truly(host, counted, &summary);
        let counts = summary.totals.of(script.index());
        assert!(counts.committed > 20, "{script}: {:?}", summary.totals.samples);
        // `read_write` takes its rows in no order, and deletes one to insert it again: one of two users may have to
        // give way. Whoever tries again in time has not failed.
        let errors = |class| counts.errors.of(class);
        let given_way = match script {
            Script::ReadWrite => errors(ErrorClass::Deadlock) + errors(ErrorClass::Serialization),
            _ => 0,
        };
        assert!(counts.failed <= given_way, "{counts:?}, {:?}", summary.totals.samples);
        assert_eq!(counts.unknown, 0, "{:?}", summary.totals.samples);
        assert_eq!(summary.accounting.k_added().is_some(), script == Script::UpdateIndex);
        assert_clean(host, Some((&before, &summary.accounting)), script.as_str());
    }
}

fn weights_change_under_way(host: &TestServer) {
    let connector = SysbenchConnector::new(host.target(), parameters(Script::ReadOnly));
    let driver =
        Driver::start(DriveSpec::new(RootSeed(9), USERS), connector, Instant::now()).unwrap();
    driver.set_users(USERS);
    let of = |tick: &underlay_driver::DriveTick, script: Script| tick.of(script.index()).committed;
    // Sessions are opened first, which on a busy host takes its time.
    let (mut reads, mut selects) = (0, 0);
    let end = Instant::now() + Duration::from_secs(20);
    while reads == 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(300));
        let tick = driver.tick();
        reads += of(&tick, Script::ReadOnly);
        selects += of(&tick, Script::PointSelect);
    }
    assert!(reads > 0 && selects == 0, "{reads} reads, {selects} selects");
    let weights = Weights::parse("point_select=3,update_non_index=1", &SHAPE).unwrap();
    driver.set_mix(Mix::Weighted(weights)).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    driver.tick();
    std::thread::sleep(Duration::from_millis(500));
    let second = driver.tick();
    driver.stop();
    assert_eq!(of(&second, Script::ReadOnly), 0);
    let (selects, updates) =
        (of(&second, Script::PointSelect), of(&second, Script::UpdateNonIndex));
    let share = selects as f64 / (selects + updates) as f64;
    assert!((0.65..0.85).contains(&share), "{selects} selects, {updates} updates");
}

/// A transaction of 14 statements, 400 rows of them in ranges, and one of a single row.
fn processor_time_is_told_by_type(host: &TestServer) {
    let measured = |server_is_here: bool| {
        let connector = SysbenchConnector::new(host.target(), parameters(Script::ReadOnly));
        let spec = DriveSpec { server_is_here, ..DriveSpec::new(RootSeed(9), USERS) };
        let driver = Driver::start(spec, connector, Instant::now()).unwrap();
        let weights = Weights::parse("point_select=1,read_only=1", &SHAPE).unwrap();
        driver.set_mix(Mix::Weighted(weights)).unwrap();
        driver.set_users(USERS);
        work_until(&driver, 400);
        let summary = driver.stop();
        [Script::PointSelect, Script::ReadOnly].map(|script| {
            let counts = summary.totals.of(script.index());
            assert!(counts.server_cpu.transactions <= counts.completed());
            counts.server_cpu
        })
    };
    let [short, long] = measured(true);
    assert!(short.transactions > 10 && long.transactions > 10, "{short:?}, {long:?}");
    let mean = |cpu: ServerCpu| cpu.ns as f64 / cpu.transactions as f64;
    assert!(mean(short) > 1e3, "{short:?}");
    assert!(mean(long) > 3.0 * mean(short), "{short:?}, {long:?}");
    assert_eq!(measured(false), [ServerCpu::default(); 2], "a server elsewhere");
}

fn a_killed_server_keeps_what_it_acknowledged(host: &mut TestServer) {
    let before = tally_now(host);
    let connector = SysbenchConnector::new(host.target(), parameters(Script::Insert));
    let driver =
        Driver::start(DriveSpec::new(RootSeed(9), USERS), connector, Instant::now()).unwrap();
    driver.set_users(USERS);
    std::thread::sleep(Duration::from_millis(500));
    host.server.kill().unwrap();
    host.server.start().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    let summary = driver.stop();
    assert_eq!(summary.outages.len(), 1, "{:?}", summary.outages);
    assert!(summary.outages[0].recovered.is_some());
    assert!(summary.accounting.perhaps_inserted <= u64::from(USERS));
    assert_clean(host, Some((&before, &summary.accounting)), "after a kill");
}

fn broken_tables_are_caught(host: &TestServer) {
    let violated = |break_it: &[&str], mend: &[&str]| {
        let before = tally_now(host);
        let parameters = parameters(Script::ReadWrite);
        let run = Some((&before, &SysbenchAccounting::default()));
        execute(host, break_it);
        let found = wait(host, check(&host.target(), &parameters, run)).unwrap();
        execute(host, mend);
        found.iter().filter(|r| r.violation.is_some()).map(|r| r.check.id()).collect::<Vec<_>>()
    };
    assert_eq!(
        violated(
            &["UPDATE sbtest2 SET k = k + 1 WHERE id = 7"],
            &["UPDATE sbtest2 SET k = k - 1 WHERE id = 7"]
        ),
        ["k"]
    );
    assert_eq!(
        violated(
            &[
                "CREATE TABLE kept AS SELECT c FROM sbtest3 WHERE id = 8",
                "UPDATE sbtest3 SET c = 'x' WHERE id = 8"
            ],
            &["UPDATE sbtest3 SET c = (SELECT c FROM kept) WHERE id = 8", "DROP TABLE kept"]
        ),
        ["texts"]
    );
    assert_eq!(
        violated(
            &[
                "CREATE TABLE kept AS SELECT * FROM sbtest1 WHERE id = 9",
                "DELETE FROM sbtest1 WHERE id = 9"
            ],
            &["INSERT INTO sbtest1 SELECT * FROM kept", "DROP TABLE kept"]
        ),
        ["rows", "k"]
    );
    assert_clean(host, None, "after mending");
}

/// Debian's sysbench with the server's address; none where it is not installed.
fn sysbench(host: &TestServer, script: &str, action: &str) -> Option<std::process::Output> {
    let target = host.target();
    let Address::UnixSocket(socket) = &target.address else { panic!("{target}") };
    let (socket, user) = (socket.display(), &target.user);
    let database = &target.database;
    let place = match target.engine {
        Engine::Postgresql => vec![
            "--db-driver=pgsql".to_string(),
            format!("--pgsql-host={socket}"),
            format!("--pgsql-port={}", target.port),
            format!("--pgsql-user={user}"),
            format!("--pgsql-db={database}"),
        ],
        Engine::Mariadb => vec![
            "--db-driver=mysql".to_string(),
            format!("--mysql-socket={socket}"),
            format!("--mysql-user={user}"),
            format!("--mysql-db={database}"),
        ],
    };
    let output = Command::new("sysbench")
        .args([script, "--tables=3", "--table-size=2000", "--threads=2", "--time=1"])
        .args(place)
        .arg(action)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "sysbench {script} {action}: {text}");
    Some(output)
}

fn sysbench_drives_our_tables(host: &TestServer) {
    for script in ["oltp_read_write", "oltp_read_only", "oltp_insert", "oltp_update_index"] {
        let Some(output) = sysbench(host, script, "run") else {
            eprintln!("skip: no sysbench on PATH; its half of the test is not made");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("transactions:") && text.contains("ignored errors:"), "{text}");
        assert_clean(host, None, script);
    }
}

fn we_drive_sysbenchs_tables(host: &TestServer) {
    wait(host, drop_tables(&host.target())).unwrap();
    let absent = wait(host, drop_tables(&host.target()));
    assert!(matches!(absent, Err(SysbenchError::NotLoaded)), "{absent:?}");
    if sysbench(host, "oltp_read_write", "prepare").is_none() {
        return;
    }
    let refused = load(&host.target(), &parameters(Script::ReadWrite), 1);
    assert!(matches!(refused, Err(SysbenchError::Foreign { .. })), "{refused:?}");
    let refused = wait(host, drop_tables(&host.target()));
    assert!(matches!(refused, Err(SysbenchError::Foreign { .. })), "{refused:?}");
    for script in [Script::ReadWrite, Script::ReadOnly, Script::Insert] {
        let before = tally_now(host);
        let summary = drive(host, script);
        assert!(summary.totals.of(script.index()).committed > 20, "{:?}", summary.totals.samples);
        assert_clean(host, Some((&before, &summary.accounting)), "on sysbench's tables");
    }
    sysbench(host, "oltp_read_write", "cleanup");
}
