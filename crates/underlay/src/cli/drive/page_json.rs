//! What is printed of a run of users, checks and loads for programs.

use serde_json::{Map, Value, json};
use underlay_core::Nanos;
use underlay_database::load_report::LoadReport;
use underlay_driver::{DriveSummary, Saturation, TypeTick};
use underlay_record::CheckOutcome;

use super::page::latencies_json;
use super::shown::{Added, DatabaseRates, Shown, database_rates, rate_with_rollbacks};
use crate::lab::ladder::Window;
use crate::lab::searched::Searched;
use crate::lab::workload::Checked;

/// A check and what it found.
pub(super) fn check(check: &Checked) -> Value {
    let (outcome, rows, detail) = match &check.outcome {
        CheckOutcome::Ok => ("ok", 0, None),
        CheckOutcome::Violated { rows, example } => ("violated", *rows, Some(example)),
        CheckOutcome::Failed { error } => ("failed", 0, Some(error)),
    };
    json!({ "id": check.id, "title": check.title, "outcome": outcome, "rows": rows, "detail": detail })
}

/// The members of every load, after those of `own`, an object that says what was loaded.
pub(super) fn load(report: &LoadReport, mut own: Value) -> Value {
    own["rows"] = report.rows.into();
    own["bytes"] = report.bytes.into();
    own["rows_ns"] = Nanos::from(report.rows_duration).0.into();
    own["keys_ns"] = Nanos::from(report.keys_duration).0.into();
    own["settle_ns"] = Nanos::from(report.settle_duration).0.into();
    own
}

/// The run as JSON.
pub(super) fn run<B>(shown: &Shown<'_>, summary: &DriveSummary<B>, after: &Added) -> Value {
    let measured = shown.window;
    let shape = measured.tick.shape;
    let mut run = after.members.clone();
    let mut put = |name: &str, value: Value| run.insert(name.to_string(), value);
    put("workload", json!(shape.name));
    put("duration_ns", json!(measured.tick.length().0));
    put(&shape.headline.unit.to_lowercase(), json!(measured.tick.headline_rate()));
    if let Some(rate) = rate_with_rollbacks(measured) {
        let name = format!("{}_with_rollbacks", shape.headline.unit.to_lowercase());
        put(&name, json!(rate));
    }
    if let Some(rates) = database_rates(shown, summary) {
        let DatabaseRates { headline, tpm, tpm_is } = rates;
        put("by_the_database", json!({ "headline": headline, "tpm": tpm, "tpm_is": tpm_is }));
    }
    let seconds = measured.seconds.iter().map(|second| {
        json!({
            "end_ns": second.end.0,
            "rate": second.headline_rate,
            "response_p99_ns": second.response_p99.map(|p99| p99.0),
            "errors": second.errors,
        })
    });
    put("seconds", seconds.collect());
    put("transactions", types_json(measured));
    let errors = measured.tick.samples.iter().map(|sample| {
        json!({
            "class": sample.class.as_str(),
            "code": sample.sqlstate,
            "message": sample.message,
            "at_ns": sample.at.saturating_sub(measured.tick.begin).0,
        })
    });
    put("first_errors", errors.collect());
    // With what came before the window and after it.
    let completed = |counts: &TypeTick| counts.committed + counts.rolled_back;
    let whole_run: u64 = summary.totals.types.iter().map(completed).sum();
    put("transactions_of_the_whole_run", json!(whole_run));
    put("outages", outages_json(summary));
    // On the clock of the outages.
    put("measured_from_ns", json!(measured.tick.begin.0));
    put("warm_up_too_short", json!(shown.early.is_some()));
    let saturation = Saturation::of(&measured.tick);
    put(
        "driver",
        json!({
            "cpu_ns": measured.cpu_ns,
            "busiest_thread_share": saturation.awake_share,
            "dispatch_lag_p99_ns": saturation.lag_p99.0,
            "memory_bytes": measured.tick.memory.0,
        }),
    );
    let first = shown.users.weights.iter().map(|text| json!({ "after_ns": null, "weights": text }));
    let later = shown.mixes.later.iter();
    let later = later.map(|change| json!({ "after_ns": change.at.0, "weights": change.text }));
    let weights: Vec<Value> = first.chain(later).collect();
    if !weights.is_empty() {
        put("weights", json!(weights));
    }
    if let Some(search) = shown.search {
        put("search", search_json(search));
    }
    put("note", json!(shape.notice));
    Value::from(run)
}

fn types_json(measured: &Window) -> Value {
    let types: Map<String, Value> = measured
        .tick
        .named()
        .map(|(name, counts)| {
            let errors: Map<String, Value> = counts
                .errors
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(class, count)| (class.as_str().to_string(), json!(count)))
                .collect();
            let value = json!({
                "committed": counts.committed,
                "rolled_back": counts.rolled_back,
                "failed": counts.failed,
                "unknown": counts.unknown,
                "retries": counts.retries,
                "errors": errors,
                "response_ns": latencies_json(&counts.response),
                "service_ns": latencies_json(&counts.service),
            });
            (name.to_string(), value)
        })
        .collect();
    Value::from(types)
}

fn outages_json<B>(summary: &DriveSummary<B>) -> Value {
    summary
        .outages
        .iter()
        .map(|outage| {
            json!({
                "first_error_ns": outage.first_error.0,
                "last_error_ns": outage.last_error.0,
                "recovered_ns": outage.recovered.map(|at| at.0),
                "restored_ns": outage.restored.map(|at| at.0),
                "errors": outage.errors,
                "users_affected": outage.users_affected,
                "commits_unknown": outage.commits_unknown,
            })
        })
        .collect()
}

fn search_json(search: &Searched) -> Value {
    let mut json = search.json();
    for bound in ["holds_per_second", "fails_per_second"] {
        json[bound] = json["found"][bound].clone();
    }
    json
}
