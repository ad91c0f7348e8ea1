//! Runs that are no result, removals under a running load, and records of runs.

use serde_json::Value;

use underlay_database::{Engine, run_lock};

use super::stopped::wait_until;
use super::{Stranger, size};

/// A rate that no server reaches, and a target that none meets.
pub fn what_was_not_delivered_ends_with_exit_code_6(stranger: &Stranger) {
    stranger.succeed("sysbench", &[&["--load"][..], size("sysbench")].concat());
    let brief = ["--run", "--users", "2", "--warm-up", "0s", "--duration", "2s", "--json"];
    let ended = stranger.drive("sysbench", &[&brief[..], &["--rate", "100000"]].concat());
    assert_eq!(ended.code, Some(6), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("% of the load was completed ("), "{}", ended.stderr);
    let search = ["--rate", "8", "--slo", "p50=1us"];
    let brief = brief.map(|word| if word == "2s" { "1s" } else { word });
    let ended = stranger.drive("sysbench", &[&brief[..], &search].concat());
    assert_eq!(ended.code, Some(6), "{}{}", ended.stdout, ended.stderr);
    // A load generator that is short of CPU time is the limit from the first rate on.
    let reasons = ["no rate that was tried meets", "the load generator was the bottleneck"];
    assert!(reasons.iter().any(|why| ended.stderr.contains(why)), "{}", ended.stderr);
    let value: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let search = &value["run"]["search"];
    assert!(search["holds_per_second"].as_f64().unwrap_or(0.0) == 0.0, "{search:#}");
    assert!(!search["steps"].as_array().expect("steps").is_empty(), "{search:#}");
}

/// Whether a run of sysbench has its lock.
fn is_running(stranger: &Stranger) -> bool {
    let target = stranger.host.server.target();
    let database = match target.engine {
        Engine::Postgresql => "postgres",
        Engine::Mariadb => "sbtest",
    };
    let runtime = underlay_testbed::runtime();
    runtime.block_on(run_lock::is_held(&target.with_database(database), "sysbench")).unwrap()
}

/// Neither by `--drop` nor before a load; and a run that was killed leaves nothing behind.
pub fn tables_of_a_running_load_are_not_dropped(stranger: &Stranger) {
    let brief = ["--run", "--users", "2", "--warm-up", "0s", "--duration", "600s"];
    let mut child = stranger.command(&stranger.url(), "sysbench", &brief).spawn().unwrap();
    let is_refused = |arguments: &[&str]| {
        let ended = stranger.drive("sysbench", arguments);
        ended.code == Some(2)
            && ended.stderr.contains("another `underlay drive sysbench` is running")
    };
    let reload = [&["--load", "--drop"][..], size("sysbench")].concat();
    // An attempt to load before the run has its lock would drop the tables.
    wait_until("the lock of the run", &mut child, || is_running(stranger));
    assert!(is_refused(&reload));
    assert!(is_refused(&["--drop"]));
    stranger.succeed("sysbench", &["--check"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let begin = std::time::Instant::now();
    while is_refused(&reload) {
        assert!(begin.elapsed().as_secs() < 60, "the lock outlives its holder");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// A record of a run is shown, reported and compared as one of a study.
pub fn a_run_is_recorded(stranger: &Stranger) {
    let brief = ["--run", "--users", "2", "--warm-up", "1s", "--duration", "3s"];
    let record = stranger.bench.path().join("drive.sqlite");
    let record = record.to_str().unwrap();
    stranger.succeed("sysbench", &[&brief[..], &["--record", record]].concat());
    let again = stranger.drive("sysbench", &[&brief[..], &["--record", record]].concat());
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    let shown = stranger.bench.run(&["show", record, "--json"]);
    let analysis: Value = serde_json::from_str(&shown.expect(0)).expect("JSON");
    assert_eq!(analysis["workload"]["name"], "sysbench", "{analysis:#}");
    stranger.bench.run(&["show", record]).expect(0);
    stranger.bench.run(&["report", record]).expect(0);
    stranger.bench.run(&["compare", record, record]).expect(0);
    stranger.succeed("sysbench", &["--drop"]);
}
