//! The search for the highest rate that meets a latency target, as a phase of a run.
//!
//! `driver::rate_search` says what to measure next; here it is measured, reported and recorded. Scheduled things are carried
//! out meanwhile. The rate that was found is the outcome of the run; the measured window after it shows the load at that rate.

use serde_json::json;
use std::time::Duration;
use underlay_core::Nanos;
use underlay_driver::{ConnectTick, DriveTick, Found, RateSearch, SearchSpec, Step, judge};
use underlay_record::conventions::{document, event, finding};
use underlay_record::{Interval, Severity};
use underlay_study::SearchPlan;

use crate::lab::abort::Abort;
use crate::lab::event::Event;
use crate::lab::ladder::Ladder;
use crate::lab::searched::{Searched, describe};
use crate::lab::window::{Window, append};

/// The rate while queues empty, per second.
const RESTING_RATE: f64 = 0.1;
/// The queues of a rate that was far too high may take this long to empty.
const REST_MAX: Nanos = Nanos::from_secs(120);
/// A database without any answer for this long while connections fail is gone.
const AWAY_AFTER: Nanos = Nanos::from_secs(60);

/// Searches from the rate that is offered. Returns the rate that was found, if there is one.
pub fn carry_out(ladder: &mut Ladder<'_>, plan: &SearchPlan) -> Result<Option<f64>, Abort> {
    let objective = plan.objective;
    let mut search = RateSearch::new(SearchSpec {
        objective,
        first_rate: ladder.first_rate,
        resolution: 1.0 + plan.resolution,
        settle: plan.settle,
        measure: plan.measure,
    });
    let mut searched = Searched::new(objective);
    let mut outcome = Ok(());
    while let Some(step) = search.next() {
        match measure(ladder, &step, &mut searched) {
            Ok((before, ticks, span)) => {
                searched.measured.push(span);
                let taken = search.observe(step, judge(&objective, &before, &ticks));
                let text = describe(&taken, &objective);
                let severity = Severity::Information;
                ladder.observer.notice(&Event::Found { severity, text: &text });
            }
            Err(abort) => {
                outcome = Err(abort);
                break;
            }
        }
    }
    searched.steps = search.taken().to_vec();
    searched.found = search.found().filter(|_| outcome.is_ok());
    let (rate, said) = (searched.rate(), searched.json());
    let shortcoming = match searched.found {
        Some(Found::Rate { .. }) => None,
        _ => Some(searched.conclusion()),
    };
    ladder.measured.search = Some(searched);
    outcome?;
    ladder.log.document(document::RATE_SEARCH, &said)?;
    ladder.log.document(document::OUTCOME, &json!({ "value": rate }))?;
    if let Some(text) = shortcoming {
        ladder.log.find(Severity::Warning, finding::RATE_SEARCH, &text, ladder.observer)?;
    }
    Ok(rate)
}

/// What became of sessions before one step, its ticks, and when it was measured.
fn measure(
    ladder: &mut Ladder<'_>,
    step: &Step,
    searched: &mut Searched,
) -> Result<(ConnectTick, Vec<DriveTick>, Interval), Abort> {
    if step.rest_first && !rest(ladder)? {
        searched.is_away = true;
        return Err(Abort::Failed(
            "the search ended without a result: the database no longer answers".to_string(),
        ));
    }
    ladder.offer(step.rate_per_second)?;
    let text = format!("{:.1}/s offered", step.rate_per_second);
    let data = json!({ "rate_per_second": step.rate_per_second });
    ladder.log.event(event::RATE, ladder.log.now(), &text, data)?;
    let mut before = ConnectTick::default();
    ladder.pass(
        step.settle,
        Duration::from_secs(1),
        |_| {},
        |tick| {
            before.merge(&tick.connects);
            true
        },
    )?;
    let cpu_ns_before = ladder.measured.cpu_ns();
    // At least as many ticks as the judgement needs batches.
    let tick_length = Duration::from(step.measure).min(Duration::from_secs(10)) / 10;
    let begin = ladder.log.now();
    let mut ticks = Vec::new();
    let passed = ladder.pass(
        step.measure,
        tick_length,
        |_| {},
        |tick| {
            ticks.push(tick);
            true
        },
    );
    let mut last = Window::default();
    ticks.iter().for_each(|tick| append(&mut last.tick, tick));
    last.cpu_ns = last.tick.cpu_ns.saturating_sub(cpu_ns_before);
    searched.last = last;
    passed?;
    Ok((before, ticks, Interval { begin, end: ladder.log.now() }))
}

/// Waits until the queues are empty. Says whether the database still answers.
fn rest(ladder: &mut Ladder<'_>) -> Result<bool, Abort> {
    ladder.offer(RESTING_RATE)?;
    let log = ladder.log;
    let mut answered = log.now();
    let mut is_away = false;
    ladder.pass(
        REST_MAX,
        Duration::from_millis(200),
        |_| {},
        |tick| {
            // Users who wait for a lock get no errors: only attempts to connect show that no server is there.
            if tick.completed() > 0 || tick.connects.opened > 0 {
                answered = log.now();
            } else if log.now().saturating_sub(answered) >= AWAY_AFTER
                && tick.connects.errors.total() > 0
            {
                is_away = true;
            }
            !is_away && (tick.arrivals.queued > 0 || tick.users.in_transaction > 0)
        },
    )?;
    Ok(!is_away)
}
