//! A run of users on a database of the user's: planned, carried out by the lab, and judged.
//!
//! What is printed of it is in [`page`], the same for programs in [`page_json`].

use serde_json::{Map, Value, json};
use underlay_core::Nanos;
use underlay_driver::{Delivery, DriveSummary};
use underlay_study::{WorkloadKind, WorkloadPlan};

use super::options::{Mixes, UserLoad};
use super::{Command, External, page, page_json, recording, verdict_of_run};
use crate::lab::abort::Abort;
use crate::lab::external::{CountedSite, ExternalPlan, Finished, Reading, carry_out, reading};
use crate::lab::interrupt;
use crate::lab::ladder::{Window, denial};
use crate::lab::progress::Progress;
use crate::lab::searched::Searched;
use crate::lab::workload::Access;
use crate::stop::Stop;

/// What a workload adds to the page.
#[derive(Default)]
pub(super) struct Added {
    /// Lines after the headline.
    pub(super) said: Vec<String>,
    /// Lines at the end: checks, identity, size.
    pub(super) ended: Vec<String>,
    /// Members of the JSON object.
    pub(super) members: Map<String, Value>,
}

/// How the database counts what the headline counts, by a sequence of its own.
pub(super) type Counter<'a> = &'a dyn Fn() -> Result<Option<u64>, Stop>;

/// A run of users, as the page needs it.
pub(super) struct Shown<'a> {
    pub(super) users: &'a UserLoad,
    pub(super) window: &'a Window,
    pub(super) search: Option<&'a Searched>,
    readings: Option<(Reading, Reading)>,
    pub(super) mixes: &'a Mixes,
    /// Of users who think: the transactions that had ended when the window began, where those were fewer than users.
    pub(super) early: Option<u64>,
}

/// Runs users of `subject` and prints what came of it.
pub(super) fn run_users<S: External>(
    subject: &S,
    command: &Command<'_>,
    access: Access<'_>,
    kind: WorkloadKind,
    counter: Counter<'_>,
    conclude: impl FnOnce(&Finished<S>) -> Result<Added, Stop>,
) -> Result<(Value, Result<(), Stop>), Stop> {
    let Some(users) = command.users else { return Ok((Value::Null, Ok(()))) };
    let shape = kind.shape();
    let mixes = users.mixes(shape).map_err(|problems| Stop::bad_input(problems.join("\n")))?;
    let plan = ExternalPlan {
        workload: WorkloadPlan {
            kind,
            pacing: users.pacing(),
            seed: command.common.seed(),
            statement_timeout: Nanos::from_secs(60),
        },
        procedure: users.procedure(),
        mix: mixes.first.clone(),
        weights: mixes.later.clone(),
        connections: users.connections,
        threads: users.threads,
        ramp: users.ramp(),
        checks: true,
    };
    let ask = || {
        let read = counter().and_then(|counted| reading(access, counted));
        read.inspect_err(|stop| errln!("{stop}")).ok()
    };
    let mut site = CountedSite { ask: &ask, first: None, last: None };
    let recorder = recording::create(command, access, subject, &plan)?;
    // The duration of a search is unknown.
    let expected = match plan.procedure.search {
        Some(_) => Nanos::ZERO,
        None => Nanos(plan.procedure.ramp_up.0 + plan.procedure.measure.0),
    };
    let mut progress = Progress::of_one_run(command.name, expected, false);
    let finished = carry_out(subject, access, &plan, recorder, &mut site, &mut progress)?;
    let readings = site.first.zip(site.last);
    let none = Window::default();
    let search = finished.measured.search.as_ref();
    let Some(window) = finished.measured.windows.last().or(search.map(|search| &search.last))
    else {
        return Err(match finished.ended {
            Err(Abort::Failed(reason)) => Stop::run_failed(reason),
            _ => Stop::interrupted("stopped by the user before anything was measured"),
        });
    };
    let window = if window.tick.types.is_empty() { &none } else { window };
    let early = (users.thinks() && shape.name != "sysbench" && search.is_none())
        .then_some(window.ended_before)
        .filter(|ended| *ended < u64::from(users.users()));
    let added = match &finished.checked_after {
        Ok(_) => interrupt::shielded(|| conclude(&finished)),
        Err(stop) => Err(stop.clone()),
    };
    let added = added.unwrap_or_else(unjudged);
    let shown = Shown { users, window, search, readings, mixes: &mixes, early };
    if !command.common.json {
        page::print(&shown, &finished.summary, &added);
    }
    let mut json = page_json::run(&shown, &finished.summary, &added);
    json["asked"] = users.asked();
    let verdict = verdict_of_run(&finished, "stopped by the user")
        .and(nothing_done(&shown, &finished.ended))
        .and(delivered(&shown));
    Ok((json, verdict))
}

