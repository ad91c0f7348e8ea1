//! A whole study with a real PostgreSQL on two emulated designs: the answer, the record, the report, and
//! a host as it was before. Then the same with the program killed at random moments.

use crate::common::{
    Bench, Ended, SMALL_STUDY, SMALL_WORKLOAD, cannot_run_servers, control_groups_of,
};
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use underlay_record::{PhaseKind, Record};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON on standard output")
}

/// Runs that are evidence.
fn runs_counted(analysis: &Value) -> usize {
    let runs = analysis["runs"].as_array().expect("a list of runs");
    runs.iter().filter(|run| run["counted"] == true).count()
}

#[test]
fn a_study_is_carried_out_answered_and_leaves_the_host_as_it_was() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::new();
    bench.write("small.toml", &SMALL_STUDY.replace("null-twin = false", "null-twin = true"));
    let ended =
        bench.run(&["run", "small.toml", "--out", "small.sqlite", "--no-progress", "--json"]);
    let stderr = ended.stderr.clone();
    let analysis = json(&ended.expect(0));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    assert_eq!(runs_counted(&analysis), 2, "{stderr}");
    let phases = |run: &Value| run["phases"].as_array().expect("phases").clone();
    let has_twin = |run: &Value| phases(run).iter().any(|phase| phase["kind"] == "null-twin");
    let runs = analysis["runs"].as_array().expect("runs");
    assert!(runs.iter().any(has_twin), "{:#}", runs[0]["phases"]);

    let again = json(&bench.run(&["show", "small.sqlite", "--json"]).expect(0));
    assert_eq!(
        again["verdict"]["headline"], analysis["verdict"]["headline"],
        "the record says the same again"
    );

    let report = bench.run(&["report", "small.sqlite", "--out", "page.html"]).expect(0);
    assert_eq!(report.trim(), "page.html");
    let page = std::fs::read_to_string(bench.path().join("page.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));

    bench.run(&["export", "small.sqlite", "--csv", "csv", "--jsonl", "all.jsonl"]).expect(0);
    assert!(std::fs::read_dir(bench.path().join("csv")).expect("a folder").count() > 5);

    // A record compared with itself: no difference, and no confound.
    let comparison =
        json(&bench.run(&["compare", "small.sqlite", "small.sqlite", "--json"]).expect(0));
    assert_eq!(comparison["same_workload"], true);

    // Another population is another workload.
    let other = SMALL_STUDY.replace("name = \"small\"", "name = \"other\"\nseed = 77");
    bench.write("other.toml", &other);
    bench
        .run(&["run", "other.toml", "--out", "other.sqlite", "--no-progress", "--designs", "a"])
        .expect(0);
    assert_eq!(bench.run(&["compare", "small.sqlite", "other.sqlite"]).code, Some(7));
    bench
        .run(&[
            "compare",
            "small.sqlite",
            "other.sqlite",
            "--allow-different-workloads",
            "--designs",
            "a,a",
        ])
        .expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
}

#[test]
fn a_dilated_study_takes_longer_and_reports_the_designs_own_time() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("small.toml", SMALL_STUDY);
    let began = Instant::now();
    let options = ["--designs", "b", "--users", "2", "--time-dilation", "4"];
    let output = ["--out", "slow.sqlite", "--no-progress", "--json"];
    let ended = bench.run(&[&["run", "small.toml"], &options[..], &output[..]].concat());
    let analysis = json(&ended.expect(0));
    // Warm-up, ramp-up and window of 7 s.
    assert!(began.elapsed() > Duration::from_secs(28), "{:?}", began.elapsed());
    assert_eq!(analysis["study"]["time_dilation"], 4);
    let headline = analysis["verdict"]["headline"].as_str().expect("a headline");
    assert!(headline.contains("emulated, time dilation 4"), "{headline}");
    let window = &analysis["windows"][0];
    let length =
        window["end_s"].as_f64().expect("an end") - window["begin_s"].as_f64().expect("a begin");
    assert!((4.9..5.5).contains(&length), "{length} s of design time");
    assert!(analysis["rungs"][0]["metrics"]["headline"]["value"].as_f64().is_some_and(|n| n > 0.0));
    // What the server was given is beside what it stands for.
    let settings = analysis["settings"].as_array().expect("settings").iter();
    let timeout: Vec<&Value> = settings
        .filter(|one| one["path"].as_str().is_some_and(|p| p.ends_with("checkpoint_timeout")))
        .collect();
    assert!(timeout.iter().any(|one| one.to_string().contains("5min")), "{timeout:?}");
    let compared = bench.run(&["compare", "slow.sqlite", "slow.sqlite"]).expect(0);
    assert!(compared.contains("time dilations are 4 and 4"), "{compared}");
    let refused = bench.run(&["check", "small.toml", "--time-dilation", "0"]);
    assert_eq!(refused.code, Some(2));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
}

