//! The sessions of a real MariaDB: a row lock that somebody keeps, and a log that everybody waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use underlay_database::mariadb::connect;
use underlay_database::{Engine, Target};
use underlay_telemetry::{Collector, Item, SourceInfo, Status, Targets, WaitKey};
use underlay_testbed::{NoServer, TestServer, execute, or_skip, runtime};

const WAITERS: usize = 3;

async fn session(target: &Target) -> Conn {
    connect(target).await.unwrap()
}

/// Sessions by key, samples, holders by key.
type Seen = (Vec<(WaitKey, u32)>, u32, Vec<(WaitKey, u32)>);

/// What the sampler saw while `work` ran.
fn observed(target: &Target, work: impl FnOnce()) -> Seen {
    let (sink, items) = channel();
    let targets = Targets {
        databases: Vec::new(),
        origin: Instant::now(),
        database: Some(target.clone()),
        processes: Vec::new(),
        cgroup: None,
        volumes: Vec::new(),
        extra: Vec::new(),
    };
    let collector = Collector::start(targets, Duration::from_millis(200), sink);
    // It samples before there is anything to see: a list that is not renewed would hide all that follows.
    thread::sleep(Duration::from_millis(500));
    while items.try_recv().is_ok() {}
    work();
    collector.stop();
    let (mut counts, mut samples, mut holders) = (Vec::new(), 0, Vec::new());
    for item in items.try_iter() {
        if let Item::Waits { counts: seen, samples: taken, holders: found, .. } = item {
            counts.extend(seen);
            samples += taken;
            holders.extend(found);
        }
    }
    (counts, samples, holders)
}

fn sum(counts: &[(WaitKey, u32)], wanted: impl Fn(&WaitKey) -> bool) -> f64 {
    counts.iter().filter(|(key, _)| wanted(key)).map(|(_, count)| f64::from(*count)).sum()
}

/// A server with a table.
fn stand(settings: &[(&str, &str)]) -> Result<TestServer, NoServer> {
    let settings = [&[("innodb_log_file_size", "16M")], settings].concat();
    let stand = TestServer::start(Engine::Mariadb, &settings)?;
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id int PRIMARY KEY, n int) ENGINE=InnoDB",
        "INSERT INTO shop.t SELECT seq, 0 FROM shop.seq_1_to_10",
    ] {
        execute(&stand.target(), sql);
    }
    Ok(TestServer { database: Some("shop"), ..stand })
}

#[test]
fn row_locks_with_their_holders_and_the_log_are_seen() {
    let stand = or_skip!(stand(&[]));
    a_kept_row_lock(&stand.target());
    a_busy_log(&stand.target());
}

/// Whether the server says for what its threads wait is told, with what would make it so.
#[test]
fn without_the_performance_schema_a_note_says_what_is_missing() {
    let stand = or_skip!(stand(&[]));
    let items = items_of(&stand.target(), || thread::sleep(Duration::from_millis(500)));
    let waits = source(&items, "waits").unwrap().1;
    let reason = waits.status.reason().unwrap_or_default();
    assert!(reason.starts_with("performance_schema is off: "), "{reason}");
    let (_, counters) = source(&items, "mariadb").unwrap();
    assert_eq!(counters.status, Status::Available);
    assert!(counters.series.iter().all(|series| series.name.starts_with("status.")));
    assert!(is_noted(&items, "performance_schema = off"), "{items:?}");
}

