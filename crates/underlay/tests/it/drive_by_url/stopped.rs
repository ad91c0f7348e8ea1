//! Ctrl-C where a command waits for somebody else's lock, and in the middle of an insertion.

use std::process::Child;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use rustix::process::{Pid, Signal, kill_process};
use underlay_database::{Engine, mariadb};
use underlay_testbed::number;

use super::{Stranger, size};
use crate::common::Ended;

/// Far longer than a command takes to see that it shall stop.
const LIMIT: Duration = Duration::from_secs(120);

/// Does `work` while a session of the administrator keeps what `sql` locked.
fn while_locked<T>(stranger: &Stranger, sql: &[String], work: impl FnOnce() -> T) -> T {
    let runtime = underlay_testbed::runtime();
    let target = stranger.host.server.target();
    match target.engine {
        Engine::Postgresql => {
            let client = runtime.block_on(target.connect()).unwrap();
            for sql in sql {
                runtime.block_on(client.batch_execute(sql)).expect(sql);
            }
            work()
        }
        Engine::Mariadb => {
            let mut conn = runtime.block_on(mariadb::connect(&target)).unwrap();
            for sql in sql {
                runtime.block_on(conn.query_drop(sql)).expect(sql);
            }
            let result = work();
            runtime.block_on(conn.disconnect()).unwrap();
            result
        }
    }
}

/// Whether a batch insertion has got somewhere.
pub fn has_rows(stranger: &Stranger) -> bool {
    let is_there = "SELECT count(*) FROM information_schema.tables \
                    WHERE table_schema = 'batch' AND table_name = 'test'";
    let target = stranger.host.server.target();
    number(&target, is_there) == 1 && number(&target, "SELECT count(*) FROM batch.test") > 100
}

pub fn wait_until(what: &str, child: &mut Child, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        if let Some(status) = child.try_wait().unwrap() {
            panic!("{what}: the command ended by itself: {status}");
        }
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("{what}: not so after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn interrupt(stranger: &Stranger, mut child: Child, workload: &str) -> Ended {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let signalled = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if signalled.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("{workload}: it did not stop");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = stranger.ended(child, workload);
    assert_eq!(ended.code, Some(130), "{workload}: {}{}", ended.stdout, ended.stderr);
    ended
}

/// A removal and a comparison that wait for a lock.
pub fn what_waits_for_a_lock_can_be_stopped(stranger: &Stranger) {
    let engine = stranger.host.server.target().engine;
    let waiting = || {
        let sql = match engine {
            Engine::Postgresql => "SELECT count(*) FROM pg_locks WHERE NOT granted",
            Engine::Mariadb => {
                "SELECT count(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'"
            }
        };
        number(&stranger.host.server.target(), sql) > 0
    };
    let lock = |table: &str| match engine {
        Engine::Postgresql => {
            vec!["BEGIN".to_string(), format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")]
        }
        Engine::Mariadb => vec![format!("LOCK TABLES {table} WRITE")],
    };
    let sbtest = match engine {
        Engine::Postgresql => "public.sbtest1",
        Engine::Mariadb => "sbtest.sbtest1",
    };
    let begin = |workload: &str, arguments: &[&str]| {
        stranger.command(&stranger.url(), workload, arguments).spawn().unwrap()
    };

    stranger.succeed("sysbench", &[&["--load"][..], size("sysbench")].concat());
    let ended = while_locked(stranger, &lock(sbtest), || {
        let mut child = begin("sysbench", &["--drop"]);
        wait_until("a removal that waits", &mut child, waiting);
        interrupt(stranger, child, "sysbench")
    });
    assert!(ended.stderr.contains("repeat the command to remove the rest"), "{}", ended.stderr);
    // By itself, or by the command: in the end nothing is there.
    let is_gone = || stranger.drive("sysbench", &["--drop"]).code == Some(2);
    assert!((0..20).any(|_| is_gone()), "the tables cannot be dropped");

    stranger.succeed("batch", &[&["--run"][..], size("batch")].concat());
    while_locked(stranger, &lock("batch.test"), || {
        let mut child = begin("batch", &["--check"]);
        wait_until("a comparison that waits", &mut child, waiting);
        interrupt(stranger, child, "batch")
    });
    stranger.succeed("batch", &["--check"]);
    stranger.succeed("batch", &["--drop"]);

    // More rows than can be inserted before the signal.
    let mut child = begin("batch", &["--run", "--rows", "100000000"]);
    wait_until("an insertion", &mut child, || has_rows(stranger));
    let ended = interrupt(stranger, child, "batch");
    for said in ["INCOMPLETE after ", "of 100000000 rows", "; stopped by the user", "none too many"]
    {
        assert!(ended.stdout.contains(said), "`{said}` is missing: {}", ended.stdout);
    }
    stranger.succeed("batch", &["--drop"]);
}
