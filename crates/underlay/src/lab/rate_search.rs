//! The search for the highest rate that meets a latency target, as a phase of a run.
//!
//! What to measure next is said by `driver::rate_search`; here it is measured, told and recorded. Scheduled things go on
//! meanwhile. The rate that was found is the outcome of the run; the measured window after it shows the load at that rate.

use serde_json::{Value, json};
use std::time::Duration;
use underlay_core::Nanos;
use underlay_driver::{
    ConnectTick, DriveTick, Found, Objective, RateSearch, SearchSpec, Step, StepTaken, judge,
};
use underlay_record::conventions::{document, event, finding};
use underlay_record::{Event as RecordEvent, Finding, Interval, Severity};
use underlay_study::SearchPlan;

use crate::lab::abort::{Abort, During};
use crate::lab::event::Event;
use crate::lab::ladder::Ladder;

/// The rate while queues empty.
const RESTING_RATE: f64 = 0.1;
/// The queues of a rate that was far too high may take this long to empty.
const REST_MAX: Nanos = Nanos::from_secs(120);

/// Searches from the rate that is offered. Returns the rate that was found, if there is one.
pub fn carry_out(ladder: &mut Ladder<'_, '_>, plan: &SearchPlan) -> Result<Option<f64>, Abort> {
    let mut search = RateSearch::new(SearchSpec {
        objective: plan.objective,
        first_rate: ladder.first_rate,
        resolution: 1.0 + plan.resolution,
        settle: plan.settle,
        measure: plan.measure,
    });
    let mut spans = Vec::new();
    while let Some(step) = search.next() {
        let (before, ticks, span) = measure(ladder, &step)?;
        spans.push(span);
        let taken = search.observe(step, judge(&plan.objective, &before, &ticks));
        tell(ladder, Severity::Information, &describe(&taken, &plan.objective));
    }
    let steps: Vec<Value> = search.taken().iter().zip(&spans).map(step_json).collect();
    let found = search.found().unwrap_or(Found::AtLeast { holds: 0.0 });
    let rate = match found {
        Found::Rate { holds, .. } | Found::AtLeast { holds } => (holds > 0.0).then_some(holds),
        Found::Nothing { .. } => None,
    };
    let said = json!({
        "slo": plan.objective.to_string(),
        "quantile": plan.objective.quantile,
        "limit_ns": plan.objective.limit.0,
        "found": found_json(&found),
        "steps": steps,
    });
    let mut recorder = ladder.recorder.lock();
    recorder
        .write_document(Some(ladder.run), document::RATE_SEARCH, &said)
        .and_then(|()| {
            let outcome = json!({ "value": rate });
            recorder.write_document(Some(ladder.run), document::OUTCOME, &outcome)
        })
        .during("write the record")?;
    drop(recorder);
    if let Some(text) = shortcoming(&found, &plan.objective) {
        find(ladder, &text)?;
    }
    Ok(rate)
}

/// What became of sessions before one step, its ticks, and when it was measured.
fn measure(
    ladder: &mut Ladder<'_, '_>,
    step: &Step,
) -> Result<(ConnectTick, Vec<DriveTick>, Interval), Abort> {
    let no_steering = |_: &Ladder<'_, '_>| {};
    if step.rest_first {
        ladder.offer(RESTING_RATE)?;
        ladder.pass(REST_MAX, Duration::from_millis(200), no_steering, |tick| {
            tick.arrivals.queued > 0 || tick.users.in_transaction > 0
        })?;
    }
    ladder.offer(step.rate_per_second)?;
    let began = RecordEvent {
        run: Some(ladder.run),
        at: ladder.origin.elapsed().into(),
        kind: event::RATE.to_string(),
        text: format!("{:.1}/s offered", step.rate_per_second),
        data: json!({ "rate_per_second": step.rate_per_second }),
    };
    ladder.recorder.lock().event(&began).during("write the record")?;
    let mut before = ConnectTick::default();
    ladder.pass(step.settle, Duration::from_secs(1), no_steering, |tick| {
        before.merge(&tick.connects);
        true
    })?;
    // At least as many ticks as the judgement needs batches.
    let tick_length = Duration::from(step.measure).min(Duration::from_secs(10)) / 10;
    let begin = Nanos::from(ladder.origin.elapsed());
    let mut ticks = Vec::new();
    ladder.pass(step.measure, tick_length, no_steering, |tick| {
        ticks.push(tick);
        true
    })?;
    Ok((before, ticks, Interval { begin, end: ladder.origin.elapsed().into() }))
}