#[test]
fn the_performance_schema_names_waits_and_files() {
    let on = [
        ("performance_schema", "ON"),
        ("performance_schema_consumer_events_waits_current", "ON"),
        ("performance_schema_instrument", "wait/synch/%=ON"),
    ];
    let stand = or_skip!(stand(&on));
    let target = &stand.target();
    // A wait that lasts as long as we say, and that the thread's state leaves without a class.
    let items = items_of(target, || execute(target, "SELECT sleep(2)"));
    assert_eq!(source(&items, "waits").unwrap().1.status, Status::Available);
    assert!(is_noted(&items, "performance_schema = on"), "{items:?}");
    let counts: Vec<(WaitKey, u32)> = items
        .iter()
        .filter_map(|item| match item {
            Item::Waits { counts, .. } => Some(counts.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    let named = sum(&counts, |key| key.class == "IPC" && key.event.starts_with("Item_func_sleep"));
    assert!(named > 0.0, "the wait was not named: {counts:?}");
    // Counters: starting read data files, and that took time.
    let (number, counters) = source(&items, "mariadb").unwrap();
    let last = items.iter().rev().find_map(|item| match item {
        Item::Tick { source, values, .. } if *source == number => Some(values),
        _ => None,
    });
    let value = |name: &str| {
        let place = counters.series.iter().position(|series| series.name == name);
        last.unwrap()[place.unwrap_or_else(|| panic!("no series {name}"))]
    };
    for name in [
        "file.innodb.innodb_data_file.reads",
        "file.innodb.innodb_data_file.reads.time",
        "file.innodb.innodb_data_file.reads.bytes",
        "waits.io.file.innodb.innodb_data_file",
        "waits.io.file.innodb.innodb_data_file.time",
    ] {
        assert!(value(name) > 0.0, "{name}");
    }
    assert!(counters.series.iter().any(|series| series.name.starts_with("waits.synch.")));
}

/// Everything that is handed over while `work` runs.
fn items_of(target: &Target, work: impl FnOnce()) -> Vec<Item> {
    let (sink, items) = channel();
    let targets = Targets {
        databases: Vec::new(),
        origin: Instant::now(),
        database: Some(target.clone()),
        processes: Vec::new(),
        cgroup: None,
        volumes: Vec::new(),
        extra: Vec::new(),
    };
    let collector = Collector::start(targets, Duration::from_millis(200), sink);
    work();
    collector.stop();
    items.try_iter().collect()
}

/// The latest that was said about a source.
fn source<'a>(items: &'a [Item], name: &str) -> Option<(usize, &'a SourceInfo)> {
    items.iter().rev().find_map(|item| match item {
        Item::Source(number, info) if info.name == name => Some((*number, info)),
        _ => None,
    })
}

fn is_noted(items: &[Item], beginning: &str) -> bool {
    items.iter().any(|item| matches!(item, Item::Note { text, .. } if text.starts_with(beginning)))
}

/// One session changes a row and goes to sleep; others want to change it too.
fn a_kept_row_lock(target: &Target) {
    let (counts, samples, holders) = observed(target, || {
        runtime().block_on(async {
            let mut holder = session(target).await;
            holder.query_drop("BEGIN").await.unwrap();
            holder.query_drop("UPDATE t SET n = n + 1 WHERE id = 1").await.unwrap();
            let waiters = (0..WAITERS).map(|_| async {
                session(target)
                    .await
                    .query_drop("UPDATE t SET n = n + 1 WHERE id = 1")
                    .await
                    .unwrap();
            });
            let keep = async {
                tokio::time::sleep(Duration::from_millis(1500)).await;
                holder.query_drop("COMMIT").await.unwrap();
            };
            futures_util::future::join(futures_util::future::join_all(waiters), keep).await;
        });
    });
    let waiting = sum(&counts, |key| key.class == "Lock" && key.event == "InnodbRow");
    let mean = waiting / f64::from(samples);
    assert!(mean > 0.6 * WAITERS as f64, "{mean} of {WAITERS} waited: {counts:?}");
    let all = sum(&holders, |_| true);
    let idle =
        sum(&holders, |key| key.state.starts_with("idle in transaction") && key.class == "Client");
    assert!(all > 5.0 && idle > 0.9 * all, "the holder slept: {holders:?}");
}

/// Sessions that do nothing but commit, each to a durable log.
fn a_busy_log(target: &Target) {
    let (counts, _, holders) = observed(target, || commit_for(target, Duration::from_millis(1500)));
    let active = sum(&counts, |key| key.state.starts_with("active"));
    let log = sum(&counts, |key| key.event == "InnodbLogFlush");
    // How much of the time is the log's depends on how quick the disk under it is; nothing else is waited for.
    assert!(log > 0.25 * active, "{log} of {active} samples waited for the log: {counts:?}");
    let waits = sum(&counts, |key| key.state.starts_with("active") && !key.class.is_empty());
    // There are some 30 of them on a busy host, where a few threads are caught in the kernel for another reason.
    assert!(log > 0.75 * waits, "{log} of {waits} waits were for the log: {counts:?}");
    let locks = sum(&counts, |key| key.class == "Lock");
    assert!(locks == 0.0 && holders.is_empty(), "nobody was in another's way: {counts:?}");
}

/// Sessions that do nothing but commit.
fn commit_for(target: &Target, time: Duration) {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        for id in 1..=WAITERS {
            let ends = &ends;
            scope.spawn(move || {
                runtime().block_on(async {
                    let mut conn = session(target).await;
                    let sql = format!("UPDATE t SET n = n + 1 WHERE id = {id}");
                    while !ends.load(Ordering::Relaxed) {
                        conn.query_drop(&sql).await.unwrap();
                    }
                });
            });
        }
        thread::sleep(time);
        ends.store(true, Ordering::Relaxed);
    });
}
