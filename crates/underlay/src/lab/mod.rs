//! The lab: carries out plans.
//!
//! [`execute`] makes sure that the template is there, then carries out the runs of the schedule in their
//! interleaved order, each from nothing to nothing, and writes everything to one record. It says what it
//! does through [`event::Event`]s and prints nothing.
//!
//! A killed execution is resumed: finished runs are kept, the interrupted one is repeated.

pub mod abort;
mod background;
pub mod block;
mod causal_check;
pub mod client;
mod climb;
mod design_time;
mod dilation;
mod faults;
mod generator;
mod host_view;
mod job;
pub mod ladder;
mod loads;
mod mix;
mod phases;
mod pilot;
mod precision;
pub mod recording;
mod resync;
mod run;
pub mod run_log;
mod samplers;
mod schedule;
mod session_windows;
mod shared_recorder;
pub mod simulated;
mod storage_record;
mod template;
mod verification;
mod window;

pub mod event;
pub mod external;
pub mod interrupt;
pub mod progress;
pub mod rate_search;
pub mod records;
pub mod searched;
pub mod workload;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;
use underlay_core::{Dilation, Evidence, Nanos};
use underlay_database::managed::Install;
use underlay_host::{StateDir, clean, host_facts, unprivileged_user};
use underlay_record::{
    Design, ExecutionStatus, Finding, Manifest, OpenError, Recorder, RunStatus, Severity,
};
use underlay_study::{BlockPlan, DatabasePlan, EnginePlan, Plan, RunPlan, plan_json};

pub use host_view::{installs, require_emulation, with_host_view};
pub use run::wall_clock_ns;

use crate::lab::abort::Abort;
use crate::lab::event::{Event, Observer};
use crate::lab::run::{Bench, DatabaseBench, RunResult};
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::template::TemplateSpec;
use crate::lab::verification::Verified;
use crate::lab::workload::{AnySubject, subject_of};
use crate::stop::{Stop, chain};

/// Where an execution's record is, or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A record to create.
    New(PathBuf),
    /// A record to go on with.
    Resumed(PathBuf),
}

/// An execution that wrote to its record.
#[derive(Debug)]
pub struct Executed {
    /// Where the record is.
    pub record: PathBuf,
    /// How the execution ended.
    pub outcome: Result<(), Stop>,
}

/// Carries out a plan.
///
/// # Errors
/// What kept it from beginning, with the exit code of the cause: it has no record then, and whatever is at its place was
/// written by others.
pub fn execute(plan: &Plan, place: &Place, observer: &mut dyn Observer) -> Result<Executed, Stop> {
    let mut subjects = Vec::new();
    for point in plan.plans() {
        for database in &point.databases {
            subjects.extend(subject_of(&database.workload)?);
        }
    }
    if !subjects.is_empty() {
        return execute_databases(&subjects, plan, place, observer);
    }
    let loads = plan.plans().into_iter().map(|point| point.workload.kind.block());
    let loads: Option<Vec<&BlockPlan>> = loads.collect();
    match loads {
        Some(loads) => execute_block(&loads, plan, place, observer),
        None => Err(Stop::bad_input("the points of an axis have different workloads")),
    }
}

