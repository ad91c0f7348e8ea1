//! Carrying out a plan in virtual time: the same schedule, phases and kind of record as on a host,
//! of *simulated* evidence.
//!
//! Needs no server, no rights and no real storage, and touches nothing but the record. Repeats are
//! seeds: the designs of one repeat have the same transactions. What cannot be simulated is refused
//! before there is a record.

mod ahead;
mod background;
mod bed;
mod inputs;
mod jobs;
pub mod observed;
mod recording;

pub use inputs::{How, seed_of};

use serde_json::json;
use std::path::Path;
use underlay_core::{Dilation, Nanos};
use underlay_database::Engine;
use underlay_engine::Scenario;
use underlay_host::return_large_blocks;
use underlay_record::conventions::{document, finding};
use underlay_record::{
    ExecutionStatus, Finding, NewPhase, PhaseId, PhaseKind, PhaseStatus, RunId, Severity,
};
use underlay_simulation::databases::{Assumptions, Effort, Stage, as_simulated, problems};
use underlay_study::{DesignPlan, EngineKind, Plan, RunPlan};

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::interrupt;
use crate::lab::run::{Came, RunResult, recorded};
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::workload::subject_of;
use crate::lab::{Executed, Outcome, Place, carry_out_runs, finished_runs, open_record};
use crate::stop::{Stop, chain};
use ahead::{Ahead, Step, Steps};
use background::Background;
use bed::Bed;
use jobs::Jobs;
use recording::Recording;

/// Refuses a plan that cannot be simulated, with every reason.
///
/// # Errors
/// Bad input.
pub fn require(plan: &Plan, assumed: &Assumptions) -> Result<(), Stop> {
    let problems = problems(plan, assumed);
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
    let mut about = Vec::new();
    for database in plan.plans().iter().flat_map(|point| &point.databases) {
        let engine = match database.engine.kind {
            EngineKind::Postgresql => Engine::Postgresql,
            EngineKind::Mariadb | EngineKind::Mysql => Engine::Mariadb,
        };
        about.extend(subject_of(&database.workload)?.map(|it| (it.identity(engine), None)));
    }
    let bed = Bed::of(plan, how)?;
    let (path, mut recorder) = open_record(plan, place, &about)?;
    let done = finished_runs(plan, &recorder)?;
    let described = describe(how, (plan, &bed), |found| recorder.finding(&found));
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
        is_block_load: false,
    });
    let points = plan.plans();
    let outcome = std::thread::scope(|scope| {
        let mut ahead = Ahead::begin(scope, (plan, how, &bed), &done);
        let (study, record) = ((plan, &recorder), (&*path, &*done));
        carry_out_runs(study, record, observer, |order, run, observer| {
            let point = points[plan.point_of(run.design)];
            let active = Active { plan: point, recorder: &recorder, steps: ahead.take(order) };
            active.carry_out((order, plan.schedule.len()), run, observer)
        })
    });
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

/// What the numbers rest on, as findings of the execution.
fn describe<E>(
    how: &How,
    (plan, bed): (&Plan, &Bed),
    mut find: impl FnMut(Finding) -> Result<(), E>,
) -> Result<(), E> {
    let Effort { precision, window_at_most, .. } = how.effort;
    let windows = match precision {
        Some(share) => format!(
            "A window ends when the 95 % interval of its throughput is within {:.0} % of it, or after {window_at_most}.",
            share * 100.0
        ),
        None => "Windows last as long as the study says.".to_string(),
    };
    let text = format!(
        "Simulated in virtual time by models of engine and storage. Processors without a limit: \
         {} cores. Demands: {}. {windows} {}",
        how.assumed.cores,
        how.demands_source,
        bed.sentences(plan)
    );
    find(Finding {
        run: None,
        severity: Severity::Information,
        code: finding::SIMULATED.to_string(),
        text,
        data: json!({
            "cores": how.assumed.cores,
            "demands": how.demands_source,
            "precision": precision,
            "processor_factor": bed.factor(),
        }),
    })
}

/// A run of one point of the axes, on its way into the record.
struct Active<'a> {
    plan: &'a Plan,
    recorder: &'a SharedRecorder,
    steps: Steps,
}

