//! Studies with axes on a real PostgreSQL: what varies is given to the server, shares a loaded database, and is the answer.

use crate::common::{Bench, SMALL_STUDY, SMALL_WORKLOAD, cannot_run_servers};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON on standard output")
}

fn run(bench: &Bench, study: &str) -> (Value, String) {
    bench.write("varied.toml", study);
    let arguments = ["run", "varied.toml", "--out", "varied.sqlite", "--no-progress", "--json"];
    let ended = bench.run(&arguments);
    let progress = ended.stderr.clone();
    let analysis = json(&ended.expect(0));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    (analysis, progress)
}

/// The small study on its second design alone, which has a device.
fn one_design() -> String {
    let study = SMALL_STUDY.replace("[[design]]\nuse = \"null\"\nname = \"a\"\n", "");
    assert_ne!(study, SMALL_STUDY);
    study
}

#[test]
fn memory_is_varied_over_one_loaded_database_and_users_descend() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let axis = "\n[[axis]]\nname = \"memory\"\nkey = \"engine.memory-limit\"\nvalues = [\"160MiB\", \"256MiB\"]\n";
    let study = one_design()
        .replace(SMALL_WORKLOAD, "[workload.sysbench]\ntable-size = 10_000\n")
        .replace("users = [1, 2]", "users = [2, 1]");
    let (analysis, progress) = run(&bench, &format!("{study}{axis}"));
    let loads = progress.lines().filter(|line| line.contains("loaded")).count();
    assert!(loads <= 1, "one population is loaded once: {progress}");
    let designs = analysis["designs"].as_array().expect("variants");
    assert_eq!(designs.len(), 2);
    assert_eq!(designs[0]["title"], "160 MiB of memory");
    assert_eq!(analysis["axes"][0]["points"][1]["label"], "256MiB");
    // Each server had its own limit.
    let limits: Vec<&Value> = analysis["confounds"]
        .as_array()
        .expect("differences")
        .iter()
        .filter(|one| one["path"] == "design.engine.memory_limit_bytes")
        .collect();
    assert_eq!(limits.len(), 1, "{:#}", analysis["confounds"]);
    assert_eq!(limits[0]["asked"], true);
    let unasked = analysis["confounds"].as_array().expect("differences").iter();
    let unasked: Vec<&Value> = unasked.filter(|one| one["asked"] == false).collect();
    assert!(unasked.is_empty(), "{unasked:#?}");
    // The ladder went down.
    let phases = analysis["runs"][0]["phases"].as_array().expect("phases");
    let measured: Vec<u64> = phases
        .iter()
        .filter(|phase| phase["kind"] == "measure")
        .filter_map(|phase| phase["users"].as_u64())
        .collect();
    assert_eq!(measured, [2, 1]);
    let answer = bench.run(&["show", "varied.sqlite"]).expect(0);
    assert!(answer.contains("of the first") && answer.contains("160MiB"), "{answer}");
}

#[test]
fn named_points_vary_the_job_and_the_published_ratio_stands_beside_ours() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let (head, _) = one_design()
        .split_once("[workload.tpcc]")
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .expect("a workload");
    let study = format!(
        r#"{head}
[workload.batch]
rows = 3_000

[procedure]
settle = "0s"
measure = "2min"
repeats = 1

[[axis]]
name = "tuning"
points = [{{ name = "default" }}, {{ name = "one transaction", set = {{ "workload.batch.mode" = "explicit" }} }}]

[[published]]
at = {{ tuning = "default" }}
metric = "result"
values = [1000.0]
source = "invented"

[[published]]
at = {{ tuning = "one transaction" }}
metric = "result"
values = [30000.0]
source = "invented"
"#
    );
    let (analysis, _) = run(&bench, &study);
    let rate = |design: usize| {
        analysis["rungs"][design]["metrics"]["headline"]["value"].as_f64().expect("a rate")
    };
    assert!(rate(1) > rate(0), "one transaction is faster: {} and {}", rate(1), rate(0));
    let headline = analysis["comparisons"]
        .as_array()
        .expect("comparisons")
        .iter()
        .find(|one| one["metric"] == "headline" && one["scope"] == "rung")
        .expect("a comparison");
    assert_eq!(headline["published"], 30.0);
    let ours = analysis["published"][1]["ours"][0].as_f64().expect("our value");
    assert_eq!(ours, rate(1));
    let checks = analysis["checks"].as_array().expect("checks");
    assert!(checks.iter().all(|check| check["outcome"] == "ok"), "{checks:#?}");
    let verdict = analysis["verdict"]["headline"].as_str().expect("a sentence");
    assert!(verdict.contains("one transaction") && verdict.contains("default"), "{verdict}");
}
