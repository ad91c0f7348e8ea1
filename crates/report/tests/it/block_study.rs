//! Records of studies whose workload is a block load: repeats are repeats, rungs are compared per volume, and curves of two designs
//! have a ratio of their rates at 1 ms.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;
use underlay_core::{Evidence, Histogram, Nanos, RootSeed};
use underlay_record::conventions::document;
use underlay_record::{
    Design, ExecutionStatus, Interval, Manifest, NewPhase, NewRun, PhaseKind, PhaseStatus, Record,
    Recorder, RunEnd, RunStatus, StoredHistogram, TransactionTick,
};
use underlay_report::analysis::{Analysis, Answer, Basis, CurveReading, FindingSeverity};
use underlay_report::{Colour, analyse, terminal_summary};

/// Seconds of a window.
const WINDOW_S: u64 = 10;
/// Repeats of each design.
const REPEATS: u32 = 3;

/// One load of a run: its label, requests in flight per volume, rate, mean response time, and what was offered.
struct Load {
    label: &'static str,
    in_flight: u32,
    rate: u64,
    mean_ns: u64,
    offered: Option<f64>,
}

/// A study of two designs, of which the second does `factor` times as much; ended in the last run by the user, or not.
fn study(path: &Path, loads: &[Load], factor: f64, last: RunStatus) -> Record {
    study_of(([&[], &[]], REPEATS), path, loads, factor, last)
}

/// The same with these models of devices in each of the designs, and as many repeats.
fn study_of(
    (models, repeats): ([&[&str]; 2], u32),
    path: &Path,
    loads: &[Load],
    factor: f64,
    last: RunStatus,
) -> Record {
    let datastore = |models: &[&str]| {
        let device = |model: &&str| json!({ "profile": { "name": model, "medium": {} } });
        let devices: Vec<Value> = models.iter().map(device).collect();
        json!({ "datastore": { "emulated": { "devices": devices } } })
    };
    let series = |metric: &str, value: f64| {
        json!({
            "design": "nvme", "metric": metric, "unit": "ms", "factor": 1e6, "users": [8],
            "values": [value], "source": "an invented paper",
        })
    };
    let plan = json!({
        "workload": { "block": {
            "pacing": { "closed": { "key_think": 0.0 } },
            "shape": { "headline": {
                "types": ["read", "write"], "counted": "I/Os", "unit": "IOPS", "period_ns": 1_000_000_000u64,
            } },
        } },
        "designs": models.map(datastore),
        // Threads per volume: the second number is the rung with 32 requests in flight.
        "size": { "users": [1, 8] },
        "published": [series("read-mean", 1.25), series("write-mean", 1.5)],
    });
    let manifest = Manifest {
        study_name: "blocks".to_string(),
        title: String::new(),
        question: "Which?".to_string(),
        evidence: Evidence::Measured,
        seed: RootSeed(1),
        identity: "block".to_string(),
        started_wall_ns: 0,
        plan,
        host: Value::Null,
        software: Value::Null,
    };
    let mut recorder = Recorder::create(path, &manifest).expect("a record");
    for (index, title) in [(0, "SATA"), (1, "NVMe")] {
        let design = Design {
            index,
            name: title.to_lowercase(),
            title: title.to_string(),
            description: String::new(),
            evidence: Evidence::Measured,
            detail: json!({ "datastore": { "path": { "directory": format!("/{title}") } } }),
        };
        recorder.add_design(&design).expect("written");
    }
    for order in 0..2 * repeats {
        let (design, repeat) = (order % 2, order / 2);
        let scale = if design == 1 { factor } else { 1.0 } * (1.0 + 0.004 * f64::from(repeat));
        let status = if order + 1 == 2 * repeats { last } else { RunStatus::Finished };
        run(&mut recorder, (design, repeat, order), loads, scale, status);
    }
    recorder.finish(ExecutionStatus::Finished).expect("written");
    Record::open_read_only(path).expect("a record")
}

