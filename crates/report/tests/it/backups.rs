//! Records of backup and restore cycles: what is compared, said and drawn of them.

use serde_json::{Value, json};
use underlay_core::series::{Layer, SeriesSpec};
use underlay_core::{Evidence, Nanos, RootSeed};
use underlay_record::conventions::{document, source};
use underlay_record::{
    Design, ExecutionStatus, Interval, Manifest, NewPhase, NewRun, PhaseKind, PhaseStatus, Record,
    Recorder, RunEnd, RunStatus, Source, SourceStatus,
};
use underlay_report::analysis::Outcome;
use underlay_report::{Analysis, Colour, terminal_summary};

const MEGABYTE: u64 = 1_000_000;
/// What is backed up.
const BYTES: u64 = 1000 * MEGABYTE;
const CYCLES: u64 = 2;

/// Seconds of a backup and a restore of a design in a repeat; no restores where it is `None`.
pub type Seconds = fn(u32, u32) -> (u64, Option<u64>);

fn plan() -> Value {
    let headline = json!({
        "types": ["backup", "restore"], "counted": "MB", "unit": "MB/s", "period_ns": 1_000_000_000u64,
    });
    json!({
        "workload": { "backup": {
            "cycles": CYCLES, "pacing": { "job": {} },
            "shape": { "types": ["backup", "restore"], "headline": headline, "notice": "" },
        } },
        "outcome": {
            "kind": "job", "definition": "bytes over time", "counted": "MB backed up", "unit": "MB/s",
            "period_ns": 1_000_000_000u64,
        },
    })
}

/// A record of two designs, interleaved.
pub fn analysed(repeats: u32, seconds: Seconds) -> Analysis {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let manifest = Manifest {
        study_name: "s".into(),
        title: "t".into(),
        question: "q".into(),
        evidence: Evidence::Measured,
        seed: RootSeed(1),
        identity: "i".into(),
        started_wall_ns: 0,
        plan: plan(),
        host: json!({}),
        software: json!({}),
    };
    let mut recorder = Recorder::create(&path, &manifest).unwrap();
    for (index, name) in ["nvme", "sata"].into_iter().enumerate() {
        let design = Design {
            index: index as u32,
            name: name.into(),
            title: name.to_uppercase(),
            description: String::new(),
            evidence: Evidence::Measured,
            detail: json!({}),
        };
        recorder.add_design(&design).unwrap();
    }
    for order in 0..repeats * 2 {
        let (design, repeat) = (order % 2, order / 2 + 1);
        write_run(&mut recorder, (design, repeat, order), seconds(design, repeat));
    }
    recorder.finish(ExecutionStatus::Finished).unwrap();
    underlay_report::analyse(&Record::open_read_only(&path).unwrap()).unwrap()
}

fn write_run(
    recorder: &mut Recorder,
    (design, repeat, order): (u32, u32, u32),
    (backup_s, restore_s): (u64, Option<u64>),
) {
    let new = NewRun { design, repeat, order, at: Nanos::ZERO, origin_wall_ns: 0 };
    let run = recorder.begin_run(&new).unwrap();
    let begin = NewPhase {
        run: Some(run),
        kind: PhaseKind::Measure,
        label: "measure".into(),
        users: Some(1),
        at: Nanos::from_secs(1),
    };
    let phase = recorder.begin_phase(&begin).unwrap();
    let (mut operations, mut at_s) = (Vec::new(), 1);
    for cycle in 1..=CYCLES {
        for (kind, took) in [("backup", Some(backup_s)), ("restore", restore_s)] {
            let Some(took) = took else { continue };
            operations.push(json!({
                "kind": kind, "cycle": cycle, "bytes": BYTES,
                "begin_ns": at_s * 1_000_000_000u64, "end_ns": (at_s + took) * 1_000_000_000u64,
            }));
            at_s += took;
        }
    }
    let of = |seconds: u64| {
        let rate = BYTES as f64 / seconds as f64;
        json!({ "count": CYCLES, "seconds": seconds as f64, "bytes_per_second": rate })
    };
    let outcome = json!({
        "value": (BYTES / MEGABYTE) as f64 / backup_s as f64,
        "backup": of(backup_s), "restore": restore_s.map(of), "operations": operations,
    });
    // Reads of the volume `data` take 2 ms; there are 100 per second of the first backup, and none later.
    let series = ["volume.data.read.ios", "volume.data.read.time"];
    let block = Source {
        index: 0,
        name: source::BLOCK.into(),
        layer: Layer::Block,
        status: SourceStatus::Available,
        series: series.map(|name| SeriesSpec::counter(name, "x")).into(),
    };
    recorder.source(run, &block).unwrap();
    for second in 0..=at_s {
        let reads = second.clamp(1, 1 + backup_s) as f64 * 100.0;
        let at = Nanos::from_secs(second);
        let interval = Interval { begin: at, end: at };
        recorder.tick(run, 0, interval, &[reads, reads * 2.0]).unwrap();
    }
    recorder.end_phase(phase, Nanos::from_secs(at_s), PhaseStatus::Finished).unwrap();
    recorder.write_document(Some(run), document::OUTCOME, &outcome).unwrap();
    let at = Nanos::from_secs(at_s + 1);
    let end = RunEnd { at, status: RunStatus::Finished, reason: None };
    recorder.end_run(run, &end).unwrap();
}

