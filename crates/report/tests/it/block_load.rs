//! Records of block loads: their rounds are no runs, and what their command said of them is said again.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;
use underlay_core::{Evidence, Histogram, Nanos, RootSeed};
use underlay_record::conventions::document;
use underlay_record::{
    Design, ExecutionStatus, Interval, Manifest, NewPhase, NewRun, PhaseKind, PhaseStatus, Record,
    Recorder, RunEnd, RunStatus, StoredHistogram, TransactionTick,
};
use underlay_report::analysis::{Analysis, Answer, Basis, FindingSeverity, Outcome};
use underlay_report::{
    Colour, CompareOptions, IdentityPolicy, analyse, compare, comparison_summary, terminal_summary,
};

/// Seconds of a round.
const ROUND_S: u64 = 5;
/// Requests in each second of a round.
const RATES: [u64; 5] = [1000, 1400, 900, 1300, 1100];

/// A load of five rounds on the folder `/data`, of which the document says `said`.
fn rounds(path: &Path, file: &str, status: RunStatus, said: Value) -> Record {
    rounds_of("4k-random-read", path, file, status, said)
}

/// The same, of the load of that name.
fn rounds_of(name: &str, path: &Path, file: &str, status: RunStatus, said: Value) -> Record {
    let plan = json!({ "workload": { "io": { "shape": { "headline": {
        "types": ["read"], "counted": "I/Os", "unit": "IOPS", "period_ns": 1_000_000_000u64,
    } } } } });
    let manifest = Manifest {
        study_name: format!("io-{name}"),
        title: String::new(),
        question: String::new(),
        evidence: Evidence::Measured,
        seed: RootSeed(1),
        identity: format!("io {{\"name\":\"{name}\"}}"),
        started_wall_ns: 0,
        plan,
        host: Value::Null,
        software: Value::Null,
    };
    let mut recorder = Recorder::create(path, &manifest).expect("a record");
    let design = Design {
        index: 0,
        name: "target".to_string(),
        title: "/data".to_string(),
        description: String::new(),
        evidence: Evidence::Measured,
        detail: json!({ "targets": [{ "path": file }], "direct": true, "working_set_bytes": [1 << 30] }),
    };
    recorder.add_design(&design).expect("written");
    let new = NewRun { design: 0, repeat: 1, order: 0, at: Nanos::ZERO, origin_wall_ns: 0 };
    let run = recorder.begin_run(&new).expect("written");
    let second = |number: u64| Nanos::from_secs(number);
    for (round, rate) in RATES.into_iter().enumerate() {
        let begin = round as u64 * ROUND_S;
        let new = NewPhase {
            run: Some(run),
            kind: PhaseKind::Measure,
            label: format!("round {}", round + 1),
            users: Some(8),
            at: second(begin),
        };
        let phase = recorder.begin_phase(&new).expect("written");
        for tick in begin..begin + ROUND_S {
            let mut response = Histogram::new();
            (0..rate).for_each(|_| response.record(1_000_000));
            let row = TransactionTick {
                interval: Interval { begin: second(tick), end: second(tick + 1) },
                transaction: "read".to_string(),
                committed: rate,
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
        recorder.end_phase(phase, second(begin + ROUND_S), PhaseStatus::Finished).expect("written");
    }
    recorder.write_document(Some(run), document::BLOCK_LOAD, &said).expect("written");
    let at = second(ROUND_S * RATES.len() as u64);
    recorder.end_run(run, &RunEnd { at, status, reason: None }).expect("written");
    recorder.finish(ExecutionStatus::Finished).expect("written");
    Record::open_read_only(path).expect("a record")
}

/// What the command says of five rounds.
fn said(steady: Option<bool>, undelivered: u64) -> Value {
    json!({
        "loads": RATES.iter().enumerate().map(|(round, rate)| json!({
            "label": format!("round {}", round + 1), "in_flight": 8, "counts": true,
            "offered_per_second": null, "done_per_second": rate, "bytes_per_second": rate * 4096,
            "saturated": false,
        })).collect::<Vec<_>>(),
        "steady": steady,
        "steady_state": { "rounds": 5, "rounds_max": 5, "range_share": 0.44, "excursion_share": 0.12 },
        "result": { "due": 100_000, "undelivered": undelivered },
        "interrupted": false,
    })
}

fn page(analysis: &Analysis) -> String {
    terminal_summary(analysis, 200, Colour::Never)
}

fn severity(analysis: &Analysis, code: &str) -> Option<FindingSeverity> {
    analysis.findings.iter().find(|finding| finding.code == code).map(|finding| finding.severity)
}

#[test]
fn rounds_are_parts_of_one_run() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a.db");
    let analysis =
        analyse(&rounds(&path, "/data", RunStatus::Finished, said(Some(true), 0))).unwrap();
    let headline = &analysis.rungs[0].metrics["headline"];
    let mean = RATES.iter().sum::<u64>() as f64 / RATES.len() as f64;
    assert_eq!((headline.value, headline.runs.as_slice()), (Some(mean), &[Some(mean)][..]));
    assert_eq!(headline.basis, Basis::WithinRun);
    let page = page(&analysis);
    assert!(!page.contains("over runs;"), "{page}");
    assert!(page.contains("one run, of which 5 rounds are reported: consecutive rounds"), "{page}");
    assert!(page.contains("steady state: reached after 5 rounds"), "{page}");
    assert_eq!(severity(&analysis, "steady-state"), Some(FindingSeverity::Information));
    assert!(!page.contains("users") && !page.contains("consistency check"), "{page}");
}

#[test]
fn what_is_not_what_was_asked_for_is_said() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a.db");
    let unsteady =
        analyse(&rounds(&path, "/data", RunStatus::Finished, said(Some(false), 0))).unwrap();
    assert_eq!(severity(&unsteady, "steady-state-not-reached"), Some(FindingSeverity::Warning));
    let text = page(&unsteady);
    let words = "warning: steady state: NOT reached after 5 rounds (last five rounds: range 44.0 % of the mean, \
                 limit 20 %; trend 12.0 %, limit 10 %)";
    assert!(text.contains(words), "{text}");

    let path = dir.path().join("b.db");
    let late =
        analyse(&rounds(&path, "/data", RunStatus::Finished, said(Some(true), 1_001))).unwrap();
    assert_eq!(late.verdict.answer, Answer::Invalid);
    assert!(page(&late).contains("1001 of 100000 requests that were due were never started (1 %)"));
    let path = dir.path().join("c.db");
    let few =
        analyse(&rounds(&path, "/data", RunStatus::Finished, said(Some(true), 1_000))).unwrap();
    assert_eq!(
        severity(&few, "delivery"),
        Some(FindingSeverity::Information),
        "as the command says"
    );
    assert_eq!(few.verdict.answer, Answer::SingleDesign);

    // What the user ended has measured something all the same.
    let path = dir.path().join("d.db");
    let mut cut = said(None, 0);
    cut["interrupted"] = true.into();
    let cut = analyse(&rounds(&path, "/data", RunStatus::Interrupted, cut)).unwrap();
    assert_eq!(severity(&cut, "interrupted"), Some(FindingSeverity::Warning));
    assert_eq!(severity(&cut, "steady-state-not-judged"), Some(FindingSeverity::Warning));
    assert_eq!(cut.verdict.answer, Answer::SingleDesign, "{}", cut.verdict.headline);
    assert!(cut.runs[0].counted && cut.block_loads[0].interrupted);
}

