//! Runs, windows and time lines of the example.

use std::collections::BTreeMap;

use underlay_report::analysis::{
    Basis, Estimate, Event, Phase, Run, Steady, SteadyState, TimelineLine, TimelineSeries,
    Timelines, Window,
};

use super::{NOPM, REPEATS, Size, USERS, noise};

/// Name, title, layer, unit, group, and a typical value.
type SeriesRow = (&'static str, &'static str, &'static str, &'static str, &'static str, f64);

const SERIES: [SeriesRow; 13] = [
    ("headline", "New orders per minute", "driver", "1/min", "throughput", 15_000.0),
    ("latency.new_order.p50", "New order p50", "driver", "ns", "latency", 6e6),
    ("latency.new_order.p99", "New order p99", "driver", "ns", "latency", 25e6),
    ("wait.cpu", "Server CPU", "database", "sessions", "waits", 5.0),
    ("wait.log", "Log writes", "database", "sessions", "waits", 3.0),
    ("wait.data-read", "Data reads", "database", "sessions", "waits", 6.0),
    ("wait.lock", "Locks", "database", "sessions", "waits", 1.0),
    ("cpu.busy", "CPU busy", "host", "share", "cpu", 0.7),
    ("cpu.iowait", "CPU waiting for I/O", "host", "share", "cpu", 0.2),
    ("memory.available", "Memory available", "host", "bytes", "memory", 6e9),
    ("volume.data.read_bytes", "data: read", "block", "bytes/s", "volume.data", 90e6),
    ("volume.wal.write_iops", "wal: writes", "block", "1/s", "volume.wal", 1500.0),
    ("datastore.data.read.p99", "data: read p99", "datastore", "ns", "datastore", 400e3),
];

pub fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    for repeat in 1..=REPEATS {
        let order: [usize; 2] = if repeat % 2 == 1 { [0, 1] } else { [1, 0] };
        for design in order {
            let position = runs.len() as u32 + 1;
            runs.push(run(design, repeat, position));
        }
    }
    runs
}

fn run(design: usize, repeat: u32, order: u32) -> Run {
    let phases = phases();
    let seconds = phases.last().and_then(|phase| phase.end_s);
    let checkpoint = |at_s: f64| Event {
        at_s,
        until_s: Some(at_s + 25.0),
        kind: "checkpoint-begin".into(),
        text: "checkpoint".into(),
    };
    Run {
        id: i64::from(order),
        design,
        repeat,
        order,
        status: "finished".into(),
        reason: None,
        counted: true,
        superseded_by: None,
        begin_wall_ns: 1_763_600_000_000_000_000 + u64::from(order) * 420_000_000_000,
        seconds,
        phases,
        stages: Vec::new(),
        notes: vec![Event {
            at_s: 0.5,
            until_s: None,
            kind: "note".into(),
            text: "pressure: not offered by this kernel".into(),
        }],
        events: vec![checkpoint(110.0 + 7.0 * noise(u64::from(order))), checkpoint(260.0)],
    }
}

fn phases() -> Vec<Phase> {
    let mut at = 0.0;
    let mut phases = Vec::new();
    let mut add = |kind: &str, label: String, users: Option<u32>, length: f64| {
        phases.push(Phase {
            kind: kind.into(),
            label,
            users,
            begin_s: at,
            end_s: Some(at + length),
            status: "finished".into(),
        });
        at += length;
    };
    add("restore", "restore".into(), None, 8.0);
    add("warm-up", "warm-up".into(), Some(16), 60.0);
    for users in USERS {
        add("ramp-up", format!("to {users} users"), Some(users), 5.0);
        add("measure", format!("{users} users"), Some(users), 60.0);
    }
    add("check", "check".into(), None, 6.0);
    phases
}

pub fn windows(runs: &[Run]) -> Vec<Window> {
    let mut windows = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        for (rung, users) in USERS.iter().enumerate() {
            let value = NOPM[run.design][rung] * (1.0 + 0.03 * noise((index * 10 + rung) as u64));
            let state = [SteadyState::Steady, SteadyState::NotSteady, SteadyState::TooShort];
            windows.push(Window {
                run: index,
                design: run.design,
                users: *users,
                begin_s: 73.0 + 65.0 * rung as f64,
                end_s: 133.0 + 65.0 * rung as f64,
                headline: Estimate {
                    value: Some(value),
                    low: Some(value * 0.96),
                    high: Some(value * 1.04),
                    basis: Basis::WithinRun,
                    runs: vec![Some(value)],
                },
                metrics: BTreeMap::new(),
                steady: Steady {
                    state: state[if (index + rung) % 9 < 2 { (index + rung) % 9 + 1 } else { 0 }],
                    text: "drift 0.6 %, no change of level".into(),
                    trimmed_s: Some(5.0),
                    drift: Some(0.006),
                    change_points_s: vec![],
                    effective_samples: Some(31.0),
                },
            });
        }
    }
    windows
}

pub fn timelines(runs: &[Run], size: Size) -> Timelines {
    let series = (0..size.series).map(|index| series(index).0).collect();
    let mut lines = Vec::new();
    for (run_index, run) in runs.iter().enumerate().take(size.runs) {
        lines.extend((0..size.series).map(|index| line(run_index, run, index, size.buckets)));
    }
    Timelines { series, lines }
}

fn series(index: usize) -> (TimelineSeries, f64) {
    let of = |name: String, title: String, row: &SeriesRow| {
        (
            TimelineSeries {
                name,
                title,
                layer: row.2.into(),
                unit: row.3.into(),
                group: row.4.into(),
                entity: None,
            },
            row.5,
        )
    };
    match SERIES.get(index) {
        Some(row) => of(row.0.into(), row.1.into(), row),
        // More series of the same kinds, without the classes of time.
        None => {
            let row = &SERIES[7 + index % 6];
            of(format!("{}.{index}", row.0), format!("{} {index}", row.1), row)
        }
    }
}

fn line(run_index: usize, run: &Run, index: usize, buckets: usize) -> TimelineLine {
    let length = run.seconds.unwrap_or(1.0);
    let step_s = length / buckets as f64;
    let typical = series(index).1 * [1.0, 0.6][run.design];
    let mean: Vec<Option<f64>> = (0..buckets)
        .map(|bucket| {
            let at = bucket as f64 * step_s;
            let phase = run.phases.iter().find(|phase| phase.end_s.is_some_and(|end| at < end));
            let load = phase
                .and_then(|phase| phase.users)
                .map_or(0.02, |users| (f64::from(users) / 16.0).sqrt());
            let jitter =
                1.0 + 0.1 * noise((run_index * 1_000_003 + index * 10_007 + bucket) as u64);
            // The host's series have a gap of ten buckets.
            (index % 8 != 7 || !(200..210).contains(&bucket)).then_some(typical * load * jitter)
        })
        .collect();
    let scaled = |factor: f64| mean.iter().map(|value| value.map(|value| value * factor)).collect();
    TimelineLine {
        run: run_index,
        series: index,
        begin_s: 0.0,
        step_s,
        min: Some(scaled(0.85)),
        max: Some(scaled(1.25)),
        mean,
    }
}
