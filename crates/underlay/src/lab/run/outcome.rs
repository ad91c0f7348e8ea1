//! What a run leaves in the record at its end: what driver, collector and emulation say of themselves.

use serde_json::json;
use std::sync::PoisonError;
use underlay_core::Nanos;
use underlay_database::session::Commits;
use underlay_datastore::TimingReport;
use underlay_driver::{Delivery, DriveSummary, Outage, Saturation};
use underlay_record::conventions::{
    LATENESS, MODELLED, commits_by, document, event, histogram_scope,
};
use underlay_record::{Interval, Severity};
use underlay_telemetry::CollectorReport;

use crate::lab::abort::{Abort, During};
use crate::lab::event::Observer;
use crate::lab::ladder::write_tick;
use crate::lab::run_log::RunLog;
use crate::lab::samplers::SharedDatastore;

/// How transactions of a type are committed, as the record has it.
fn recorded(commits: Commits) -> serde_json::Value {
    match commits {
        Commits::Explicitly => json!({ "by": commits_by::EXPLICIT, "count": 1 }),
        Commits::Automatically(statements) => {
            json!({ "by": commits_by::AUTOCOMMIT, "count": statements })
        }
    }
}

/// Keeps what the load generator and the collector say of themselves at the end of a run. Of a search not whether the load was
/// delivered: it offers more than can be, and judges each step.
pub fn keep_summary<B>(
    log: RunLog<'_>,
    summary: &DriveSummary<B>,
    collected: Option<&CollectorReport>,
    is_search: bool,
    observer: &mut dyn Observer,
) -> Result<(), Abort> {
    write_tick(log, &summary.last_tick)?;
    let saturation = Saturation::of(&summary.totals);
    log.document(
        document::DRIVER,
        &json!({
            "commits": summary
                .commits
                .iter()
                .map(|(name, commits)| ((*name).to_string(), recorded(*commits)))
                .collect::<serde_json::Map<_, _>>(),
            "commits_unknown": summary.commits_unknown,
            "outages": summary.outages.len(),
            "cpu_ns": summary.totals.cpu_ns,
            "busiest_thread_share": saturation.awake_share,
            "dispatch_lag_p99_ns": saturation.lag_p99.0,
            "errors": summary
                .totals
                .samples
                .iter()
                .map(|sample| json!({
                    "at_ns": sample.at.0,
                    "class": sample.class.as_str(),
                    "sqlstate": sample.sqlstate,
                    "message": sample.message,
                }))
                .collect::<Vec<_>>(),
            "delivery": summary.delivery.as_ref().map(|delivery| json!({
                "requested": delivery.requested,
                "completed": delivery.completed,
                "overflowed": delivery.overflowed,
                "shortfall": delivery.shortfall,
            })),
        }),
    )?;
    // A search offers more than can be delivered; what each of its steps delivered is judged there.
    let shortcoming = summary.delivery.as_ref().and_then(Delivery::shortcoming);
    if let Some(text) = shortcoming.filter(|_| !is_search) {
        log.find(Severity::Invalid, "load-not-delivered", &text, observer)?;
    }
    if let Some(collected) = collected {
        let content = json!({ "missed_ticks": collected.missed(), "cpu_ns": collected.cpu().0 });
        log.document(document::COLLECTOR, &content)?;
    }
    Ok(())
}

/// Writes when the load generator lost its database.
pub fn keep_outages(log: RunLog<'_>, outages: &[Outage]) -> Result<(), Abort> {
    for outage in outages {
        let text = format!("{} errors seen by {} users", outage.errors, outage.users_affected);
        let data = json!({
            "until_ns": outage.restored.map(|at| at.0),
            "recovered_ns": outage.recovered.map(|at| at.0),
            "last_error_ns": outage.last_error.0,
            "commits_unknown": outage.commits_unknown,
        });
        log.event(event::OUTAGE, outage.first_error, &text, data)?;
    }
    Ok(())
}

/// Keeps the emulation's own judgement of its timing.
pub fn keep_timing(log: RunLog<'_>, datastore: &SharedDatastore) -> Result<(), Abort> {
    let report = datastore.lock().unwrap_or_else(PoisonError::into_inner).timing();
    // A datastore that has just died cannot be asked; why the run ended is said elsewhere.
    let Ok(Some(report)) = report else { return Ok(()) };
    let TimingReport {
        lateness,
        modelled,
        valid,
        reason,
        host_limited_share,
        floor,
        compensation,
        ..
    } = report;
    let interval = Interval { begin: Nanos::ZERO, end: log.now() };
    {
        let mut recorder = log.recorder.lock();
        for (name, histogram) in [(LATENESS, &lateness), (MODELLED, &modelled)] {
            recorder
                .histogram(log.run, interval, histogram_scope::TIMING, name, histogram)
                .during("write the record")?;
        }
    }
    log.document(
        document::TIMING,
        &json!({
            "valid": valid,
            "reason": reason,
            "host_limited_share": host_limited_share,
            "floor_ns": floor.0,
            "compensation_ns": compensation.0,
        }),
    )
}