/// A block load of the study's own and a copy beside the users of one of the two designs.
const BESIDE: &str = r#"
[[io-profile]]
name = "pages-and-log"

[[io-profile.job]]
name = "pages"
rate-per-second = 200

[[io-profile.job.stream]]
read-percent = 70
size = "8KiB"
region-percent = [0, 90]

[[io-profile.job]]
name = "log"
rate-per-second = 20

[[io-profile.job.stream]]
read-percent = 0
random-percent = 0
size = "4KiB"
region-percent = [90, 100]
durability = "flush"

[[background]]
name = "neighbour"
load = { profile = "pages-and-log", volumes = ["data"], working-set = "16MiB" }
lasts = "3s"
designs = ["b"]

[[background]]
name = "copy"
copy = { from = "wal", to = "backup", space = "16MiB", bytes-per-second = "20MB" }
at = "1s"
designs = ["b"]
"#;

/// Both are told of, once, in the design that has them, and were seen second by second.
fn assert_work_beside_the_users(analysis: &Value) {
    let findings = analysis["findings"].as_array().expect("findings");
    for (name, end) in [("neighbour: ", "MB written"), ("copy: ", "stopped before it finished")] {
        let told: Vec<&str> = findings
            .iter()
            .filter_map(|finding| finding["text"].as_str())
            .filter(|text| text.contains(name))
            .collect();
        assert_eq!(told.len(), 1, "{findings:#?}");
        assert!(told[0].contains("MB/s") && told[0].contains(end), "{told:?}");
        assert!(!told[0].contains("failed"), "{told:?}");
    }
    let series = analysis["timelines"]["series"].as_array().expect("series");
    for (name, at_least, at_most) in [
        ("background.neighbour.write_bytes", 1e4, 1e12),
        ("background.copy.read_bytes", 1e6, 60e6),
        ("background.copy.write_bytes", 1e6, 60e6),
    ] {
        let position = series.iter().position(|one| one["name"] == name).expect("a series");
        let lines = analysis["timelines"]["lines"].as_array().expect("lines");
        let line = lines.iter().find(|line| line["series"] == position).expect("a line");
        let values = line["mean"].as_array().or(line["values"].as_array()).expect("values");
        let most = values.iter().filter_map(Value::as_f64).fold(0.0, f64::max);
        assert!((at_least..at_most).contains(&most), "{name}: {most}");
    }
}

#[test]
fn sysbench_is_a_workload_of_studies_and_work_beside_it_is_done_and_told() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let study = SMALL_STUDY.replace(SMALL_WORKLOAD, "[workload.sysbench]\ntable-size = 10_000\n");
    assert_ne!(study, SMALL_STUDY);
    bench.write("small.toml", &format!("{study}{BESIDE}"));
    let arguments = ["run", "small.toml", "--out", "small.sqlite", "--no-progress", "--json"];
    let analysis = json(&bench.run(&[&arguments[..], &["--users", "2"]].concat()).expect(0));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    assert_eq!(runs_counted(&analysis), 2);
    let verdict = analysis["verdict"]["headline"].as_str().expect("a sentence");
    // One design has no delays: the other may be as fast as this host. On a crowded one, the generator may be the limit.
    let told = [
        "the transactions per second of",
        "distinguishable from this host",
        "the load generator was",
    ];
    assert!(told.iter().any(|text| verdict.contains(text)), "{verdict}");
    assert_eq!(analysis["workload"]["unit"], "TPS");
    for rung in analysis["rungs"].as_array().expect("rungs") {
        let tps = |name: &str| rung["metrics"][name]["value"].as_f64().expect("a number");
        // Everything that a script does is counted, and committed.
        assert!((tps("headline") / tps("transactions_per_second") - 1.0).abs() < 0.01, "{rung:#}");
        assert_eq!(rung["latencies"].as_array().map(Vec::len), Some(1), "one script was driven");
    }
    let checks = analysis["checks"].as_array().expect("checks");
    assert!(
        !checks.is_empty() && checks.iter().all(|check| check["outcome"] == "ok"),
        "{checks:#?}"
    );
    assert_work_beside_the_users(&analysis);
    let shown = bench.run(&["show", "small.sqlite"]).expect(0);
    assert!(shown.contains("TPS: transactions per second") && !shown.contains("NOPM"), "{shown}");
}

