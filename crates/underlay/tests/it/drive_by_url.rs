//! `underlay drive` against servers that it does not manage and that let nobody in without TLS: every workload, each of
//! its steps. What is not its own stays as it was, and the password is nowhere to be found.

#[allow(dead_code, reason = "the tests of the modes use all of it")]
#[path = "../../../database/tests/it/tls/certificates.rs"]
mod certificates;
mod foreign;

#[path = "drive_by_url/gaps.rs"]
mod gaps;
mod lost_server;
mod rights;
mod stopped;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use self::certificates::Certificates;
use crate::common::{Bench, Ended, cannot_run_servers};
use serde_json::Value;
use underlay_database::Engine;
use underlay_database::managed::Listen;
use underlay_testbed::{Bed, NoServer, TestServer, execute, or_skip, settings};

const WORKLOADS: [&str; 5] = ["tpcc", "sysbench", "dvdstore", "batch", "warehouse"];

/// A server that demands TLS, with its directory.
struct Stranger {
    host: TestServer,
    certificates: Certificates,
    bench: Bench,
}

impl Stranger {
    fn new(engine: Engine) -> Result<Stranger, NoServer> {
        let bed = Bed::on_disk(engine)?;
        let certificates = Certificates::make(&bed.path.join("certificates"));
        let file = |name: &str| certificates.path(name).display().to_string();
        let settings = match engine {
            Engine::Postgresql => settings(&[("fsync", "off")]),
            // By the unambiguous beginnings of their names: of its own accord a managed server has no TLS.
            Engine::Mariadb => settings(&[
                ("ssl_ce", &file("server.pem")),
                ("ssl_k", &file("server.key")),
                ("require_secure", "ON"),
                ("innodb_flush_log_at_trx_commit", "2"),
                ("innodb_doublewrite", "OFF"),
            ]),
        };
        let host = TestServer::start_on(bed, |spec| {
            (spec.settings, spec.listen) = (settings, Listen::Loopback);
        });
        let stranger = Stranger { host, certificates, bench: Bench::new() };
        if engine == Engine::Postgresql {
            stranger.demand_tls();
        }
        Ok(stranger)
    }

    /// PostgreSQL's server learns it while it runs.
    fn demand_tls(&self) {
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        fs::write(self.host.server.log_path().with_file_name("pg_hba.conf"), rules).unwrap();
        for (name, file) in [("ssl_cert_file", "server.pem"), ("ssl_key_file", "server.key")] {
            let file = self.certificates.path(file);
            self.execute("", &format!("ALTER SYSTEM SET {name} = '{}'", file.display()));
        }
        self.execute("", "ALTER SYSTEM SET ssl = on");
        self.execute("", "SELECT pg_reload_conf()");
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while self.drive("tpcc", &["--drop"]).code == Some(4) {
            assert!(std::time::Instant::now() < limit, "the server takes no TLS");
        }
    }

    /// As the administrator, over the Unix socket.
    fn execute(&self, database: &str, sql: &str) {
        let mut target = self.host.server.target();
        if !database.is_empty() {
            target = target.with_database(database);
        }
        execute(&target, sql);
    }

    fn password(&self) -> String {
        self.host.server.tcp_target().unwrap().password.unwrap().reveal().to_string()
    }

    fn url(&self) -> String {
        let tcp = self.host.server.tcp_target().unwrap();
        let roots = self.certificates.path("roots.pem");
        match tcp.engine {
            Engine::Postgresql => format!(
                "postgres://{}@127.0.0.1:{}/postgres?sslmode=verify-full&sslrootcert={}",
                tcp.user,
                tcp.port,
                roots.display()
            ),
            Engine::Mariadb => format!(
                "mysql://{}@127.0.0.1:{}?ssl-mode=verify_identity&ssl-ca={}",
                tcp.user,
                tcp.port,
                roots.display()
            ),
        }
    }

    /// The program, with the password in its environment; everything that it prints is looked through for it.
    fn drive(&self, workload: &str, arguments: &[&str]) -> Ended {
        self.drive_at(&self.url(), workload, arguments)
    }

    fn drive_at(&self, url: &str, workload: &str, arguments: &[&str]) -> Ended {
        self.ended(self.begin_at(url, workload, arguments), workload)
    }

    fn begin_at(&self, url: &str, workload: &str, arguments: &[&str]) -> Child {
        let child = self.command(url, workload, arguments).spawn().expect("the program starts");
        let shown = fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap();
        assert!(
            !shown.contains(&self.password()),
            "the password is in the command line of {workload}"
        );
        child
    }

