//! Workload, outcome and what runs beside it, as JSON.

use serde_json::{Value, json};
use underlay_workload::block::{IoJob, IoProfile};
use underlay_workload::dvdstore::Behaviour;

use crate::background_plan::BackgroundPlan;
use crate::plan::{Pacing, Plan, ProcedurePlan, WorkloadKind, WorkloadPlan};
use crate::weights_plan::WeightsPlan;

pub(super) fn workload(workload: &WorkloadPlan) -> Value {
    let pacing = match workload.pacing {
        Pacing::Closed { key_think } => json!({ "closed": { "key_think": key_think } }),
        Pacing::Open { rate_per_second, arrivals } => json!({ "open": {
            "rate_per_second": rate_per_second,
            "arrivals": arrivals.as_str(),
        } }),
        Pacing::Job => json!({ "job": {} }),
    };
    let mut content = match &workload.kind {
        WorkloadKind::Tpcc(tpcc) => json!({
            "warehouses": tpcc.warehouses,
            "mode": tpcc.mode.as_str(),
            "profile": tpcc.profile.as_str(),
            "home_warehouse": tpcc.home_warehouse.as_str(),
            "deviations": tpcc.deviations().collect::<Vec<_>>(),
            "entropy_percent": tpcc.entropy,
        }),
        WorkloadKind::Sysbench(sysbench) => json!({
            "script": sysbench.script.as_str(),
            "tables": sysbench.tables,
            "table_size": sysbench.table_size,
            "distribution": sysbench.distribution.as_str(),
            "range_size": sysbench.range_size,
        }),
        WorkloadKind::Dvdstore(dvdstore) => json!({
            "db_size": dvdstore.size.to_string(),
            "customers": dvdstore.size.customers(),
            "products": dvdstore.size.products(),
            "behaviour": behaviour(&dvdstore.behaviour),
        }),
        WorkloadKind::Batch(batch) => json!({
            "rows": batch.rows,
            "mode": batch.mode.as_str(),
            "loop": batch.place.as_str(),
            "sessions": batch.sessions,
        }),
        WorkloadKind::Warehouse(warehouse) => json!({
            "scale": warehouse.scale.factor(),
            "streams": warehouse.streams,
        }),
        WorkloadKind::Block(block) => json!({
            "profile": io_profile(&block.profile),
            "threads": block.threads,
            "rate_per_second": block.rate_per_second,
            "curve_percent": block.curve,
            "working_set_bytes": block.working_set.0,
            "precondition": block.precondition,
            "verify": block.verify,
        }),
        WorkloadKind::Backup(backup) => json!({
            "warehouses": backup.warehouses,
            "cycles": backup.cycles,
            "pause_ns": backup.pause.0,
            "restore": backup.restore,
            "bytes_per_second": backup.bytes_per_second,
        }),
    };
    content["pacing"] = pacing;
    content["seed"] = workload.seed.0.into();
    content["statement_timeout_ns"] = workload.statement_timeout.0.into();
    let shape = workload.kind.shape();
    content["shape"] = json!({
        "types": shape.types,
        "headline": {
            "types": shape.headline.types.iter().map(|kind| shape.types[*kind]).collect::<Vec<_>>(),
            "counted": shape.headline.counted,
            "unit": shape.headline.unit,
            "period_ns": shape.headline.period.0,
        },
        "notice": shape.notice,
    });
    json!({ shape.name: content })
}

/// What a block load asks, as far as a reader must know it; the study's text has the rest.
fn io_profile(profile: &IoProfile) -> Value {
    let job = |job: &IoJob| {
        json!({
            "name": job.workload.name,
            "threads": job.concurrency.threads,
            "queue_depth": job.concurrency.queue_depth,
            "rate_per_second": job.rate_per_second(),
            "read_share": job.workload.read_share(),
            "mean_request_bytes": job.workload.mean_request_bytes(),
        })
    };
    json!({
        "name": profile.name,
        "title": profile.title,
        "source": profile.source,
        "kind": profile.provenance.as_str(),
        "compress_ratio": profile.content.compress_ratio,
        "duplicate_share": profile.content.duplicate_share,
        "jobs": profile.jobs.iter().map(job).collect::<Vec<_>>(),
    })
}

pub(super) fn behaviour(behaviour: &Behaviour) -> Value {
    json!({
        "pct_newcustomers": behaviour.pct_newcustomers,
        "pct_newmember": behaviour.pct_newmember,
        "n_searches": behaviour.n_searches,
        "search_batch_size": behaviour.search_batch_size,
        "search_depth": behaviour.search_depth,
        "n_reviews": behaviour.n_reviews,
        "pct_newreviews": behaviour.pct_newreviews,
        "pct_newhelpfulness": behaviour.pct_newhelpfulness,
        "n_line_items": behaviour.n_line_items,
        "ds2_mode": behaviour.ds2_mode,
    })
}

/// What is concluded of each run, where its headline is not what its transactions add up to.
pub(super) fn outcome(workload: &WorkloadPlan, procedure: &ProcedurePlan) -> Value {
    let shape = workload.kind.shape();
    if let Some(definition) = workload.kind.job_headline() {
        let counted = match workload.kind {
            // Restores are counted, too, and have a rate of their own.
            WorkloadKind::Backup(_) => "MB backed up",
            _ => shape.headline.counted,
        };
        return json!({
            "kind": "job",
            "definition": definition,
            "counted": counted,
            "unit": shape.headline.unit,
            "period_ns": shape.headline.period.0,
        });
    }
    let search = procedure.search.as_ref();
    search.map_or(Value::Null, |search| {
        json!({
            "kind": "rate-search",
            "types": shape.types,
            "counted": "transactions",
            "unit": "TPS",
            "period_ns": 1_000_000_000u64,
            "condition": format!("within {}", search.objective),
        })
    })
}

pub(super) fn weights(plan: &Plan, change: &WeightsPlan) -> Value {
    let designs: Vec<&str> =
        change.designs.iter().map(|index| plan.designs[*index].name.as_str()).collect();
    json!({
        "set": change.text,
        "at_ns": change.at.0,
        "phase": change.phase.as_str(),
        "users": change.users,
        "lasts_ns": change.lasts.map(|lasts| lasts.0),
        "designs": designs,
        "line": change.line,
    })
}

pub(super) fn background(plan: &Plan, background: &BackgroundPlan) -> Value {
    let designs: Vec<&str> =
        background.designs.iter().map(|index| plan.designs[*index].name.as_str()).collect();
    json!({
        "name": background.name,
        "text": background.work.described(),
        "at_ns": background.at.0,
        "phase": background.phase.as_str(),
        "users": background.users,
        "lasts_ns": background.lasts.map(|lasts| lasts.0),
        "designs": designs,
        "line": background.line,
    })
}
