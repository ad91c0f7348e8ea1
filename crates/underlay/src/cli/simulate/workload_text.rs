//! The outcome of a block workload as text and as JSON.
//!
//! Both contain everything needed to repeat the simulation and what it left out: its numbers are only as good as its
//! window and its assumptions.

use super::design::{ClusterSetup, Outcome, Setup, Storage};
use serde_json::{Value, json};
use std::fmt::Write;
use underlay_core::Histogram;
use underlay_model::cluster::{REQUESTS_AT_ONCE, Stack};
use underlay_simulation::{Curve, Latencies, MeasuredPoint, SimulationResult};
use underlay_workload::block::steady_state::{EXCURSION_MAX, RANGE_MAX};

/// Percentiles shown.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// With fewer measured requests per queue slot, the result shows the start of the run, not its steady state.
const ROUND_TRIPS_MIN: f64 = 20.0;

/// As text.
pub fn render(setup: &Setup, outcome: &Outcome) -> String {
    let mut text = format!("simulated: design {}, virtual time\n", setup.design);
    for line in asked(setup) {
        let _ = writeln!(text, "  {line}");
    }
    text.push('\n');
    match outcome {
        Outcome::Once(result) => once(&mut text, result),
        Outcome::Curve(curve) => points(&mut text, curve),
    }
    let notes = notes(setup, outcome);
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// What was asked, as lines.
fn asked(setup: &Setup) -> Vec<String> {
    let count = |number: u32, what: &str| match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    };
    let pace = match (setup.rate, setup.is_curve) {
        (Some(rate), _) => format!("open loop, {rate} per second over all volumes"),
        (None, true) => "rate curve: closed loop for the maximum, then open loop".to_string(),
        (None, false) => "closed loop".to_string(),
    };
    let mut lines = vec![
        format!(
            "workload {} on {} of {}, {} x {} in flight each; {pace}",
            setup.workload,
            count(setup.volumes, "volume"),
            setup.size,
            count(setup.threads, "thread"),
            setup.queue_depth
        ),
        format!(
            "at most {} s or {} requests measured{} after {} s of warm-up; seed {}",
            setup.seconds,
            setup.requests,
            if setup.is_curve { " per point" } else { "" },
            setup.warm_up,
            setup.seed
        ),
    ];
    if let Storage::Cluster(cluster) = &setup.storage {
        let buffer = cluster.write_buffer.map_or("as designed".to_string(), |it| it.to_string());
        lines.push(format!("hosts' storage stack: {}; write buffers: {buffer}", stack(cluster)));
    }
    lines
}

fn stack(cluster: &ClusterSetup) -> String {
    if cluster.stack == Stack::NONE {
        return "costs nothing (see --stack)".to_string();
    }
    let decompressing = match cluster.stack.per_read_byte_ps {
        0 => String::new(),
        ps => format!(", {} ns to decompress one that is read", ps as f64 / 1e3),
    };
    format!(
        "{} us per I/O, {REQUESTS_AT_ONCE} at a time, {} ns to copy a byte{decompressing}",
        cluster.stack.per_io.0 as f64 / 1e3,
        cluster.stack.per_byte_ps as f64 / 1e3
    )
}

/// Notes needed to interpret the numbers.
fn notes(setup: &Setup, outcome: &Outcome) -> Vec<String> {
    let mut notes = Vec::new();
    match outcome {
        Outcome::Once(result) => notes.extend(window_note(result, "--requests or --seconds")),
        Outcome::Curve(curve) => {
            let note = window_note(&curve.maximum, "--requests or --seconds");
            notes.extend(note.map(|note| format!("the run of the maximum: {note}")));
        }
    }
    if let Some(jobs) = setup.merged_jobs {
        let merged = match jobs {
            1 => String::new(),
            jobs => format!("its {jobs} jobs are merged into one mix; "),
        };
        notes.push(format!(
            "`{}`: {merged}the options' rate, threads and queue depth replace its own",
            setup.workload
        ));
    }
    match &setup.storage {
        Storage::Devices { has_disks: true } => notes.push(
            "seek distances of a rotating disk are relative to the space in use: a smaller --size does not shorten \
             them"
                .to_string(),
        ),
        Storage::Devices { .. } => {}
        Storage::Cluster(cluster) => cluster_notes(&mut notes, setup, cluster),
    }
    notes
}

fn cluster_notes(notes: &mut Vec<String>, setup: &Setup, cluster: &ClusterSetup) {
    if cluster.volumes_at_home > 0 {
        notes.push(format!(
            "{} of {} volumes have data on the host of the machine that uses them and need no network for it; machines are \
             assigned to hosts round-robin",
            cluster.volumes_at_home, setup.volumes
        ));
    }
    if !setup.writes {
        return;
    }
    let reduction = if cluster.is_reduced { " and data reduction" } else { "" };
    match cluster.buffers {
        Some(buffers) if buffers.destaged.0 == 0 => notes.push(format!(
            "nothing was destaged (the fullest write buffer is {:.1} % full), so capacity devices{reduction} did not affect \
             writes; --write-buffer 256MiB shows the steady state of destaging",
            buffers.fullest_percent
        )),
        Some(buffers) => notes.push(format!(
            "of {} written, copies included, {} were destaged; the fullest write buffer is {:.1} % full",
            buffers.written, buffers.destaged, buffers.fullest_percent
        )),
        None if cluster.write_buffer.is_none() => notes.push(format!(
            "points of a few seconds do not fill full-size write buffers, so capacity devices{reduction} do not affect \
             writes; --write-buffer 256MiB shows the steady state of destaging"
        )),
        None => {}
    }
}