/// NVMe backs up in 10 s and restores in 5 s, with a second more in the second repeat; SATA takes twice and four times as long.
pub fn uneven(design: u32, repeat: u32) -> (u64, Option<u64>) {
    let (backup, restore) = if repeat == 2 { (11, 6) } else { (10, 5) };
    if design == 0 { (backup, Some(restore)) } else { (backup * 2, Some(restore * 4)) }
}

#[test]
fn backups_and_restores_are_compared_apart() {
    let analysis = analysed(3, uneven);
    let ratio = |metric: &str| {
        let found = analysis
            .comparisons
            .iter()
            .find(|comparison| comparison.metric == metric && comparison.users.is_some());
        let found = found.unwrap_or_else(|| panic!("no comparison of {metric}"));
        assert_eq!(found.outcome, Outcome::Worse, "{found:?}");
        found.ratio.unwrap()
    };
    assert!((ratio("headline") - 0.5).abs() < 1e-9);
    assert!((ratio("restore_bytes_per_second") - 0.25).abs() < 1e-9);
    // The one that is ahead in both, with the number of restores below.
    let verdict = &analysis.verdict;
    assert!(verdict.headline.starts_with("NVME does 2.0x"), "{}", verdict.headline);
    assert!(
        verdict.headline.contains("the MB backed up per second of SATA"),
        "{}",
        verdict.headline
    );
    let restores = verdict.support.iter().find(|text| text.starts_with("Restores: NVME "));
    assert!(restores.is_some_and(|text| text.contains("4.0x")), "{:?}", verdict.support);
    // No session did the work.
    assert!(analysis.bottlenecks.is_empty());
}

#[test]
fn each_cycle_has_its_numbers_and_its_place_in_time() {
    let analysis = analysed(3, uneven);
    let keys: Vec<(usize, &str, u32)> = analysis
        .operations
        .iter()
        .map(|operation| (operation.design, operation.kind.as_str(), operation.cycle))
        .collect();
    assert_eq!(keys.len(), 8);
    assert_eq!(
        keys[..4],
        [(0, "backup", 1), (0, "backup", 2), (0, "restore", 1), (0, "restore", 2)]
    );
    let first = &analysis.operations[0];
    assert_eq!(first.seconds.runs, [Some(10.0), Some(11.0), Some(10.0)]);
    assert_eq!(first.bytes_per_second.runs[0], Some(1e8));
    assert!(first.seconds.low.is_some(), "three runs have an interval");
    let latency = first.read_latency_ns.value.unwrap();
    assert!((latency - 2e6).abs() < 1.0, "{latency}");
    assert_eq!(analysis.operations[1].read_latency_ns.value, None, "nothing was read then");
    // Over all cycles, of those that read anything.
    let metrics = &analysis.rungs[0].metrics;
    let latency = metrics["backup_latency_ns"].value.unwrap();
    assert!((latency - 2e6).abs() < 1.0, "{latency}");
    assert!(!metrics.contains_key("restore_latency_ns"), "nothing was read then, either");
    let events: Vec<(&str, f64, Option<f64>)> = analysis.runs[0]
        .events
        .iter()
        .map(|event| (event.text.as_str(), event.at_s, event.until_s))
        .collect();
    assert_eq!(events[0], ("backup 1: 10 s, 100 MB/s", 1.0, Some(11.0)));
    assert_eq!(events[3], ("restore 2: 5 s, 200 MB/s", 26.0, Some(31.0)));
}

#[test]
fn the_terminal_says_seconds_and_rates_of_both() {
    let text = terminal_summary(&analysed(3, uneven), 120, Colour::Never);
    for wanted in
        ["operation", "restore    NVME", "ratio of MB/s, restore", "ratio of MB/s, backup"]
    {
        assert!(text.contains(wanted), "{wanted:?} in {text}");
    }
    // What sessions have is not there.
    assert!(!text.contains("bottlenecks"), "{text}");
}

#[test]
fn backups_alone_have_no_restores() {
    let analysis = analysed(2, |design, _| (10 * (u64::from(design) + 1), None));
    assert!(analysis.operations.iter().all(|operation| operation.kind == "backup"));
    let metrics: Vec<&str> =
        analysis.comparisons.iter().map(|comparison| comparison.metric.as_str()).collect();
    assert!(!metrics.contains(&"restore_bytes_per_second"), "{metrics:?}");
    let text = terminal_summary(&analysis, 120, Colour::Never);
    assert!(!text.contains("restore"), "{text}");
}
