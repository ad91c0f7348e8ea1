//! Backup and restore cycles as the workload of studies, with the engines' own programs: what is measured, that the restored
//! copy is what is checked, and that nothing is left behind, also of a backup that is interrupted or killed.

use crate::common::{Bench, Ended, cannot_run_servers, control_groups_of};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use underlay_database::mariadb::find_installs;

/// Two devices that differ in rate alone, slow enough that one can look at a backup.
const STUDY: &str = r#"
name = "backups"
title = "Backups"
question = "Do faster devices make faster backups?"

[engine]
memory-limit = "192MiB"

[engine.settings]
shared_buffers = "48MB"
max_wal_size = "256MB"

[volumes.data]
capacity = "1GiB"

[volumes.wal]
capacity = "512MiB"

[volumes.backup]
capacity = "512MiB"

[[design]]
use = "kingston-sata-5200eco"
name = "quick"

[design.datastore.emulated]
devices = [{ name = "sata", profile = "5200eco-1920", overrides = { divisor = 4 } }]

[[design]]
use = "kingston-sata-5200eco"
name = "slow"

[design.datastore.emulated]
devices = [{ name = "sata", profile = "5200eco-1920", overrides = { divisor = 16 } }]

[workload.backup]
warehouses = 1
cycles = 2

[procedure]
settle = "0s"
repeats = 1
"#;

/// The same with MariaDB.
fn on_mariadb() -> String {
    let engine = "kind = \"mariadb\"\nmemory-limit = \"320MiB\"";
    let settings = "innodb_buffer_pool_size = \"64M\"\ninnodb_log_file_size = \"64M\"";
    STUDY
        .replace("memory-limit = \"192MiB\"", engine)
        .replace("shared_buffers = \"48MB\"\nmax_wal_size = \"256MB\"", settings)
}

/// Says why a test cannot run here; the caller returns.
fn cannot_back_up_mariadb() -> Option<&'static str> {
    match cannot_run_servers() {
        None if find_installs(None, None).is_empty() => Some("needs MariaDB's server programs"),
        None if underlay_host::find_program("mariadb-backup").is_none() => {
            Some("needs mariadb-backup")
        }
        reason => reason,
    }
}

fn run(bench: &Bench, study: &str, options: &[&str]) -> Value {
    bench.write("backups.toml", study);
    let arguments = ["run", "backups.toml", "--out", "b.sqlite", "--no-progress", "--json"];
    let ended = bench.run(&[&arguments[..], options].concat());
    let analysis = ended.expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    serde_json::from_str(&analysis).expect("JSON on standard output")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"))
}

/// What must hold of the operations of a record, whichever the engine.
fn assert_operations(analysis: &Value, designs: usize) {
    let operations = analysis["operations"].as_array().expect("operations");
    assert_eq!(operations.len(), designs * 4, "two backups and two restores of each design");
    for operation in operations {
        let (seconds, rate) = (
            number(&operation["seconds"]["value"]),
            number(&operation["bytes_per_second"]["value"]),
        );
        // A warehouse with its system tables.
        let bytes = seconds * rate;
        assert!((90e6..600e6).contains(&bytes), "{bytes} bytes: {operation:#}");
        for latency in ["read_latency_ns", "write_latency_ns"] {
            assert!(number(&operation[latency]["value"]) > 0.0, "{latency} of {operation:#}");
        }
    }
    for rung in analysis["rungs"].as_array().expect("rungs") {
        for metric in ["backup_latency_ns", "restore_latency_ns"] {
            assert!(number(&rung["metrics"][metric]["value"]) > 0.0, "{metric} of {rung:#}");
        }
    }
    let events = analysis["runs"][0]["events"].as_array().expect("events");
    let spans: Vec<&Value> = events.iter().filter(|event| event["kind"] == "operation").collect();
    assert_eq!(spans.len(), 4);
    let text = |span: &Value| span["text"].as_str().expect("a text").to_string();
    let begins = ["backup 1: ", "restore 1: ", "backup 2: ", "restore 2: "];
    for (span, begin) in spans.iter().zip(begins) {
        assert!(text(span).starts_with(begin), "{span:#}");
        assert!(number(&span["until_s"]) > number(&span["at_s"]), "{span:#}");
    }
    for pair in spans.windows(2) {
        assert!(number(&pair[1]["at_s"]) >= number(&pair[0]["until_s"]), "{pair:#?}");
    }
    // Before the run of the template's copy, after it of the restored one.
    let checks = analysis["checks"].as_array().expect("checks");
    for moment in ["before", "after"] {
        let made = checks.iter().filter(|check| check["moment"] == moment).count();
        assert!(made >= 12 * designs, "{made} checks {moment}");
    }
    assert!(checks.iter().all(|check| check["outcome"] == "ok"), "{checks:#?}");
    assert_eq!(analysis["bottlenecks"].as_array().map(Vec::len), Some(0));
}