#[test]
fn the_web_shop_is_a_workload_of_studies() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let workload = "[workload.dvdstore]\ndb-size = \"0.2MB\"\nn-searches = 1\nds2-mode = true\n";
    let study = SMALL_STUDY.replace(SMALL_WORKLOAD, workload);
    assert_ne!(study, SMALL_STUDY);
    bench.write("small.toml", &study);
    let arguments = ["run", "small.toml", "--out", "small.sqlite", "--no-progress", "--json"];
    let options = ["--users", "2", "--designs", "a", "--cache-warm-up", "1s"];
    let analysis = json(&bench.run(&[&arguments[..], &options].concat()).expect(0));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    assert_eq!((runs_counted(&analysis), &analysis["workload"]["unit"]), (1, &json("\"OPM\"")));
    let rung = &analysis["rungs"][0];
    assert!(rung["metrics"]["headline"]["value"].as_f64().expect("a number") > 0.0, "{rung:#}");
    let steps = rung["latencies"].as_array().expect("steps of visits");
    let of_reviews =
        |step: &&Value| step["transaction"].as_str().is_some_and(|name| name.contains("review"));
    assert!(steps.len() >= 4, "steps of visits: {rung:#}");
    assert_eq!(steps.iter().filter(of_reviews).count(), 0, "the old flow has no reviews: {rung:#}");
    // Caches were filled by two users before the storage settled.
    let phases = analysis["runs"][0]["phases"].as_array().expect("phases");
    let place = |kind: &str, users: Option<u64>| {
        let is_it = |it: &Value| it["kind"] == kind && it["users"].as_u64() == users;
        phases.iter().position(is_it)
    };
    let filled = place("prepare", Some(2));
    assert!(filled.is_some() && filled < place("settle", Some(0)), "{phases:#?}");
    let checks = analysis["checks"].as_array().expect("checks");
    assert!(checks.len() > 50 && checks.iter().all(|check| check["outcome"] == "ok"));
}

#[test]
fn a_killed_run_is_removed_by_clean_and_gone_on_with() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("small.toml", SMALL_STUDY);
    let arguments = ["run", "small.toml", "--out", "small.sqlite", "--no-progress"];
    // Moments spread over load, restore, start, warm-up, measuring and the second run.
    for after_ms in [400, 3_000, 9_000, 16_000, 27_000] {
        let said = fs::File::create(bench.path().join("said")).expect("a file");
        let mut child = bench
            .underlay()
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .expect("the program starts");
        let until = Instant::now() + Duration::from_millis(after_ms);
        let mut finished = None;
        while Instant::now() < until && finished.is_none() {
            std::thread::sleep(Duration::from_millis(20));
            finished = child.try_wait().expect("a child");
        }
        if let Some(status) = finished {
            let said = fs::read_to_string(bench.path().join("said")).expect("what it said");
            assert!(status.success(), "{status} in less than {after_ms} ms: {said}");
            break;
        }
        let pid = child.id();
        child.kill().expect("SIGKILL");
        assert_eq!(child.wait().expect("a child").signal(), Some(9));
        bench.run(&["clean"]).expect(0);
        assert_eq!(
            bench.left_on_host(),
            Vec::<String>::new(),
            "left after a kill at {after_ms} ms"
        );
        assert_eq!(control_groups_of(pid), Vec::<std::path::PathBuf>::new());
    }
    // On a quick host the last attempt may have come to its end before its kill.
    let complete = bench.run(&["show", "small.sqlite", "--json"]);
    let complete = complete.code == Some(0) && runs_counted(&json(&complete.stdout)) == 2;
    let mut stderr = String::new();
    if !complete {
        let ended = bench.run(&arguments);
        stderr.clone_from(&ended.stderr);
        ended.expect(0);
    }
    let analysis = json(&bench.run(&["show", "small.sqlite", "--json"]).expect(0));
    assert_eq!(runs_counted(&analysis), 2, "{stderr}");
}

