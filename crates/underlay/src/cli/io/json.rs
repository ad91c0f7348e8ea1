//! The outcome of a load for programs. Times are nanoseconds.

use super::options::LoadArguments;
use crate::lab::block::{Medium, Outcome, Phase, Second};
use serde_json::{Value, json};
use underlay_blockio::TargetKind;
use underlay_blockio::load::{KindResult, LoadResult, Operation};
use underlay_blockio::verify::Violation;
use underlay_core::Histogram;
use underlay_workload::block::{IoProfile, Pace};

/// The whole outcome.
pub fn outcome(options: &LoadArguments, profile: &IoProfile, outcome: &Outcome) -> Value {
    let targets: Vec<Value> = outcome
        .targets
        .iter()
        .map(|target| {
            json!({
                "path": target.path.display().to_string(),
                "kind": match target.kind { TargetKind::File => "file", TargetKind::BlockDevice => "block-device" },
                "size_bytes": target.size.0,
                "working_set_bytes": target.working_set.0,
                "created": target.created,
                "evidence": target.medium.evidence().as_str(),
                "in_memory": target.medium == Medium::Memory,
            })
        })
        .collect();
    let total = outcome.merged().filter(|_| !options.curve).as_ref().map(result_json);
    json!({
        "profile": profile_json(profile),
        "targets": targets,
        "direct": !options.buffered,
        "seed": options.seed,
        "interrupted": outcome.interrupted,
        "failure": outcome.failure(),
        "result": total,
        "phases": outcome.phases.iter().map(phase).collect::<Vec<_>>(),
        "steady_state": outcome.steady.map(|state| json!({
            "reached": state.is_steady(),
            "mean_iops": state.mean,
            "range_share": state.range_share,
            "excursion_share": state.excursion_share,
        })),
        "verified": outcome.last_look.as_ref().map(|look| json!({
            "units": look.units,
            "unit_bytes": look.unit_bytes,
            "violations": look.violation_count,
            "first_violations": look.violations.iter().map(violation).collect::<Vec<_>>(),
        })),
    })
}

/// What was run.
pub fn profile_json(profile: &IoProfile) -> Value {
    let jobs: Vec<Value> = profile
        .jobs
        .iter()
        .map(|job| {
            json!({
                "name": job.workload.name,
                "threads": job.concurrency.threads,
                "queue_depth": job.concurrency.queue_depth,
                "rate_per_second": job.rate_per_second(),
                "arrivals": match job.pace {
                    Pace::Closed { .. } => Value::Null,
                    Pace::Open { arrivals, .. } => format!("{arrivals:?}").to_lowercase().into(),
                },
                "streams": job.workload.streams.iter().map(|stream| json!({
                    "name": stream.name,
                    "weight": stream.weight,
                    "read_share": stream.read_share,
                    "random_share": stream.random_share,
                    "sizes": stream.sizes.iter().map(|size| json!({
                        "bytes": size.bytes, "weight": size.weight,
                    })).collect::<Vec<_>>(),
                    "region": [stream.region.begin, stream.region.end],
                    "locality": format!("{:?}", stream.locality),
                    "durability": format!("{:?}", stream.durability),
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "name": profile.name,
        "title": profile.title,
        "provenance": profile.provenance.as_str(),
        "compress_ratio": profile.content.compress_ratio,
        "duplicate_share": profile.content.duplicate_share,
        "jobs": jobs,
    })
}

fn phase(phase: &Phase) -> Value {
    json!({
        "label": phase.label,
        "counts": phase.counts,
        "offered_per_second": phase.offered,
        "saturated": phase.is_saturated(),
        "result": result_json(&phase.result),
        "seconds": phase.seconds.iter().map(second).collect::<Vec<_>>(),
    })
}

fn second(second: &Second) -> Value {
    json!({
        "measured": second.measured,
        "begin_ns": second.begin.0,
        "end_ns": second.end.0,
        "reads": second.reads,
        "writes": second.writes,
        "flushes": second.flushes,
        "bytes": second.bytes,
        "errors": second.errors,
        "p50_ns": second.p50,
        "p99_ns": second.p99,
        "max_ns": second.max,
        "backlog": second.backlog,
    })
}

/// The result of a load.
pub fn result_json(result: &LoadResult) -> Value {
    let kinds: Vec<Value> = result
        .kinds
        .iter()
        .map(|(key, kind)| {
            let mut value = kind_json(result, kind);
            value["target"] = key.target.into();
            value["job"] = key.job.as_str().into();
            value["stream"] = key.stream.as_str().into();
            value["operation"] = key.operation.as_str().into();
            value
        })
        .collect();
    json!({
        "duration_ns": result.duration.0,
        "iops": result.iops(),
        "bytes_per_second": result.bytes_per_second(),
        "all": kind_json(result, &result.total(|key| key.operation != Operation::Flush)),
        "kinds": kinds,
        "due": result.due,
        "undelivered": result.undelivered,
        "oldest_undelivered_ns": result.oldest_undelivered.0,
        "dispatch_lag_ns": histogram(&result.dispatch_lag),
        "conflicts": result.conflicts,
        "verified_units": result.verified_units,
        "violations": result.violation_count,
        "errors": result.errors(),
        "failure": result.failure,
        "interrupted": result.interrupted,
        "workers": result.cost.workers,
        "processor_ns": result.cost.processor.0,
        "busiest_worker_permille": result.cost.busiest_permille,
    })
}

fn kind_json(result: &LoadResult, kind: &KindResult) -> Value {
    let errors: serde_json::Map<String, Value> =
        kind.errors.iter().map(|(number, count)| (number.to_string(), (*count).into())).collect();
    json!({
        "completed": kind.completed,
        "per_second": result.per_second(kind.in_window),
        "bytes_per_second": result.per_second(kind.bytes_in_window),
        "errors": errors,
        "response_ns": histogram(&kind.response),
        "service_ns": histogram(&kind.service),
    })
}

fn histogram(histogram: &Histogram) -> Value {
    let mean = (!histogram.is_empty()).then(|| histogram.sum() as f64 / histogram.count() as f64);
    json!({
        "count": histogram.count(),
        "mean": mean,
        "min": histogram.min(),
        "p50": histogram.quantile(0.5),
        "p90": histogram.quantile(0.9),
        "p95": histogram.quantile(0.95),
        "p99": histogram.quantile(0.99),
        "p99.9": histogram.quantile(0.999),
        "p99.99": histogram.quantile(0.9999),
        "max": histogram.max(),
    })
}

/// One block that held something else.
pub fn violation(violation: &Violation) -> Value {
    json!({
        "target": violation.target,
        "offset_bytes": violation.offset_bytes,
        "finding": violation.finding.as_str(),
        "expected_write": violation.expected_write,
    })
}
