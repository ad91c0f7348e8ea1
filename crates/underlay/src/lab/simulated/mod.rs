//! Carrying out a plan in virtual time: the same schedule, phases and kind of record as on a host,
//! of *simulated* evidence.
//!
//! Needs no server, no rights and no real storage, and touches nothing but the record. Repeats are
//! seeds: the designs of one repeat have the same transactions. What cannot be simulated is refused
//! before there is a record.

mod ahead;
mod background;
mod bed;
mod block;
mod counters;
mod databases;
mod inputs;
mod jobs;
pub mod observed;
mod recording;

pub use inputs::{How, seed_of};

use std::collections::BTreeMap;
use std::path::Path;
use underlay_core::{Dilation, Nanos};
use underlay_host::return_large_blocks;
use underlay_record::conventions::finding;
use underlay_record::{ExecutionStatus, Finding, Severity};
use underlay_simulation::block_study::{self, is_block_study};
use underlay_simulation::databases::{Assumptions, as_simulated, problems};
use underlay_study::{DatastoreKind, Plan};

use crate::lab::abort::Abort;
use crate::lab::event::{Event, Observer};
use crate::lab::interrupt;
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::{Executed, Outcome, Place, finished_runs, open_record};
use crate::stop::{Stop, chain};
use bed::Bed;

/// Refuses a plan that cannot be simulated, with every reason.
///
/// # Errors
/// Bad input.
pub fn require(plan: &Plan, assumed: &Assumptions) -> Result<(), Stop> {
    let problems = match is_block_study(plan) {
        true => block_study::problems(plan),
        false => problems(plan, assumed),
    };
    if problems.is_empty() {
        return Ok(());
    }
    let list: String = problems.iter().map(|problem| format!("\n  - {problem}")).collect();
    Err(Stop::bad_input(format!("`{}` cannot be simulated:{list}", plan.name)))
}

/// Carries out a plan in virtual time.
///
/// # Errors
/// What kept it from beginning; it has no record then.
pub fn execute(
    plan: &Plan,
    how: &How,
    place: &Place,
    observer: &mut dyn Observer,
) -> Result<Executed, Stop> {
    require(plan, &how.assumed)
        .map_err(|stop| stop.with_hint("run it without --simulate, or change the study"))?;
    interrupt::install();
    return_large_blocks();
    let plan = &as_simulated(plan);
    let is_block = is_block_study(plan);
    let (about, bed) = match is_block {
        true => (block::about(plan), None),
        false => (databases::about(plan)?, Some(Bed::of(plan, how)?)),
    };
    let (path, mut recorder) = open_record(plan, place, &about)?;
    let done = finished_runs(plan, &recorder)?;
    let described = describe(how, (plan, bed.as_ref()), |found| recorder.finding(&found));
    described
        .map_err(|error| Stop::host(format!("could not write the record: {}", chain(&error))))?;
    let recorder = SharedRecorder::new(recorder);
    observer.notice(&Event::Began {
        record: &path,
        runs_done: 0,
        runs: done.len(),
        expected: Nanos::ZERO,
        dilation: Dilation::NONE,
        is_job: plan.workload.kind.job_sessions().is_some(),
        is_block_load: is_block,
    });
    let (study, record) = ((plan, &recorder), (&*path, &*done));
    let outcome = match &bed {
        None => block::carry_out(study, record, how, observer),
        Some(bed) => databases::carry_out(study, record, (how, bed), observer),
    };
    let status = match &outcome {
        Ok(_) => ExecutionStatus::Finished,
        Err(Abort::Interrupted) => ExecutionStatus::Cancelled,
        Err(Abort::Failed(_)) => ExecutionStatus::Failed,
    };
    let closed = recorder.finish(status);
    observer.notice(&Event::Ended);
    closed.map_err(|error| {
        Stop::run_failed(format!("could not close the record: {}", chain(&error)))
    })?;
    Ok(Executed { outcome: conclude(outcome, &path), record: path })
}

fn conclude(outcome: Result<Outcome, Abort>, path: &Path) -> Result<(), Stop> {
    match outcome {
        Ok(_) => Ok(()),
        Err(Abort::Interrupted) => {
            let path = path.display();
            Err(Stop::interrupted(format!("stopped; the results so far are in {path}")))
        }
        Err(Abort::Failed(reason)) => Err(Stop::run_failed(reason)),
    }
}

/// What the numbers rest on, as a finding of the execution.
fn describe<E>(
    how: &How,
    (plan, bed): (&Plan, Option<&Bed>),
    mut find: impl FnMut(Finding) -> Result<(), E>,
) -> Result<(), E> {
    let stacks = stacks(plan);
    let (text, data) = match bed {
        Some(bed) => bed.described(how, plan, &stacks),
        None => block::described(how, &stacks),
    };
    find(Finding {
        run: None,
        severity: Severity::Information,
        code: finding::SIMULATED.to_string(),
        text,
        data,
    })
}

/// What the storage stacks of hosts cost, as a sentence.
fn stacks(plan: &Plan) -> String {
    let stacks: BTreeMap<&str, f64> = plan
        .plans()
        .iter()
        .flat_map(|point| &point.designs)
        .filter_map(|design| match &design.kind {
            DatastoreKind::Cluster(cluster) => {
                let per_io = cluster.spec.settings.stack.per_io.0 as f64 / 1e3;
                (per_io > 0.0).then_some((design.name.as_str(), per_io))
            }
            DatastoreKind::Path { .. } | DatastoreKind::Emulated { .. } => None,
        })
        .collect();
    let of_all: Vec<String> = stacks
        .iter()
        .map(|(design, per_io)| format!("{per_io:.1} us per I/O in {design}"))
        .collect();
    match of_all.is_empty() {
        true => "Storage stacks of hosts cost no time.".to_string(),
        false => format!("Storage stacks of hosts cost {}.", of_all.join(", ")),
    }
}