/// Carries out a plan whose databases, those of one point of its axes after those of another, have these subjects.
fn execute_databases(
    subjects: &[Box<dyn AnySubject>],
    plan: &Plan,
    place: &Place,
    observer: &mut dyn Observer,
) -> Result<Executed, Stop> {
    let HostSide { state, server_program } = HostSide::prepare(plan, observer)?;
    let points = plan.plans();
    let databases: Vec<&DatabasePlan> = points.iter().flat_map(|point| &point.databases).collect();
    let installs = databases
        .iter()
        .map(|database| choose_install(&database.engine))
        .collect::<Result<Vec<_>, Stop>>()?;
    let user = unprivileged_user().map_err(|error| Stop::host(chain(&error)))?;
    let runtime =
        Runtime::new().map_err(|error| Stop::host(format!("could not start threads: {error}")))?;

    let about: Vec<(String, Option<&Install>)> = installs
        .iter()
        .zip(subjects)
        .map(|(install, subject)| (subject.identity(install.engine()), Some(install)))
        .collect();
    let (path, mut recorder) = open_record(plan, place, &about)?;
    let done = finished_runs(plan, &recorder)?;
    let dilation = dilation::decide(plan, (&state, &server_program), &mut recorder)?;
    let recorder = SharedRecorder::new(recorder);
    announce(plan, dilation, &path, &done, observer);
    let specs: Vec<TemplateSpec<'_>> = installs
        .iter()
        .zip(subjects)
        .map(|(install, subject)| TemplateSpec {
            state: &state,
            install,
            subject: &**subject,
            user: user.as_ref(),
            runtime: &runtime,
        })
        .collect();
    let outcome = template::ensure_all(&specs, &recorder, observer).and_then(|templates| {
        let bench = |number: usize| DatabaseBench {
            plan: databases[number],
            install: &installs[number],
            template: &templates[number],
            subject: &*subjects[number],
        };
        let mut all = (0..databases.len()).map(bench);
        let benches: Vec<Bench<'_>> = points
            .iter()
            .map(|plan| Bench {
                plan,
                recorder: &recorder,
                state: &state,
                databases: all.by_ref().take(plan.databases.len()).collect(),
                user: user.as_ref(),
                server_program: &server_program,
                runtime: &runtime,
                dilation,
            })
            .collect();
        carry_out_runs((plan, &recorder), (&path, &done), observer, |order, run, observer| {
            run::carry_out(&benches[plan.point_of(run.design)], order, run, observer)
        })
    });
    end(recorder, outcome, path, observer)
}

/// Carries out a block load, which needs neither a server nor a template. `loads` has one for each point of the axes.
fn execute_block(
    loads: &[&BlockPlan],
    plan: &Plan,
    place: &Place,
    observer: &mut dyn Observer,
) -> Result<Executed, Stop> {
    let HostSide { state, server_program } = HostSide::prepare(plan, observer)?;
    let identity = |load: &&BlockPlan| (block::run::identity(load, plan.workload.seed), None);
    let about: Vec<_> = loads.iter().map(identity).collect();
    let (path, mut recorder) = open_record(plan, place, &about)?;
    let done = finished_runs(plan, &recorder)?;
    let dilation = dilation::decide(plan, (&state, &server_program), &mut recorder)?;
    let recorder = SharedRecorder::new(recorder);
    announce(plan, dilation, &path, &done, observer);
    let points = plan.plans();
    let stage = |point: usize| block::run::Stage {
        plan: points[point],
        load: loads[point],
        recorder: &recorder,
        state: &state,
        server_program: &server_program,
        dilation,
    };
    let outcome =
        carry_out_runs((plan, &recorder), (&path, &done), observer, |order, run, observer| {
            block::run::carry_out(stage(plan.point_of(run.design)), order, run, observer)
        });
    end(recorder, outcome, path, observer)
}

/// What every execution needs of its host.
struct HostSide {
    state: StateDir,
    /// The program that serves emulated volumes.
    server_program: PathBuf,
}

impl HostSide {
    fn prepare(plan: &Plan, observer: &mut dyn Observer) -> Result<HostSide, Stop> {
        interrupt::install();
        require_emulation(plan)?;
        let state = StateDir::open().map_err(|error| Stop::host(chain(&error)))?;
        remove_leftovers(&state, observer)?;
        let server_program = std::env::current_exe()
            .map_err(|error| Stop::host(format!("could not find the program itself: {error}")))?;
        Ok(HostSide { state, server_program })
    }
}

/// Closes the record of an execution.
fn end(
    recorder: SharedRecorder,
    outcome: Result<Outcome, Abort>,
    path: PathBuf,
    observer: &mut dyn Observer,
) -> Result<Executed, Stop> {
    let status = match &outcome {
        Ok(_) => ExecutionStatus::Finished,
        Err(Abort::Interrupted) => ExecutionStatus::Cancelled,
        Err(Abort::Failed(_)) => ExecutionStatus::Failed,
    };
    let finished = recorder.finish(status);
    observer.notice(&Event::Ended);
    let closed = finished.map_err(|error| {
        Stop::run_failed(format!("could not close the record: {}", chain(&error)))
    });
    let outcome = closed.and_then(|()| conclude(outcome, &path));
    Ok(Executed { record: path, outcome })
}