#[test]
fn records_of_block_loads_compare_their_runs_and_say_what_each_lacks() {
    let dir = tempdir().unwrap();
    let record = |name: &str, file: &str, said: Value| {
        rounds(&dir.path().join(name), file, RunStatus::Finished, said)
    };
    let options = CompareOptions { identity: IdentityPolicy::RequireEqual, designs: None };
    let a = record("a.db", "/data/underlay-io-1-0.data", said(Some(true), 0));
    let b = record("b.db", "/data/underlay-io-2-0.data", said(Some(false), 0));
    let found = compare(&a, &b, &options).unwrap();
    // Five rounds on each side are one run on each side.
    assert!(found.pairs[0].comparisons.iter().all(|one| one.outcome == Outcome::Single));
    let codes: Vec<&str> = found.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert!(!codes.contains(&"confounded") && !codes.contains(&"mixed-evidence"), "{codes:?}");
    let text = comparison_summary(&found, 200, Colour::Never);
    assert!(text.contains("warning: b.db: steady state: NOT reached"), "{text}");
    assert!(text.contains("8 requests") && !text.contains("users"), "{text}");

    let late = record("c.db", "/data", said(Some(true), 50_000));
    let found = compare(&a, &late, &options).unwrap();
    assert!(found.headlines[0].contains("are not comparable: c.db: 50000 of 100000"), "{found:?}");
}

#[test]
fn different_block_loads_are_named_not_described() {
    let dir = tempdir().unwrap();
    let record = |name: &str| {
        let path = dir.path().join(format!("{name}.db"));
        rounds_of(name, &path, "/data", RunStatus::Finished, said(Some(true), 0))
    };
    let (reads, writes) = (record("4k-random-read"), record("4k-random-write"));
    let options = CompareOptions { identity: IdentityPolicy::RequireEqual, designs: None };
    let refused = compare(&reads, &writes, &options).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the records have different workloads (A: io-4k-random-read; B: io-4k-random-write): their numbers are \
         not comparable"
    );
}
