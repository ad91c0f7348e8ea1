//! Values that the tests write.

use std::collections::BTreeMap;

use serde_json::json;
use underlay_core::series::{Layer, SeriesSpec};
use underlay_core::{Evidence, Histogram, Nanos, RootSeed};
use underlay_record::{
    Design, Interval, Manifest, NewPhase, NewRun, PhaseKind, RunEnd, RunId, RunStatus, Source,
    SourceStatus, TransactionTick, WaitCount, WaitKey, WaitWindow,
};

pub fn manifest() -> Manifest {
    Manifest {
        study_name: "quickstart".into(),
        title: "NVMe or SATA?".into(),
        question: "Which design serves more orders?".into(),
        evidence: Evidence::Emulated,
        seed: RootSeed(u64::MAX),
        identity: "c0ffee".into(),
        started_wall_ns: 1_790_000_000_000_000_000,
        plan: json!({ "procedure": { "users": [1, 2, 4] } }),
        host: json!({ "cpu_count": 2 }),
        software: json!({ "underlay": "0.1.0" }),
    }
}

pub fn design(index: u32, name: &str) -> Design {
    Design {
        index,
        name: name.into(),
        title: name.to_uppercase(),
        description: format!("the {name} design"),
        evidence: Evidence::Emulated,
        detail: json!({ "devices": [name] }),
    }
}

pub fn run(design: u32, repeat: u32) -> NewRun {
    NewRun { design, repeat, order: repeat * 2 + design, at: second(0), origin_wall_ns: 77 }
}

pub fn measure(run: RunId, users: u32, at: Nanos) -> NewPhase {
    NewPhase {
        run: Some(run),
        kind: PhaseKind::Measure,
        label: format!("{users} users"),
        users: Some(users),
        at,
    }
}

pub fn finished(at: Nanos) -> RunEnd {
    RunEnd { at, status: RunStatus::Finished, reason: None }
}

pub fn second(n: u64) -> Nanos {
    Nanos::from_secs(n)
}

pub fn tick(n: u64) -> Interval {
    Interval { begin: second(n), end: second(n + 1) }
}

pub fn source(index: u32, name: &str, series: &[&str]) -> Source {
    Source {
        index,
        name: name.into(),
        layer: Layer::Host,
        status: SourceStatus::Available,
        series: series.iter().map(|name| SeriesSpec::counter(*name, "ns")).collect(),
    }
}

pub fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|value| histogram.record(*value));
    histogram
}

pub fn transactions(n: u64) -> TransactionTick {
    TransactionTick {
        interval: tick(n),
        transaction: "new_order".into(),
        committed: 90 + n,
        rolled_back: 1,
        failed: 2,
        unknown: 3,
        errors: BTreeMap::from([("deadlock".to_string(), 2)]),
        retries: 4,
        response: (&histogram(&[1_000_000, 2_000_000 + n])).into(),
        service: (&histogram(&[900_000])).into(),
    }
}

pub fn waits(n: u64) -> WaitWindow {
    let count = |class: &str, event: &str, sessions| WaitCount {
        key: WaitKey {
            state: "active".into(),
            class: class.into(),
            event: event.into(),
            backend_type: "client backend".into(),
        },
        sessions,
    };
    WaitWindow {
        interval: tick(n),
        samples: 20,
        clients: vec![count("IO", "DataFileRead", 50), count("", "", 10)],
        holder_samples: 5,
        holders: vec![count("IO", "WALSync", 3)],
        background: vec![count("IO", "DataFileWrite", 7)],
        log_holders: vec![count("IO", "WALWrite", 2)],
        page_holders: vec![count("IO", "DataFileRead", 1)],
    }
}