fn step_json((taken, measured): (&StepTaken, &Interval)) -> Value {
    let judgement = &taken.judgement;
    json!({
        "rate_per_second": taken.step.rate_per_second,
        "delivered_per_second": judgement.delivered_per_second,
        "observed_ns": judgement.observed.map(|observed| observed.0),
        "late_share": judgement.late_share,
        "late_share_low": judgement.late_share_bounds.0,
        "late_share_high": judgement.late_share_bounds.1,
        "verdict": judgement.verdict.as_str(),
        "holds": taken.holds,
        "by_point_estimate": taken.by_point_estimate,
        "purpose": taken.step.purpose.as_str(),
        "begin_ns": measured.begin.0,
        "end_ns": measured.end.0,
    })
}

fn found_json(found: &Found) -> Value {
    match *found {
        Found::Rate { holds, fails } => {
            json!({ "kind": "rate", "holds_per_second": holds, "fails_per_second": fails })
        }
        Found::AtLeast { holds } => json!({ "kind": "at-least", "holds_per_second": holds }),
        Found::Nothing { fails } => json!({ "kind": "nothing", "fails_per_second": fails }),
    }
}

/// Why the answer is none, or not the whole one.
fn shortcoming(found: &Found, objective: &Objective) -> Option<String> {
    match found {
        Found::Rate { .. } => None,
        Found::AtLeast { holds } => Some(format!(
            "the load generator was saturated before {objective} was exceeded: {holds:.1}/s held, more may"
        )),
        Found::Nothing { fails } => {
            Some(format!("no rate that was tried meets {objective}: not even {fails:.2}/s does"))
        }
    }
}

/// A step in one line.
pub fn describe(taken: &StepTaken, objective: &Objective) -> String {
    let judgement = &taken.judgement;
    let observed = judgement.observed.map_or("-".to_string(), |observed| observed.to_string());
    format!(
        "{:>9.1}/s offered {:>9.1}/s done  {} {observed:>8}  late {:.2} % [{:.2}, {:.2}]  {}{}",
        taken.step.rate_per_second,
        judgement.delivered_per_second,
        objective.name(),
        judgement.late_share * 100.0,
        judgement.late_share_bounds.0 * 100.0,
        judgement.late_share_bounds.1 * 100.0,
        judgement.verdict.as_str(),
        match taken.holds {
            Some(true) if taken.by_point_estimate => ", taken as met by its point estimate",
            Some(false) if taken.by_point_estimate => ", taken as exceeded by its point estimate",
            _ if taken.is_repeated => ", while connections were lost: does not count",
            Some(false) if judgement.connections_lost => ", while connections were lost",
            _ => "",
        }
    )
}

fn tell(ladder: &mut Ladder<'_, '_>, severity: Severity, text: &str) {
    ladder.observer.notice(&Event::Found { severity, text });
}

fn find(ladder: &mut Ladder<'_, '_>, text: &str) -> Result<(), Abort> {
    tell(ladder, Severity::Warning, text);
    let found = Finding {
        run: Some(ladder.run),
        severity: Severity::Warning,
        code: finding::RATE_SEARCH.to_string(),
        text: text.to_string(),
        data: Value::Null,
    };
    ladder.recorder.lock().finding(&found).during("write the record")
}