#[test]
fn ctrl_c_ends_cleanly_and_a_crashed_database_is_named() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("small.toml", SMALL_STUDY);
    let start = |out: &str| {
        bench
            .underlay()
            .args(["run", "small.toml", "--out", out, "--no-progress"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    };

    let child = start("interrupted.sqlite");
    wait_until(|| postmaster(&bench).is_some(), "the server of the first run");
    send(child.id(), libc::SIGINT);
    let ended = Ended::of(child.wait_with_output().expect("a child"));
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left after Ctrl-C");

    // Moments while it starts, is asked for its settings, and is checked; then under load, before the run can be over.
    for after_ms in [0, 40, 80, 120, 160, 200, 250, 300, 4_000] {
        let out = format!("crashed-{after_ms}.sqlite");
        let child = start(&out);
        wait_until(|| postmaster(&bench).is_some(), "the server of the first run");
        std::thread::sleep(Duration::from_millis(after_ms));
        if let Some(pid) = postmaster(&bench) {
            send(pid, libc::SIGKILL);
        }
        let ended = Ended::of(child.wait_with_output().expect("a child"));
        let (code, said) = (ended.code, ended.stderr);
        assert_eq!(code, Some(4), "killed after {after_ms} ms: {said}");
        let is_named = [
            "the database server crashed",
            "could not start the database server",
            "the database server ended",
        ]
        .iter()
        .any(|cause| said.contains(cause));
        assert!(is_named, "the cause is named, of a server killed after {after_ms} ms: {said}");
        assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left after a crash");
    }
}

/// Sessions that ended under the checks say nothing about the data: it is a crash, and the same command resumes.
#[test]
fn a_server_process_that_dies_under_the_checks_is_a_crash() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("small.toml", SMALL_STUDY);
    let mut child = bench
        .underlay()
        .args(["run", "small.toml", "--out", "small.sqlite", "--no-progress", "--designs", "a"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let record = bench.path().join("small.sqlite");
    while child.try_wait().expect("a child").is_none() {
        if is_checking_after_load(&record)
            && let Some(postmaster) = postmaster(&bench)
        {
            // The checks see their connections close before the server says why.
            send(postmaster, libc::SIGSTOP);
            sessions_of(postmaster).into_iter().for_each(|pid| send(pid, libc::SIGKILL));
            std::thread::sleep(Duration::from_millis(300));
            send(postmaster, libc::SIGCONT);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let ended = Ended::of(child.wait_with_output().expect("a child"));
    assert_eq!(ended.code, Some(4), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("crashed while its data was checked"), "{}", ended.stderr);
    assert!(ended.stderr.contains("run the same command"), "{}", ended.stderr);
    assert_eq!(bench.left_on_host(), Vec::<String>::new());
    let again = bench.run(&[
        "run",
        "small.toml",
        "--out",
        "small.sqlite",
        "--no-progress",
        "--designs",
        "a",
    ]);
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    let runs = Record::open_read_only(&record).expect("a record").runs();
    assert_eq!(runs.expect("runs").len(), 2, "the run is repeated in the same record");
}

/// A server that recovers by itself goes on, but what it did is not what the design does.
#[test]
fn a_server_process_that_dies_under_load_ends_the_run() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("small.toml", SMALL_STUDY);
    let child = bench
        .underlay()
        .args(["run", "small.toml", "--out", "small.sqlite", "--no-progress", "--designs", "a"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let record = bench.path().join("small.sqlite");
    let is_measuring =
        || phases(&record).iter().any(|(kind, is_over)| *kind == PhaseKind::Measure && !is_over);
    wait_until(is_measuring, "the first measured window");
    // The record is another's: nothing of it is shown as the answer to this command.
    let busy = ["run", "small.toml", "--out", "small.sqlite", "--no-progress", "--designs", "a"];
    let busy = bench.run(&busy);
    assert_eq!((busy.code, busy.stdout.as_str()), (Some(3), ""), "{}", busy.stderr);
    assert!(busy.stderr.contains("being written by another process"), "{}", busy.stderr);
    let session = postmaster(&bench).map(sessions_of).unwrap_or_default();
    send(*session.first().expect("users have sessions"), libc::SIGKILL);
    let ended = Ended::of(child.wait_with_output().expect("a child"));
    assert_eq!(ended.code, Some(4), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("signal 9"), "{}", ended.stderr);
    assert_eq!(bench.left_on_host(), Vec::<String>::new());
}

/// Kinds of the phases of the first run so far, and whether they are over.
fn phases(record: &Path) -> Vec<(PhaseKind, bool)> {
    let Ok(record) = Record::open_read_only(record) else { return Vec::new() };
    let run = record.runs().ok().and_then(|runs| runs.first().map(|run| run.id));
    let phases = run.and_then(|run| record.phases(Some(run)).ok()).unwrap_or_default();
    phases.into_iter().map(|phase| (phase.kind, phase.end.is_some())).collect()
}

fn is_checking_after_load(record: &Path) -> bool {
    let phases = phases(record);
    let is_measured = phases.iter().any(|(kind, is_over)| *kind == PhaseKind::Measure && *is_over);
    is_measured && phases.last() == Some(&(PhaseKind::Check, false))
}

/// The server processes of clients.
fn sessions_of(postmaster: u32) -> Vec<u32> {
    let children = format!("/proc/{postmaster}/task/{postmaster}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let title =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    children
        .split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .filter(|pid| title(pid).contains("[local]"))
        .collect()
}

/// The postmaster of a run (not of the load): the server whose data directory is on a volume.
fn postmaster(bench: &Bench) -> Option<u32> {
    let state = bench.state().to_string_lossy().into_owned();
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let is_postmaster = command.split('\0').next()?.ends_with("/postgres");
        (is_postmaster && command.contains(&state) && command.contains("pgdata")).then_some(pid)
    })
}

fn send(pid: u32, signal: i32) {
    // SAFETY: sends a signal to a process that this test started.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

fn wait_until(condition: impl Fn() -> bool, what: &str) {
    let limit = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < limit, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
