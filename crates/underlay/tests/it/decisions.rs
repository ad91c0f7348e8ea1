//! What scripts decide by: the gate of `compare`, and `trend`, on records with known throughput.

use crate::common::Bench;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use underlay_core::{Evidence, Histogram, Nanos, RootSeed};
use underlay_record::{
    Design, ExecutionStatus, Interval, Manifest, NewPhase, NewRun, PhaseKind, PhaseStatus,
    Recorder, RunEnd, RunStatus, TransactionTick,
};

/// A record of a day: its version, and new orders per second of each run.
struct Day {
    day: u64,
    version: &'static str,
    identity: &'static str,
    evidence: Evidence,
    runs: Vec<u64>,
}

fn day(day: u64, runs: &[u64]) -> Day {
    let (version, evidence) = ("1.0.0", Evidence::Emulated);
    Day { day, version, identity: "tpcc 1", evidence, runs: runs.to_vec() }
}

const SECONDS: u64 = 10;

fn write(path: &Path, day: &Day) {
    let manifest = Manifest {
        study_name: "nightly".into(),
        title: "Nightly".into(),
        question: "Did it become slower?".into(),
        evidence: day.evidence,
        seed: RootSeed(1),
        identity: day.identity.into(),
        started_wall_ns: 1_790_000_000_000_000_000 + day.day * 86_400_000_000_000,
        plan: json!({ "format": 1, "workload": { "tpcc": { "mode": "procedures" } } }),
        host: Value::Null,
        software: json!({ "underlay": day.version }),
    };
    let mut recorder = Recorder::create(path, &manifest).expect("created");
    let design = Design {
        index: 0,
        name: "nvme".into(),
        title: "NVMe".into(),
        description: String::new(),
        evidence: day.evidence,
        detail: json!({}),
    };
    recorder.add_design(&design).expect("written");
    for (order, per_second) in day.runs.iter().enumerate() {
        let order = order as u32;
        let new =
            NewRun { design: 0, repeat: order + 1, order, at: Nanos::ZERO, origin_wall_ns: 1 };
        let run = recorder.begin_run(&new).expect("begun");
        let label = "8 users".to_string();
        let kind = PhaseKind::Measure;
        let new = NewPhase { run: Some(run), kind, label, users: Some(8), at: Nanos::ZERO };
        let phase = recorder.begin_phase(&new).expect("begun");
        let mut response = Histogram::new();
        response.record_n(5_000_000, *per_second);
        for second in 0..SECONDS {
            let (begin, end) = (Nanos::from_secs(second), Nanos::from_secs(second + 1));
            let tick = TransactionTick {
                interval: Interval { begin, end },
                transaction: "new_order".into(),
                committed: *per_second,
                rolled_back: 0,
                failed: 0,
                unknown: 0,
                errors: BTreeMap::new(),
                retries: 0,
                response: (&response).into(),
                service: (&response).into(),
            };
            recorder.transactions(run, &tick).expect("written");
            recorder.commit().expect("written");
        }
        let end = Nanos::from_secs(SECONDS);
        recorder.end_phase(phase, end, PhaseStatus::Finished).expect("ended");
        let end = RunEnd { at: end, status: RunStatus::Finished, reason: None };
        recorder.end_run(run, &end).expect("ended");
    }
    recorder.finish(ExecutionStatus::Finished).expect("finished");
}

