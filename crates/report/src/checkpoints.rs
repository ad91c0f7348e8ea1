//! Checkpoints of the database, found in its own counters.
//!
//! PostgreSQL counts a checkpoint when it begins and adds the time it took when it ends, so both
//! are known to the second without reading its log. Before version 17 the counters are in
//! `pg_stat_bgwriter`, since then in `pg_stat_checkpointer`.

use serde_json::json;
use underlay_core::Nanos;
use underlay_record::Event;
use underlay_record::conventions::{event, source};

use crate::observed::ObservedRun;

/// Counters of begun checkpoints, and of the time of ended ones, per family of versions.
const COUNTERS: [([&str; 2], &str); 2] = [
    (["bgwriter.checkpoints_timed", "bgwriter.checkpoints_req"], "bgwriter.checkpoint_write_time"),
    (["checkpointer.num_timed", "checkpointer.num_requested"], "checkpointer.write_time"),
];

/// The checkpoints of a run; none if the record has events of them, or no counters.
pub(crate) fn checkpoints(run: &ObservedRun) -> Vec<Event> {
    if run.events.iter().any(|known| known.kind == event::CHECKPOINT_BEGIN) {
        return Vec::new();
    }
    let mut begins: Vec<(f64, &str)> = Vec::new();
    let mut ends: Vec<f64> = Vec::new();
    for (begun, ended) in COUNTERS {
        for (counter, cause) in begun.into_iter().zip(["time", "request"]) {
            begins.extend(increases(run, counter).into_iter().map(|at| (at, cause)));
        }
        ends.extend(increases(run, ended));
    }
    begins.sort_by(|a, b| a.0.total_cmp(&b.0));
    begins
        .into_iter()
        .map(|(at, cause)| {
            let end = ends.iter().copied().find(|end| *end >= at);
            Event {
                run: Some(run.run.id),
                at: nanos(at),
                kind: event::CHECKPOINT_BEGIN.to_string(),
                text: format!("checkpoint ({cause})"),
                data: json!({ "until_ns": end.map(|end| nanos(end).0) }),
            }
        })
        .collect()
}

/// When a counter grew, seconds on the run's clock: the middle between the reading that found it grown and the one before, which
/// is in the second in which the counter itself is drawn.
fn increases(run: &ObservedRun, counter: &str) -> Vec<f64> {
    let Some(series) = run.series(source::POSTGRES, counter) else { return Vec::new() };
    series.steps().filter(|(_, _, by)| *by > 0.0).map(|(from, to, _)| (from + to) / 2.0).collect()
}

fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}