/// What the runs together amount to.
enum Outcome {
    Clean,
    Broken(String),
}

/// Carries out the schedule.
fn carry_out_runs(
    study: (&Plan, &SharedRecorder),
    (record, done): (&Path, &[bool]),
    observer: &mut dyn Observer,
    mut carry_out: impl FnMut(usize, RunPlan, &mut dyn Observer) -> Result<RunResult, Abort>,
) -> Result<Outcome, Abort> {
    let mut outcome = Outcome::Clean;
    let plan = study.0;
    for (order, scheduled) in plan.schedule.iter().enumerate() {
        if done[order] {
            continue;
        }
        let is_first = order.is_multiple_of(plan.designs.len());
        if is_first && precision::is_reached(study, record, scheduled.repeat)? {
            precision::report_reached(study, scheduled.repeat, observer)?;
            return Ok(outcome);
        }
        let RunResult { status, reason, verified } = carry_out(order, *scheduled, observer)?;
        if let Some(Verified::Broken(check)) = verified {
            // The data of this run is wrong: its numbers are no evidence, but the other runs are worth
            // having, because they tell whether it was the design.
            outcome = Outcome::Broken(check);
            continue;
        }
        match status {
            RunStatus::Finished | RunStatus::Running => {}
            RunStatus::Interrupted => return Err(Abort::Interrupted),
            RunStatus::Failed => return Err(Abort::Failed(reason.unwrap_or_default())),
        }
    }
    precision::report_missed(study, record, observer)?;
    Ok(outcome)
}

fn conclude(outcome: Result<Outcome, Abort>, path: &Path) -> Result<(), Stop> {
    let record = path.display();
    match outcome {
        Ok(Outcome::Clean) => Ok(()),
        Ok(Outcome::Broken(check)) => {
            Err(Stop::check_violated(format!("consistency is violated: {check}"))
                .with_hint(format!("for details: underlay show {record}")))
        }
        Err(Abort::Interrupted) => Err(Stop::interrupted(format!(
            "stopped; everything created was removed. Run the same command to resume, or see {record}"
        ))),
        Err(Abort::Failed(reason)) => Err(Stop::run_failed(reason).with_hint(format!(
            "the record so far is {record}; run the same command to repeat the failed run and continue"
        ))),
    }
}

fn remove_leftovers(state: &StateDir, observer: &mut dyn Observer) -> Result<(), Stop> {
    let report = clean(state).map_err(|error| Stop::host(chain(&error)))?;
    for removed in &report.removed {
        observer.notice(&Event::CleanedUp(removed));
    }
    if report.failed.is_empty() {
        return Ok(());
    }
    Err(Stop::left_behind(format!(
        "a killed run left something that could not be removed: {}",
        report.failed.join("; ")
    ))
    .with_hint("run `underlay clean`"))
}

fn choose_install(engine: &EnginePlan) -> Result<Install, Stop> {
    let (wanted, kind) = (engine.version, engine.kind);
    installs(kind, engine.server_bin.as_deref())
        .into_iter()
        .find(|install| wanted.is_none_or(|major| install.major() == major))
        .ok_or_else(|| {
            let version = wanted.map_or_else(String::new, |major| format!(" {major}"));
            let title = kind.title();
            Stop::host(format!("no {title}{version} server was found on this host"))
                .with_hint(format!("{}, or name its folder with --server-bin", kind.install()))
        })
}

/// `about` is of each database, or point, the identity of the workload, and the server where there is one.
fn open_record(
    plan: &Plan,
    place: &Place,
    about: &[(String, Option<&Install>)],
) -> Result<(PathBuf, Recorder), Stop> {
    let failed = |error: OpenError| match &error {
        // The path was the user's choice.
        OpenError::Exists { .. }
        | OpenError::NotFound { .. }
        | OpenError::NotARecord { .. }
        | OpenError::NewerFormat { .. }
        | OpenError::Damaged { .. }
        | OpenError::Finished { .. } => Stop::bad_input(chain(&error)),
        OpenError::Busy { .. }
        | OpenError::Directory { .. }
        | OpenError::Sqlite { .. }
        | OpenError::Manifest { .. } => Stop::host(chain(&error)),
    };
    match place {
        Place::Resumed(path) => Ok((path.clone(), Recorder::resume(path).map_err(failed)?)),
        Place::New(path) => {
            let manifest = manifest(plan, about);
            let mut recorder = Recorder::create(path, &manifest).map_err(failed)?;
            describe(plan, &mut recorder).map_err(|error| {
                Stop::host(format!("could not write the record: {}", chain(&error)))
            })?;
            Ok((path.clone(), recorder))
        }
    }
}

