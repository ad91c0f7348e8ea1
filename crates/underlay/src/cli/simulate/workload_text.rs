//! The outcome of a block workload as text and as JSON.

use super::design::Outcome;
use serde_json::{Value, json};
use std::fmt::Write;
use underlay_core::Histogram;
use underlay_simulation::{Curve, Latencies, SimulationResult};

/// Percentiles shown.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// As text.
pub fn render(design: &str, outcome: &Outcome) -> String {
    let mut text = format!("simulated: design {design}, virtual time\n\n");
    match outcome {
        Outcome::Once(result) => once(&mut text, result),
        Outcome::Curve(curve) => points(&mut text, curve),
    }
    text
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
            "\noverload: the design cannot keep this rate; {} arrivals waited when the run was ended after {}",
            result.backlog_at_end,
            result.measured_until - result.begin
        );
    } else if result.backlog_at_end > 0 {
        let _ = writeln!(
            text,
            "\noverload: {} arrivals still waited at the end; response times grow with the length of the run",
            result.backlog_at_end
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
    let (peak, at) = curve.peak();
    let below = curve
        .rate_below(1.0)
        .map_or("never".to_string(), |rate| format!("up to {rate:.0} per second"));
    let _ = writeln!(text, "\npeak {peak:.0} per second at {at:.2} ms; below 1 ms {below}");
}

fn us(ns: Option<f64>) -> f64 {
    ns.unwrap_or(0.0) / 1e3
}

/// As JSON.
pub fn json(design: &str, outcome: &Outcome) -> Value {
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
            json!({ "maximum": result_json(&curve.maximum), "points": points.collect::<Vec<_>>() })
        }
    };
    json!({ "evidence": "simulated", "design": design, "outcome": outcome })
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
    let seconds = result.seconds.iter().map(|second| {
        json!({ "reads": second.count[0], "writes": second.count[1], "read_bytes": second.bytes[0],
            "write_bytes": second.bytes[1], "read_response_sum_ns": second.response_sum_ns[0],
            "write_response_sum_ns": second.response_sum_ns[1] })
    });
    json!({
        "iops": result.iops(),
        "bytes_per_second": result.bytes_per_second(),
        "duration_ns": result.duration().0,
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