/// Of a database that could not be asked any more: what the users saw is known all the same.
fn unjudged(stop: Stop) -> Added {
    let mut members = Map::new();
    members.insert("checks".to_string(), json!({ "could_not_be_made": stop.to_string() }));
    let text = format!("checks: could not be made, so the state of the data is unknown: {stop}");
    Added { said: Vec::new(), ended: vec![text], members }
}

/// A run that was cut short, or in which nothing came to its end, is no result.
fn nothing_done(shown: &Shown<'_>, ended: &Result<(), Abort>) -> Result<(), Stop> {
    let tick = &shown.window.tick;
    if let Some(denied) = denial(tick) {
        return Err(Stop::denied(format!("the transactions are not allowed: {denied}")));
    }
    if let Err(Abort::Failed(reason)) = ended {
        return Err(Stop::run_failed(reason.clone()));
    }
    match tick.samples.iter().next() {
        Some(sample) if tick.completed() == 0 => Err(Stop::run_failed(format!(
            "no transaction was completed in the measured load: {}",
            sample.message
        ))),
        _ => Ok(()),
    }
}

/// Whether the load was delivered, or a rate found.
fn delivered(shown: &Shown<'_>) -> Result<(), Stop> {
    let shortcoming = match shown.search {
        Some(search) => search.rate().is_none().then(|| search.conclusion()),
        None => Delivery::of(&shown.window.tick).and_then(|delivery| delivery.shortcoming()),
    };
    shortcoming.map_or(Ok(()), |text| Err(Stop::load_not_delivered(text)))
}

/// The headline with what was rolled back as the workload intends it, where there was any: some peers count so.
pub(super) fn rate_with_rollbacks(measured: &Window) -> Option<f64> {
    let headline = &measured.tick.shape.headline;
    let types = || headline.types.iter().filter_map(|kind| measured.tick.types.get(*kind));
    let rolled_back: u64 = types().map(|kind| kind.rolled_back).sum();
    let committed: u64 = types().map(|kind| kind.committed).sum();
    (rolled_back > 0).then(|| headline.rate(committed + rolled_back, measured.tick.length()))
}

/// What the database itself counted.
pub(super) struct DatabaseRates {
    /// The headline by a sequence of its own.
    pub(super) headline: Option<f64>,
    /// The engine's transactions per minute; none where its counters may have been reset during the run.
    pub(super) tpm: Option<f64>,
    /// What they are.
    pub(super) tpm_is: &'static str,
}

/// None where it could not be asked at both ends.
pub(super) fn database_rates<B>(
    shown: &Shown<'_>,
    summary: &DriveSummary<B>,
) -> Option<DatabaseRates> {
    let (first, last) = shown.readings.as_ref()?;
    let measured = shown.window;
    let length: Nanos = last.at.saturating_duration_since(first.at).into();
    let headline = &measured.tick.shape.headline;
    let counted = last
        .counted
        .zip(first.counted)
        .map(|(last, first)| headline.rate(last.saturating_sub(first), length));
    // Counters live in the server's memory: after a restart they count from 0 and may exceed their old values.
    let transactions = last.engine.since(&first.engine).filter(|_| summary.outages.is_empty());
    let per_minute = |count: u64| count as f64 * 60.0 / length.as_secs_f64().max(f64::MIN_POSITIVE);
    Some(DatabaseRates {
        headline: counted,
        tpm: transactions.map(|(count, _)| per_minute(count)),
        tpm_is: transactions.map_or(last.engine.definition(), |(_, definition)| definition),
    })
}