/// What is wrong with the measured window, if anything.
fn window_note(result: &SimulationResult, remedy: &str) -> Option<String> {
    if result.is_overloaded() {
        return None;
    }
    let round_trips = result.round_trips();
    // Of an open loop, places say nothing.
    if result.arrived == 0 && round_trips < ROUND_TRIPS_MIN {
        return Some(format!(
            "too short to judge: only {round_trips:.1} requests per queue slot were measured; raise {remedy}"
        ));
    }
    let state = result.steadiness()?;
    if state.is_steady() {
        return None;
    }
    let rounds = result.rounds_per_second.map(|rate| format!("{rate:.0}")).join(", ");
    Some(format!(
        "not steady: the fifths of the window ran at {rounds} per second (range {:.0} % of the mean, limit {:.0} %; trend {:.0} \
         %, limit {:.0} %); raise {remedy}",
        100.0 * state.range_share,
        100.0 * RANGE_MAX,
        100.0 * state.excursion_share,
        100.0 * EXCURSION_MAX
    ))
}

fn once(text: &mut String, result: &SimulationResult) {
    let _ = writeln!(
        text,
        "{:.0} I/Os per second, {:.1} MB/s over {}",
        result.iops(),
        result.bytes_per_second() / 1e6,
        result.duration()
    );
    let _ = write!(text, "\n{:<28}{:>10}{:>12}{:>12}", "", "per second", "mean us", "queued us");
    for (name, _) in QUANTILES {
        let _ = write!(text, "{name:>10}");
    }
    text.push('\n');
    for stream in &result.streams {
        for (what, latencies) in [("read", &stream.read), ("write", &stream.write)] {
            if latencies.response.is_empty() {
                continue;
            }
            let label = format!("{} {} {what}", stream.client, stream.stream);
            let rate = latencies.response.count() as f64 / result.duration().as_secs_f64();
            let _ = write!(
                text,
                "{label:<28}{rate:>10.0}{:>12.1}{:>12.1}",
                us(latencies.response.mean()),
                us(latencies.queue.mean())
            );
            for (_, q) in QUANTILES {
                let value = latencies.response.quantile(q).map(|ns| ns as f64);
                let _ = write!(text, "{:>10.1}", us(value));
            }
            text.push('\n');
        }
    }
    if result.swamped {
        let _ = writeln!(
            text,
            "\noverload: the design cannot sustain this rate; {} arrivals were waiting when the run was stopped after {}",
            result.backlog_at_end,
            result.measured_until - result.begin
        );
    } else if result.is_overloaded() {
        let _ = writeln!(
            text,
            "\noverload: {} arrivals were waiting at the end, {} at the start of the window; response times grow with the \
             length of the run",
            result.backlog_at_end, result.backlog_at_begin
        );
    }
    if result.failed > 0 {
        let _ = writeln!(text, "\n{} requests ended with an I/O error", result.failed);
    }
}

fn points(text: &mut String, curve: &Curve) {
    let _ = writeln!(
        text,
        "{:>8}{:>12}{:>12}{:>12}{:>14}{:>14}{:>14}",
        "of max", "offered", "achieved", "MB/s", "service ms", "response ms", "p99 ms"
    );
    let mut line = |share: String, offered: String, result: &SimulationResult, mark: &str| {
        let total = result.total();
        let _ = writeln!(
            text,
            "{share:>8}{offered:>12}{:>12.0}{:>12.1}{:>14.3}{:>14.3}{:>14.3}{mark}",
            result.iops(),
            result.bytes_per_second() / 1e6,
            us(total.service.mean()) / 1e3,
            us(total.response.mean()) / 1e3,
            us(total.response.quantile(0.99).map(|ns| ns as f64)) / 1e3,
        );
    };
    line("max".to_string(), "-".to_string(), &curve.maximum, "");
    for point in &curve.points {
        let mark = if point.is_saturated() { "  saturated" } else { "" };
        let offered = point.offered.rate_per_second.to_string();
        line(format!("{} %", point.offered.percent), offered, &point.result, mark);
    }
    let kept = curve.highest_kept().map_or("no point".to_string(), |point| {
        let response = point.response_ms().unwrap_or_default();
        format!("up to {:.0} per second, at {response:.3} ms", point.result.iops())
    });
    let below = curve.highest_kept_below(1.0).map_or("never".to_string(), |point| {
        format!("up to {:.0} per second", point.result.iops())
    });
    let _ = writeln!(
        text,
        "\nsustained: {kept}; below 1 ms: {below}\n(open-loop points that are not saturated, mean response time)"
    );
}