fn run(
    recorder: &mut Recorder,
    (design, repeat, order): (u32, u32, u32),
    loads: &[Load],
    scale: f64,
    status: RunStatus,
) {
    let new = NewRun { design, repeat: repeat + 1, order, at: Nanos::ZERO, origin_wall_ns: 0 };
    let run = recorder.begin_run(&new).expect("written");
    let mut said = Vec::new();
    for (number, load) in loads.iter().enumerate() {
        let begin = number as u64 * WINDOW_S;
        let at = Nanos::from_secs;
        let rate = (load.rate as f64 * scale) as u64;
        let mut phase = NewPhase {
            run: Some(run),
            kind: PhaseKind::Measure,
            label: load.label.to_string(),
            users: Some(load.in_flight),
            at: at(begin),
        };
        phase.at = at(begin);
        let phase = recorder.begin_phase(&phase).expect("written");
        for second in begin..begin + WINDOW_S {
            for (name, share) in [("read", 7), ("write", 3)] {
                // Seconds that differ a little, as seconds do.
                let count = rate * share / 10 + second % 3;
                let mut response = Histogram::new();
                response.record_n(load.mean_ns, count);
                let row = TransactionTick {
                    interval: Interval { begin: at(second), end: at(second + 1) },
                    transaction: name.to_string(),
                    committed: count,
                    rolled_back: 0,
                    failed: 0,
                    unknown: 0,
                    errors: Default::default(),
                    retries: 0,
                    response: StoredHistogram::from(&response),
                    service: StoredHistogram::from(&response),
                };
                recorder.transactions(run, &row).expect("written");
            }
        }
        recorder.end_phase(phase, at(begin + WINDOW_S), PhaseStatus::Finished).expect("written");
        said.push(json!({
            "label": load.label, "in_flight": load.in_flight, "counts": load.offered.is_none(),
            "offered_per_second": load.offered.map(|offered| offered * scale),
            "done_per_second": rate, "bytes_per_second": rate * 4096, "mean_ns": load.mean_ns,
            "p99_ns": load.mean_ns * 3, "saturated": false,
            "begin_ns": at(begin).0, "end_ns": at(begin + WINDOW_S).0,
        }));
    }
    let said = json!({
        "loads": said, "interrupted": status == RunStatus::Interrupted, "steady": null, "steady_state": null,
        "result": { "due": 0, "undelivered": 0 },
    });
    recorder.write_document(Some(run), document::BLOCK_LOAD, &said).expect("written");
    let at = Nanos::from_secs(WINDOW_S * loads.len() as u64);
    recorder.end_run(run, &RunEnd { at, status, reason: None }).expect("written");
}

fn ladder() -> Vec<Load> {
    let rung =
        |label, in_flight, rate, mean_ns| Load { label, in_flight, rate, mean_ns, offered: None };
    vec![rung("1 thread", 4, 1000, 2_000_000), rung("8 threads", 32, 5000, 6_000_000)]
}

fn curve() -> Vec<Load> {
    let point = |label, rate: u64, mean_ns, offered: bool| Load {
        label,
        in_flight: 32,
        rate,
        mean_ns,
        offered: offered.then_some(rate as f64),
    };
    vec![
        point("maximum", 5000, 6_000_000, false),
        point("10 %", 500, 250_000, true),
        point("50 %", 2500, 500_000, true),
        point("90 %", 4500, 2_000_000, true),
    ]
}

fn page(analysis: &Analysis) -> String {
    terminal_summary(analysis, 200, Colour::Never)
}

#[test]
fn rungs_of_two_designs_are_compared_over_repeats() {
    let dir = tempdir().unwrap();
    let record = study(&dir.path().join("a.db"), &ladder(), 2.0, RunStatus::Finished);
    let analysis = analyse(&record).unwrap();
    assert_eq!(analysis.verdict.answer, Answer::Winner, "{}", analysis.verdict.headline);
    let headline = &analysis.verdict.headline;
    assert!(
        headline.starts_with("NVMe does 2")
            && headline.contains("with 32 requests in flight per volume"),
        "{headline}"
    );
    let rungs: Vec<(usize, u32)> =
        analysis.rungs.iter().map(|rung| (rung.design, rung.users)).collect();
    assert_eq!(rungs, [(0, 4), (0, 32), (1, 4), (1, 32)]);
    let metrics = &analysis.rungs[3].metrics;
    assert_eq!(metrics["headline"].basis, Basis::Runs);
    let bytes = metrics["bytes_per_second"].value.expect("a rate");
    assert!((bytes / 4096.0 / 10_040.0 - 1.0).abs() < 0.01, "{bytes}");
    let types: Vec<&str> =
        analysis.rungs[0].latencies.iter().map(|row| row.transaction.as_str()).collect();
    assert_eq!(types, ["read", "write", "reads and writes"]);
    assert!(analysis.curves.is_empty() && analysis.bottlenecks.is_empty());
    assert!(!metrics.contains_key("latency_at_peak_ns"), "a ladder has no peak of a curve");
    for (series, (metric, printed)) in
        analysis.published.iter().zip([("read_mean", 1.25e6), ("write_mean", 1.5e6)])
    {
        assert_eq!((&*series.metric, &series.values[..]), (metric, &[printed][..]));
        let ours = series.ours[0].expect("a mean of its own");
        assert!((ours / 6e6 - 1.0).abs() < 0.01, "{ours}");
    }
    assert_eq!(analysis.published.len(), 2);
    let text = page(&analysis);
    assert!(text.contains("MB/s") && text.contains("32 requests"), "{text}");
    assert!(!text.contains("user"), "{text}");
}