#[test]
fn a_gate_has_an_exit_code_for_each_answer() {
    let bench = Bench::new();
    let records: [(&str, &[u64]); 5] = [
        ("base.sqlite", &[1000, 1003, 998, 1001, 999]),
        ("same.sqlite", &[1002, 998, 1001, 1000, 997]),
        ("slow.sqlite", &[900, 903, 897, 901, 899]),
        ("noisy.sqlite", &[1050, 870, 1010, 900, 980]),
        ("once.sqlite", &[990]),
    ];
    for (number, (name, runs)) in records.into_iter().enumerate() {
        write(&bench.path().join(name), &day(number as u64, runs));
    }
    let gate = |b: &str, allowed: &str| {
        bench.run(&["compare", "base.sqlite", b, "--fail-if-worse", allowed])
    };
    for (b, allowed, code) in [
        ("same.sqlite", "5%", 0),
        ("slow.sqlite", "5%", 9),
        ("slow.sqlite", "15%", 0),
        ("noisy.sqlite", "5%", 10),
        ("once.sqlite", "5%", 10),
        ("same.sqlite", "5", 2),
    ] {
        let ended = gate(b, allowed);
        assert_eq!(ended.code, Some(code), "{b} {allowed}: {}", ended.stderr);
    }
    let refused = gate("slow.sqlite", "5%");
    assert!(refused.stderr.contains("more than 5 % worse: 0.90x"), "{}", refused.stderr);
    assert!(refused.stdout.contains("worse"), "the comparison is printed: {}", refused.stdout);

    // Without the gate a worse record is an answer like any other.
    bench.run(&["compare", "base.sqlite", "slow.sqlite"]).expect(0);

    let printed = bench
        .run(&["compare", "base.sqlite", "slow.sqlite", "--fail-if-worse", "5%", "--json"])
        .expect(9);
    let printed: Value = serde_json::from_str(&printed).expect("JSON in spite of the exit code");
    assert_eq!(printed["gate"]["outcome"], "worse");
    assert_eq!(printed["gate"]["least_ratio"], 0.95);
    assert_eq!(printed["gate"]["pairs"][0]["users"], 8);
    assert!(printed["pairs"][0]["comparisons"].is_array(), "the comparison itself");
}

#[test]
fn a_trend_shows_where_the_level_changed_and_what_else_did() {
    let bench = Bench::new();
    let folder = bench.path().join("records");
    std::fs::create_dir(&folder).expect("a folder");
    let levels = [1000, 1010, 995, 1004, 1000, 805, 800, 796, 803, 800];
    for (n, level) in levels.iter().enumerate() {
        let version = if n < 5 { "1.0.0" } else { "1.1.0" };
        let runs = [*level, level + 4, level - 4];
        let written = Day { version, ..day(n as u64, &runs) };
        write(&folder.join(format!("nightly-{n}.sqlite")), &written);
    }
    // Another size of the same study, its simulation, and a file that is no record, hide nothing.
    let other = Day { identity: "tpcc 2", ..day(3, &[50, 50]) };
    write(&folder.join("other-size.sqlite"), &other);
    let simulated = Day { evidence: Evidence::Simulated, ..day(4, &[4000, 4001]) };
    write(&folder.join("simulated.sqlite"), &simulated);
    std::fs::write(folder.join("damaged.sqlite"), "no record").expect("written");

    let ended = bench.run(&["trend", "records"]);
    assert!(ended.stderr.contains("damaged.sqlite"), "{}", ended.stderr);
    let text = ended.expect(0);
    for part in [
        "1 change in 10 records: -20 % at nightly-5.sqlite",
        "software.underlay: 1.0.0 / 1.1.0",
        "left out: other-size.sqlite (another workload than the newest record)",
        "left out: simulated.sqlite (simulated, while the newest record is emulated)",
    ] {
        let flat: Vec<&str> = text.split_whitespace().collect();
        assert!(flat.join(" ").contains(part), "`{part}` is missing:\n{text}");
    }

    let trend: Value = serde_json::from_str(&bench.run(&["trend", "records", "--json"]).expect(0))
        .expect("JSON on standard output");
    assert_eq!(trend["records"].as_array().expect("records").len(), 10);
    let change = &trend["designs"][0]["changes"][0];
    assert_eq!(change["record"], 5);
    assert!((change["relative"].as_f64().expect("a size") + 0.2).abs() < 0.02, "{change}");

    assert_eq!(bench.run(&["trend", "no-such-folder"]).code, Some(2));
    std::fs::create_dir(bench.path().join("empty")).expect("a folder");
    let none = bench.run(&["trend", "empty"]);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("`.sqlite` in empty"), "{}", none.stderr);
    assert_eq!(bench.run(&["trend", "records", "--study", "weekly"]).code, Some(2));
}