fn us(ns: Option<f64>) -> f64 {
    ns.unwrap_or(0.0) / 1e3
}

/// As JSON.
pub fn json(setup: &Setup, outcome: &Outcome) -> Value {
    let notes = notes(setup, outcome);
    let outcome = match outcome {
        Outcome::Once(result) => json!({ "run": result_json(result) }),
        Outcome::Curve(curve) => {
            let points = curve.points.iter().map(|point| {
                json!({
                    "percent": point.offered.percent,
                    "offered_per_second": point.offered.rate_per_second,
                    "saturated": point.is_saturated(),
                    "run": result_json(&point.result),
                })
            });
            let kept = |point: Option<&MeasuredPoint>| {
                point.map(|point| {
                    json!({ "percent": point.offered.percent, "iops": point.result.iops(),
                        "mean_response_ms": point.response_ms() })
                })
            };
            json!({
                "maximum": result_json(&curve.maximum),
                "points": points.collect::<Vec<_>>(),
                "highest_kept": kept(curve.highest_kept()),
                "highest_kept_below_1_ms": kept(curve.highest_kept_below(1.0)),
            })
        }
    };
    json!({
        "evidence": "simulated",
        "design": setup.design,
        "setup": setup_json(setup),
        "notes": notes,
        "outcome": outcome,
    })
}

fn setup_json(setup: &Setup) -> Value {
    let mut values = json!({
        "workload": setup.workload,
        "volumes": setup.volumes,
        "size_bytes": setup.size.0,
        "threads": setup.threads,
        "queue_depth": setup.queue_depth,
        "rate_per_second": setup.rate,
        "curve": setup.is_curve,
        "seconds_at_most": setup.seconds,
        "requests_at_most": setup.requests,
        "warm_up_seconds": setup.warm_up,
        "seed": setup.seed,
    });
    if let Storage::Cluster(cluster) = &setup.storage {
        let stack = (cluster.stack != Stack::NONE).then(|| {
            json!({ "ns_per_io": cluster.stack.per_io.0, "ps_per_byte": cluster.stack.per_byte_ps,
                "ps_per_read_byte": cluster.stack.per_read_byte_ps })
        });
        values["stack"] = json!(stack);
        values["write_buffer_bytes"] = json!(cluster.write_buffer.map(|size| size.0));
        values["volumes_with_data_on_their_machines_host"] = json!(cluster.volumes_at_home);
        values["write_buffers_at_end"] = json!(cluster.buffers.map(|buffers| {
            json!({ "fullest_percent": buffers.fullest_percent, "written_bytes": buffers.written.0,
                "destaged_bytes": buffers.destaged.0 })
        }));
    }
    values
}

fn result_json(result: &SimulationResult) -> Value {
    let streams = result.streams.iter().map(|stream| {
        json!({
            "client": stream.client,
            "stream": stream.stream,
            "read": latencies_json(&stream.read),
            "write": latencies_json(&stream.write),
        })
    });
    // Counted from the window's beginning: those of the warm-up begin below zero.
    let warm_up = (result.measured_from - result.begin).as_secs_f64();
    let seconds = result.seconds.iter().enumerate().map(|(number, second)| {
        json!({ "begins_seconds": number as f64 - warm_up, "reads": second.count[0], "writes": second.count[1], "read_bytes": second.bytes[0],
            "write_bytes": second.bytes[1], "read_response_sum_ns": second.response_sum_ns[0],
            "write_response_sum_ns": second.response_sum_ns[1] })
    });
    json!({
        "iops": result.iops(),
        "bytes_per_second": result.bytes_per_second(),
        "duration_ns": result.duration().0,
        "rounds_per_second": result.rounds_per_second,
        "steady": result.steadiness().map(|state| state.is_steady()),
        "overloaded": result.is_overloaded(),
        "arrived": result.arrived,
        "backlog_at_begin": result.backlog_at_begin,
        "backlog_at_end": result.backlog_at_end,
        "ended_by_overload": result.swamped,
        "failed": result.failed,
        "streams": streams.collect::<Vec<_>>(),
        "seconds": seconds.collect::<Vec<_>>(),
    })
}

fn latencies_json(latencies: &Latencies) -> Value {
    json!({
        "count": latencies.response.count(),
        "bytes": latencies.bytes,
        "response_ns": distribution(&latencies.response),
        "service_ns": distribution(&latencies.service),
        "queue_ns": distribution(&latencies.queue),
    })
}

fn distribution(histogram: &Histogram) -> Value {
    let mut values = serde_json::Map::new();
    values.insert("mean".to_string(), json!(histogram.mean()));
    values.insert("max".to_string(), json!(histogram.max()));
    for (name, q) in QUANTILES {
        values.insert(name.to_string(), json!(histogram.quantile(q)));
    }
    Value::Object(values)
}