/// What a study of these devices says of how many it would take.
fn said_of_devices(models: [&[&str]; 2], repeats: u32) -> Option<String> {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a.db");
    let record = study_of((models, repeats), &path, &ladder(), 2.5, RunStatus::Finished);
    let verdict = analyse(&record).unwrap().verdict;
    let expected = if repeats == 1 { Answer::NotRepeated } else { Answer::Winner };
    assert_eq!(verdict.answer, expected, "{}", verdict.headline);
    verdict.support.into_iter().find(|text| text.contains("it would take"))
}

#[test]
fn devices_for_the_same_requests_are_counted_where_each_design_has_one_model() {
    let one_each: [&[&str]; 2] = [&["sata-drive"], &["nvme-drive"]];
    let start = "For the same I/Os per second it would take 3 of sata-drive instead of 1 of nvme";
    let text = said_of_devices(one_each, REPEATS).expect("a number is said");
    assert!(text.starts_with(start) && text.ends_with(" limited them."), "{text}");
    let text = said_of_devices(one_each, 1).expect("a number is said");
    let chance = " (in one run each: the difference may be chance).";
    assert!(text.starts_with(start) && text.ends_with(chance), "{text}");
    let two: [&[&str]; 2] = [&["sata-drive", "sata-drive"], &["nvme-drive"]];
    let text = said_of_devices(two, REPEATS).expect("a number is said");
    assert!(text.contains(" of sata-drive instead of 1 of nvme-drive, if each had"), "{text}");
    let unsaid: [[&[&str]; 2]; 3] = [
        [&["sata-drive"], &["sata-drive"]],
        [&["sata-drive", "log-drive"], &["nvme-drive"]],
        [&[], &["nvme-drive"]],
    ];
    for models in unsaid {
        assert_eq!(said_of_devices(models, REPEATS), None, "{models:?}");
    }
}

#[test]
fn the_rates_of_two_curves_at_the_limit_have_a_ratio() {
    let dir = tempdir().unwrap();
    let record = study(&dir.path().join("a.db"), &curve(), 2.0, RunStatus::Finished);
    let analysis = analyse(&record).unwrap();
    let curves = &analysis.curves;
    assert_eq!((curves.len(), curves[0].points.len()), (2, 3));
    assert_eq!(curves[0].found, CurveReading::Interpolated);
    // Half of the way by factors from 0.5 to 2 ms.
    let rate = curves[0].rate_at_limit.value.expect("a rate");
    assert!((rate / 3514.0 - 1.0).abs() < 0.01, "{rate}");
    assert!(curves[0].rate_at_limit.low.is_some_and(|low| low > 0.9 * rate));
    let ratio = analysis.comparisons.iter().find(|it| it.metric == "rate_at_1ms").expect("one");
    assert!((ratio.ratio.unwrap() - 2.0).abs() < 0.01 && ratio.low.is_some(), "{ratio:?}");
    assert!(ratio.text.contains("I/Os per second below 1 ms"), "{}", ratio.text);
    // The points are no rungs.
    assert_eq!(analysis.rungs.len(), 2);
    let at_peak = analysis.rungs[0].metrics["latency_at_peak_ns"].value.expect("a latency");
    assert!((at_peak / 6e6 - 1.0).abs() < 1e-9, "{at_peak}");
    let text = page(&analysis);
    assert!(text.contains("/s below 1 ms") && text.contains("ratio of /s below 1 ms"), "{text}");
}

#[test]
fn a_run_of_a_study_that_was_ended_is_no_evidence() {
    let dir = tempdir().unwrap();
    let record = study(&dir.path().join("a.db"), &ladder(), 2.0, RunStatus::Interrupted);
    let analysis = analyse(&record).unwrap();
    let counted: Vec<bool> = analysis.runs.iter().map(|run| run.counted).collect();
    assert_eq!(counted, [true, true, true, true, true, false]);
    let invalid = analysis.findings.iter().find(|it| it.severity == FindingSeverity::Invalid);
    assert!(invalid.is_none(), "{invalid:?}");
}