    fn ended(&self, child: Child, workload: &str) -> Ended {
        let ended = Ended::of(child.wait_with_output().unwrap());
        for (text, what) in [(&ended.stdout, "output"), (&ended.stderr, "messages")] {
            assert!(
                !text.contains(&self.password()),
                "the password is in the {what} of {workload}"
            );
        }
        ended
    }

    fn command(&self, url: &str, workload: &str, arguments: &[&str]) -> Command {
        let variable = match self.host.server.target().engine {
            Engine::Postgresql => "PGPASSWORD",
            Engine::Mariadb => "MYSQL_PWD",
        };
        let mut command = self.bench.underlay();
        command
            .args(["drive", workload, "--url", url])
            .args(arguments)
            .env(variable, self.password())
            .env("HOME", self.bench.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn succeed(&self, workload: &str, arguments: &[&str]) -> Value {
        let ended = self.drive(workload, &[arguments, &["--json"]].concat());
        assert_eq!(
            ended.code,
            Some(0),
            "{workload} {arguments:?}: {}{}",
            ended.stdout,
            ended.stderr
        );
        let value: Value = serde_json::from_str(&ended.stdout).expect("JSON on standard output");
        assert_eq!(value["sessions"]["encrypted"], true, "{workload} {arguments:?}: {value:#}");
        assert_eq!(value["sessions"]["certificate_verified"], "name", "{value:#}");
        value
    }
}

/// The smallest of each workload.
fn size(workload: &str) -> &'static [&'static str] {
    match workload {
        "tpcc" => &["--warehouses", "1"],
        "sysbench" => &["--tables", "2", "--table-size", "1000"],
        "dvdstore" => &["--db-size", "0.01MB"],
        "batch" => &["--rows", "500"],
        _ => &["--scale", "0.01"],
    }
}

fn every_step_of_every_workload(stranger: &Stranger) {
    const BRIEFLY: [&str; 6] = ["--users", "2", "--warm-up", "0s", "--duration", "1s"];
    for workload in WORKLOADS {
        let run: &[&str] = match workload {
            "batch" => &["--run", "--rows", "500"],
            "warehouse" => &["--run", "--streams", "0"],
            _ => &[&["--run"][..], &BRIEFLY].concat(),
        };
        // Each step is a command of its own, as they are apart.
        if workload != "batch" {
            stranger.succeed(workload, &[&["--load"][..], size(workload)].concat());
        }
        stranger.succeed(workload, run);
        stranger.succeed(workload, &["--check"]);
        stranger.succeed(workload, &["--drop"]);
        // Nothing of ours is there any more.
        let again = stranger.drive(workload, &["--drop"]);
        assert_eq!(again.code, Some(2), "{workload}: {}", again.stderr);
    }
}

/// Ctrl-C while a population is loaded that would take minutes: it ends at once, cannot be used by mistake, and can be dropped.
fn a_load_that_is_stopped_is_incomplete(stranger: &Stranger) {
    for (workload, size) in [
        ("tpcc", &["--warehouses", "200"][..]),
        ("sysbench", &["--tables", "2", "--table-size", "50000000"]),
        ("dvdstore", &["--db-size", "1GB"]),
        ("warehouse", &["--scale", "10"]),
    ] {
        let load = [&["--load"][..], size].concat();
        let mut child = stranger.command(&stranger.url(), workload, &load).spawn().unwrap();
        let is_incomplete = || {
            let ended = stranger.drive(workload, &["--check"]);
            assert_ne!(ended.code, Some(0), "{workload}: {}", ended.stdout);
            ended.code == Some(2) && ended.stderr.contains("incomplete")
        };
        while !is_incomplete() {
            assert!(child.try_wait().unwrap().is_none(), "{workload}: it ended by itself");
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let signalled = Instant::now();
        let ended = Ended::of(child.wait_with_output().unwrap());
        assert!(signalled.elapsed() < Duration::from_secs(20), "{workload}");
        assert_eq!(ended.code, Some(130), "{workload}: {}", ended.stderr);
        assert!(ended.stderr.contains("--drop"), "{workload}: {}", ended.stderr);
        assert!(is_incomplete(), "{workload}");
        stranger.succeed(workload, &["--drop"]);
    }
}

/// Tables of somebody else where each workload would put its own, in the default place.
fn what_is_not_ours_stays(stranger: &Stranger) {
    let engine = stranger.host.server.target().engine;
    for workload in WORKLOADS {
        let (place, table) = match (engine, workload) {
            (Engine::Postgresql, "sysbench") => ("public", "sbtest1"),
            (Engine::Mariadb, "sysbench") => ("sbtest", "sbtest1"),
            (_, workload) => (workload, "precious"),
        };
        let (kind, quoted) = match engine {
            Engine::Postgresql => ("SCHEMA", format!("\"{place}\"")),
            Engine::Mariadb => ("DATABASE", format!("`{place}`")),
        };
        stranger.execute("", &format!("CREATE {kind} IF NOT EXISTS {quoted}"));
        stranger.execute("", &format!("CREATE TABLE {quoted}.{table} (a INT)"));
        stranger.execute("", &format!("INSERT INTO {quoted}.{table} VALUES (42)"));
        let load = [&[if workload == "batch" { "--run" } else { "--load" }][..], size(workload)];
        for arguments in [load.concat(), vec!["--drop"]] {
            let ended = stranger.drive(workload, &arguments);
            assert_eq!(ended.code, Some(2), "{workload} {arguments:?}: {}", ended.stderr);
            assert!(ended.stderr.contains("did not"), "{workload} {arguments:?}: {}", ended.stderr);
            let is_named = workload != "sysbench" || ended.stderr.contains("`sbtest1`");
            assert!(is_named, "{}", ended.stderr);
        }
        // It is there, and can be taken away by whoever made it.
        stranger.execute("", &format!("DELETE FROM {quoted}.{table} WHERE a = 42"));
        stranger.execute("", &format!("DROP TABLE {quoted}.{table}"));
    }
}

/// Before anything is loaded or driven, with what would fit.
fn too_many_users_are_refused(stranger: &Stranger) {
    let ended = stranger.drive("tpcc", &["--load", "--run", "--users", "99000"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for said in ["99000 users need 99000 connections", "add --connections"] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    assert_eq!(stranger.drive("tpcc", &["--drop"]).code, Some(2), "nothing was loaded");
}

/// No file that the commands wrote holds the password.
fn the_password_is_in_no_file(stranger: &Stranger) {
    let password = stranger.password();
    let mut folders = vec![stranger.bench.path().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let bytes = fs::read(entry.path()).unwrap();
            let is_there = bytes.windows(password.len()).any(|text| text == password.as_bytes());
            assert!(!is_there, "the password is in {}", entry.path().display());
        }
    }
}

/// A server of an engine for what `scenes` do one after the other, and a look for its password afterwards.
fn at_a_stranger(engine: Engine, scenes: &[fn(&Stranger)]) {
    if let Some(reason) = cannot_run_servers() {
        underlay_host::skip!("{reason}");
    }
    let stranger = or_skip!(Stranger::new(engine));
    scenes.iter().for_each(|scene| scene(&stranger));
    the_password_is_in_no_file(&stranger);
}

const STEPS: [fn(&Stranger); 5] = [
    every_step_of_every_workload,
    a_load_that_is_stopped_is_incomplete,
    stopped::what_waits_for_a_lock_can_be_stopped,
    too_many_users_are_refused,
    what_is_not_ours_stays,
];

const RUNS: [fn(&Stranger); 3] = [
    gaps::what_was_not_delivered_ends_with_exit_code_6,
    gaps::tables_of_a_running_load_are_not_dropped,
    gaps::a_run_is_recorded,
];

const FOREIGN: [fn(&Stranger); 5] = [
    foreign::tables_are_replaced_only_by_name,
    foreign::what_is_in_use_is_not_replaced,
    foreign::the_servers_own_databases_are_refused,
    foreign::tpcc_of_others_is_checked_as_it_is,
    foreign::sysbench_of_others_is_driven_as_far_as_it_goes,
];

const RIGHTS: [fn(&Stranger); 2] =
    [rights::who_lacks_rights_is_told_which, rights::a_run_that_is_not_allowed_is_no_result];

#[test]
fn steps_at_a_postgresql_that_demands_tls() {
    at_a_stranger(Engine::Postgresql, &STEPS);
}

#[test]
fn steps_at_a_mariadb_that_demands_tls() {
    at_a_stranger(Engine::Mariadb, &STEPS);
}

#[test]
fn runs_at_a_postgresql_that_demands_tls() {
    at_a_stranger(Engine::Postgresql, &RUNS);
}

#[test]
fn runs_at_a_mariadb_that_demands_tls() {
    at_a_stranger(Engine::Mariadb, &RUNS);
}

#[test]
fn foreign_tables_in_a_postgresql() {
    at_a_stranger(Engine::Postgresql, &FOREIGN);
}

#[test]
fn foreign_tables_in_a_mariadb() {
    at_a_stranger(Engine::Mariadb, &FOREIGN);
}

#[test]
fn rights_in_a_postgresql() {
    at_a_stranger(Engine::Postgresql, &RIGHTS);
}

#[test]
fn rights_in_a_mariadb() {
    at_a_stranger(Engine::Mariadb, &RIGHTS);
}