impl Active<'_> {
    fn carry_out(
        &self,
        position: (usize, usize),
        scheduled: RunPlan,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, Abort> {
        let design = &self.plan.designs[scheduled.design];
        let record = (self.plan, self.recorder);
        recorded(record, position, scheduled, observer, |run, observer| {
            let mut rungs = Vec::new();
            let (result, at) = self.climb(design, run, &mut rungs, observer);
            Ok((Came { result, rungs, verified: None }, at))
        })
    }

    /// The ladder; also when it ended, on the run's clock.
    fn climb(
        &self,
        design: &DesignPlan,
        run: RunId,
        rungs: &mut Vec<(u32, f64)>,
        observer: &mut dyn Observer,
    ) -> (Result<(), Abort>, Nanos) {
        let scenario = match self.steps.next() {
            Ok(Step::Begun(scenario)) => scenario,
            Ok(_) => unreachable!("a run begins before its first second"),
            Err(abort) => return (Err(abort), Nanos::ZERO),
        };
        let mut recording = Recording::new(self.recorder, run, (self.plan, design), &scenario);
        let mut phases = RunPhases { recorder: self.recorder, run, open: None };
        let result = recording
            .begin()
            .and_then(|()| self.seconds((&mut phases, &mut recording), &scenario, rungs, observer));
        let status = match &result {
            Ok(_) => PhaseStatus::Finished,
            Err(Abort::Interrupted) => PhaseStatus::Interrupted,
            Err(Abort::Failed(_)) => PhaseStatus::Failed,
        };
        let ended = phases.end(recording.now(), status);
        (result.and(ended), recording.now())
    }

    /// The seconds of a run, and what its rungs and jobs came to.
    fn seconds(
        &self,
        (phases, recording): (&mut RunPhases<'_>, &mut Recording<'_>),
        scenario: &Scenario,
        rungs: &mut Vec<(u32, f64)>,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        let procedure = &self.plan.procedure;
        let record = (self.recorder, recording.run());
        let mut background = Background::new(record, self.plan, scenario);
        let mut said = Vec::new();
        loop {
            match self.steps.next()? {
                Step::Second(stage, users, second) => {
                    let at = recording.now();
                    phases.enter((stage, users), at, procedure.measure, observer)?;
                    recording.second(&second, users, observer)?;
                    background.second(&second.run, observer)?;
                }
                Step::RungEnded(rung) => {
                    let users = procedure.users[rungs.len()];
                    rungs.push((users, rung.headline));
                    said.push(json!({
                        "users": users,
                        "measured_ns": rung.measured.0,
                        "planned_ns": procedure.measure.0,
                        "ended_early": rung.ended_early,
                        "precision": rung.precision,
                    }));
                }
                Step::Ended(jobs) => {
                    background.end(recording.now(), observer)?;
                    let (recorder, run) = (self.recorder, recording.run());
                    let keeping = Jobs { recorder, run, scenario, end: recording.now() };
                    let value = keeping.keep(&jobs, observer)?;
                    // The headline of a job is its result, not what its seconds add up to.
                    if let (Some(value), Some(last)) = (value, rungs.last_mut()) {
                        last.1 = value;
                    }
                    let said = json!({ "rungs": said });
                    return recorder
                        .lock()
                        .write_document(Some(run), document::SIMULATION, &said)
                        .during("write the record");
                }
                Step::Begun(_) | Step::Refused(_) => unreachable!("a run begins once"),
            }
        }
    }
}

/// The phases of a run.
struct RunPhases<'a> {
    recorder: &'a SharedRecorder,
    run: RunId,
    open: Option<((Stage, u32), PhaseId)>,
}

impl RunPhases<'_> {
    fn enter(
        &mut self,
        (stage, users): (Stage, u32),
        at: Nanos,
        expected: Nanos,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        if self.open.is_some_and(|(open, _)| open == (stage, users)) {
            return Ok(());
        }
        self.end(at, PhaseStatus::Finished)?;
        let kind = match stage {
            Stage::WarmUp => PhaseKind::WarmUp,
            Stage::RampUp => PhaseKind::RampUp,
            Stage::Measure => PhaseKind::Measure,
        };
        let expected = (stage == Stage::Measure).then_some(expected);
        observer.notice(&Event::PhaseBegan { kind, users: Some(users), expected });
        let label = format!("{kind}, {users} users");
        let new = NewPhase { run: Some(self.run), kind, label, users: Some(users), at };
        let phase = self.recorder.lock().begin_phase(&new).during("write the record")?;
        self.open = Some(((stage, users), phase));
        Ok(())
    }

    fn end(&mut self, at: Nanos, status: PhaseStatus) -> Result<(), Abort> {
        let Some((_, phase)) = self.open.take() else { return Ok(()) };
        self.recorder.lock().end_phase(phase, at, status).during("write the record")
    }
}