fn manifest(plan: &Plan, about: &[(String, Option<&Install>)]) -> Manifest {
    let mut software = json!({
        "underlay": env!("CARGO_PKG_VERSION"),
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
    });
    // The workload of a study whose axes vary it is all of them.
    let mut identities: Vec<&str> = Vec::new();
    for (identity, install) in about {
        if let Some(install) = install {
            software[install.product()] = install.version().into();
        }
        if !identities.contains(&identity.as_str()) {
            identities.push(identity);
        }
    }
    Manifest {
        study_name: plan.name.clone(),
        title: plan.title.clone(),
        question: plan.question.clone(),
        evidence: plan.evidence,
        seed: plan.seed,
        identity: identities.join("+"),
        started_wall_ns: run::wall_clock_ns(),
        plan: plan_json(plan),
        host: serde_json::to_value(host_facts()).unwrap_or(Value::Null),
        software,
    }
}

/// What is known before the first run: the designs, and the doubts of the plan.
fn describe(plan: &Plan, recorder: &mut Recorder) -> Result<(), underlay_record::WriteError> {
    let details = plan_json(plan);
    for (index, design) in plan.designs.iter().enumerate() {
        recorder.add_design(&Design {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            name: design.name.clone(),
            title: design.title.clone(),
            description: design.description.clone(),
            evidence: design.evidence,
            detail: details["designs"][index].clone(),
        })?;
    }
    for doubt in &plan.findings {
        recorder.finding(&Finding {
            run: None,
            severity: match doubt.severity {
                underlay_study::Severity::Note => Severity::Information,
                underlay_study::Severity::Warning => Severity::Warning,
            },
            code: doubt.code.to_string(),
            text: doubt.text.clone(),
            data: json!({ "remedy": doubt.remedy, "line": doubt.line }),
        })?;
    }
    if cfg!(debug_assertions) && plan.evidence != Evidence::Simulated {
        recorder.finding(&Finding {
            run: None,
            severity: Severity::Information,
            code: "debug-build".to_string(),
            text: "the load generator is a debug build: it uses more CPU than a release"
                .to_string(),
            data: Value::Null,
        })?;
    }
    Ok(())
}

/// Which runs of the schedule an earlier, killed execution finished.
fn finished_runs(plan: &Plan, recorder: &Recorder) -> Result<Vec<bool>, Stop> {
    let runs = recorder.runs().map_err(|error| Stop::host(chain(&error)))?;
    Ok(plan
        .schedule
        .iter()
        .map(|scheduled| {
            runs.iter().any(|run| {
                run.is_evidence()
                    && run.design as usize == scheduled.design
                    && run.repeat == scheduled.repeat + 1
            })
        })
        .collect())
}

fn announce(
    plan: &Plan,
    dilation: Dilation,
    record: &Path,
    done: &[bool],
    observer: &mut dyn Observer,
) {
    let runs_done = done.iter().filter(|done| **done).count();
    let left = (done.len() - runs_done) as u64;
    let load = if runs_done == 0 { plan.estimates.load.0 } else { 0 };
    observer.notice(&Event::Began {
        record,
        runs_done,
        runs: done.len(),
        expected: Nanos(load + plan.estimates.run_at(dilation).0 * left),
        dilation,
        is_job: plan.workload.kind.job_sessions().is_some(),
        is_block_load: plan.workload.kind.block().is_some(),
    });
    for doubt in &plan.findings {
        let severity = match doubt.severity {
            underlay_study::Severity::Note => Severity::Information,
            underlay_study::Severity::Warning => Severity::Warning,
        };
        observer.notice(&Event::Found { severity, text: &doubt.text });
    }
}