#[test]
fn backups_and_restores_of_postgresql_follow_the_device() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let analysis = run(&bench, STUDY, &[]);
    assert_operations(&analysis, 2);
    let of = |metric: &str| {
        let comparisons = analysis["comparisons"].as_array().expect("comparisons");
        let found = comparisons
            .iter()
            .find(|comparison| comparison["metric"] == metric && comparison["users"] == 1);
        number(&found.unwrap_or_else(|| panic!("{metric} in {comparisons:#?}"))["ratio"])
    };
    // A quarter of the rate, as far as this host keeps up with the quicker one.
    for metric in ["headline", "restore_bytes_per_second"] {
        let ratio = of(metric);
        assert!((0.15..0.8).contains(&ratio), "{metric}: {ratio}");
    }
    // A device of 33 MB/s can be no faster, whatever the page cache holds.
    let slow = &analysis["rungs"][1]["metrics"];
    assert!(number(&slow["headline"]["value"]) < 40.0, "{slow:#}");
    assert!(number(&slow["restore_bytes_per_second"]["value"]) < 40e6, "{slow:#}");
    let shown = bench.run(&["show", "b.sqlite"]).expect(0);
    assert!(shown.contains("MB/s: MB backed up per second"), "{shown}");
    assert!(shown.contains("ratio of MB/s, restore"), "{shown}");
}

#[test]
fn backups_and_restores_of_mariadb() {
    if let Some(reason) = cannot_back_up_mariadb() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let analysis = run(&bench, &on_mariadb(), &["--designs", "quick"]);
    assert_operations(&analysis, 1);
}

#[test]
fn backups_alone_pause_between_cycles() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let study = STUDY.replace("cycles = 2", "cycles = 2\npause = \"3s\"\nrestore = false");
    let analysis = run(&bench, &study, &["--designs", "quick"]);
    let events = analysis["runs"][0]["events"].as_array().expect("events");
    let spans: Vec<&Value> = events.iter().filter(|event| event["kind"] == "operation").collect();
    assert_eq!(spans.len(), 2);
    let pause = number(&spans[1]["at_s"]) - number(&spans[0]["until_s"]);
    assert!((3.0..6.0).contains(&pause), "{pause} s");
    assert!(
        analysis["operations"].as_array().expect("rows").iter().all(|row| row["kind"] == "backup")
    );
}

/// The program of a run of this bench that takes a backup or restores one, once there is one.
fn program(bench: &Bench, child: &mut Child, name: &str) -> u32 {
    let state = bench.state().to_string_lossy().into_owned();
    let limit = Instant::now() + Duration::from_secs(120);
    loop {
        assert!(Instant::now() < limit, "waited in vain for {name}");
        assert!(child.try_wait().expect("a child").is_none(), "the run ended before {name}");
        for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let command =
                std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let is_it = command.split('\0').next().is_some_and(|program| program.ends_with(name));
            if is_it && command.contains(&state) {
                return pid;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn start(bench: &Bench) -> Child {
    bench
        .underlay()
        .args(["run", "backups.toml", "--out", "b.sqlite", "--no-progress", "--designs", "slow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn send(pid: u32, signal: i32) {
    // SAFETY: sends a signal to a process that this test started.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

#[test]
fn an_interrupted_backup_and_a_killed_restore_leave_nothing_and_are_repeated() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("backups.toml", &STUDY.replace("cycles = 2", "cycles = 1"));

    // Ctrl-C in the middle of a backup.
    let mut child = start(&bench);
    let run = child.id();
    let tool = program(&bench, &mut child, "/pg_basebackup");
    // It is limited like the server, and not ours to be limited with.
    let group =
        |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    assert!(group(tool).contains(&format!("underlay_{run}_")), "{}", group(tool));
    assert!(!control_groups_of(run).is_empty(), "the groups of a run are not found");
    let status = std::fs::read_to_string(format!("/proc/{tool}/status")).unwrap_or_default();
    let user = status.lines().find(|line| line.starts_with("Uid:")).unwrap_or_default().to_string();
    assert!(!user.contains("\t0"), "a program of the database runs as root: {user}");
    send(run, libc::SIGINT);
    let asked = Instant::now();
    let ended = Ended::of(child.wait_with_output().expect("a child"));
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left after Ctrl-C");

    // SIGKILL in the middle of a restore: `clean` finds what it left.
    let mut child = start(&bench);
    let run = child.id();
    program(&bench, &mut child, "/tar");
    child.kill().expect("SIGKILL");
    assert_eq!(child.wait().expect("a child").signal(), Some(9));
    bench.run(&["clean"]).expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left after SIGKILL");
    assert_eq!(control_groups_of(run), Vec::<std::path::PathBuf>::new());

    // The same command does the run again.
    let ended = Ended::of(start(&bench).wait_with_output().expect("a child")).expect_ok();
    assert!(ended.stderr.contains("run 1 of 1"), "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&bench.run(&["show", "b.sqlite", "--json"]).expect(0))
        .expect("JSON on standard output");
    assert_eq!(shown["operations"].as_array().map(Vec::len), Some(2));
}

/// A program that fails is named with its own words, and the run ends.
#[test]
fn a_program_that_dies_ends_the_run_and_is_named() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("backups.toml", STUDY);
    let mut child = start(&bench);
    let tool = program(&bench, &mut child, "/pg_basebackup");
    send(tool, libc::SIGKILL);
    let ended = Ended::of(child.wait_with_output().expect("a child"));
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    let says = ended.stderr.contains("the backups ended early")
        && ended.stderr.contains("`pg_basebackup` failed (killed by signal 9)");
    assert!(says, "{}", ended.stderr);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
}

#[test]
fn what_backups_need_is_checked_before_anything_is_touched() {
    let bench = Bench::new();
    bench.write(
        "small.toml",
        &STUDY
            .replace("capacity = \"512MiB\"\n\n[[design]]", "capacity = \"128MiB\"\n\n[[design]]"),
    );
    let ended = bench.run(&["check", "small.toml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("the volume `backup` does not hold a backup of the database"),
        "{}",
        ended.stderr
    );
    assert!(!bench.state().exists(), "check creates nothing");
}
