//! Jobs as workloads of studies with a real PostgreSQL: a batch insertion and a data warehouse, which run until they are
//! done; what they came to is the headline.

use crate::common::{Bench, SMALL_STUDY, cannot_run_servers};
use serde_json::Value;

/// The small study with another workload, on its first design alone.
fn study(workload: &str) -> String {
    let (head, _) = SMALL_STUDY.split_once("[[design]]\nuse = \"kingston-nvme\"").expect("two");
    format!("{head}{workload}\n[procedure]\nsettle = \"0s\"\nmeasure = \"2min\"\nrepeats = 1\n")
}

fn run(bench: &Bench, workload: &str) -> Value {
    bench.write("job.toml", &study(workload));
    let arguments = ["run", "job.toml", "--out", "job.sqlite", "--no-progress", "--json"];
    let ended = bench.run(&arguments);
    let progress = ended.stderr.clone();
    let analysis = ended.expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    let analysis: Value = serde_json::from_str(&analysis).expect("JSON on standard output");
    // What is told while it goes on is the answer's number, of nobody who would be a user.
    let headline = &analysis["rungs"][0]["metrics"]["headline"]["value"];
    let unit = analysis["workload"]["unit"].as_str().expect("a unit");
    let told = format!("  {unit}: {:.0}\n", headline.as_f64().expect("a number"));
    assert!(progress.contains(&told) && !progress.contains(" users"), "{told:?} in {progress}");
    analysis
}

fn assert_checks_hold(analysis: &Value) {
    let checks = analysis["checks"].as_array().expect("checks");
    assert!(!checks.is_empty(), "nothing was checked");
    assert!(checks.iter().all(|check| check["outcome"] == "ok"), "{checks:#?}");
}

#[test]
fn a_batch_insertion_is_a_job_of_a_study() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let workload = "[workload.batch]\nrows = 30_000\nmode = \"explicit\"\nsessions = 2\n";
    let analysis = run(&bench, workload);
    assert_checks_hold(&analysis);
    let rate = analysis["rungs"][0]["metrics"]["headline"]["value"].as_f64().expect("a rate");
    let window = &analysis["windows"][0];
    let seconds =
        window["end_s"].as_f64().expect("end") - window["begin_s"].as_f64().expect("begin");
    // The window has the job and at most what it takes to begin and to notice the end.
    let whole = 30_000.0 / seconds;
    assert!(rate >= whole && rate < whole * 100.0, "{rate} rows/s, {seconds} s");
    let verdict = analysis["verdict"]["headline"].as_str().expect("a sentence");
    assert!(verdict.contains("rows per second (") && !verdict.contains("user"), "{verdict}");
    let types = analysis["rungs"][0]["latencies"].as_array().expect("types");
    assert_eq!(types[0]["transaction"], "insert");
}

#[test]
fn a_warehouse_is_a_job_of_a_study() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let analysis = run(&bench, "[workload.warehouse]\nscale = 0.01\nstreams = 1\n");
    assert_checks_hold(&analysis);
    let rate = analysis["rungs"][0]["metrics"]["headline"]["value"].as_f64().expect("a rate");
    assert!(rate > 0.0, "{rate}");
    assert_eq!(analysis["workload"]["unit"], "queries/h");
    assert!(analysis["workload"]["notice"].as_str().is_some_and(|text| text.contains("TPC-H")));
    // Both runs answered every query; the power run and the stream beside the queries refreshed.
    let types = analysis["rungs"][0]["latencies"].as_array().expect("types");
    assert_eq!(types.len(), 24, "{types:#?}");
    for row in types {
        assert_eq!(row["count"], 2, "{row:#}");
        assert!(row["p50"]["value"].as_f64().is_some_and(|time| time > 0.0), "{row:#}");
    }
}

#[test]
fn users_have_no_meaning_for_a_job() {
    let bench = Bench::with_shared_templates();
    let study = study("[workload.batch]\nrows = 10\n");
    bench.write("job.toml", &study.replace("[procedure]\n", "[procedure]\nusers = [1, 2]\n"));
    let ended = bench.run(&["check", "job.toml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("`procedure.users` has no meaning for a job"),
        "{}",
        ended.stderr
    );
}
