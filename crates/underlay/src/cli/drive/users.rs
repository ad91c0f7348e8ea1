//! A run of users on a database of the user's: planned, carried out by the lab, and judged.
//!
//! What is printed of it is in [`page`], the same for programs in [`page_json`].

use serde_json::{Map, Value, json};
use underlay_core::Nanos;
use underlay_driver::Delivery;
use underlay_study::{WorkloadKind, WorkloadPlan};

use super::command::Command;
use super::external::External;
use super::shown::{Added, Shown};
use super::verdict::verdict_of_run;
use super::{page, page_json, recording};
use crate::lab::abort::Abort;
use crate::lab::external::{CountedSite, ExternalPlan, Finished, carry_out, reading};
use crate::lab::interrupt;
use crate::lab::ladder::{Window, denial};
use crate::lab::progress::Progress;
use crate::lab::workload::Access;
use crate::stop::Stop;

/// How the database counts what the headline counts, by a sequence of its own.
pub(super) type Counter<'a> = &'a dyn Fn() -> Result<Option<u64>, Stop>;

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
