//! Runs of databases in virtual time: their steps, and the record of these.

use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use underlay_core::Nanos;
use underlay_database::Engine;
use underlay_database::managed::Install;
use underlay_engine::{JobResult, Scenario};
use underlay_record::conventions::document;
use underlay_record::{NewPhase, PhaseId, PhaseKind, PhaseStatus, RunId};
use underlay_simulation::databases::{
    BackgroundSchedule, DesignTarget, Ladder, Rung, Second, Stage, scale, scenario,
};
use underlay_study::{DesignPlan, EngineKind, Plan, RunPlan};

use super::ahead::{Ahead, Left, Steps, Taker};
use super::background::Background;
use super::bed::Bed;
use super::inputs::{How, seed_of};
use super::jobs::Jobs;
use super::recording::Recording;
use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::run::{Came, RunResult, recorded};
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::workload::subject_of;
use crate::lab::{Outcome, carry_out_runs};
use crate::stop::{Stop, chain};

/// What tells the workloads of the plan's databases from others.
///
/// # Errors
/// Workloads that cannot be prepared.
pub(super) fn about(plan: &Plan) -> Result<Vec<(String, Option<&'static Install>)>, Stop> {
    let mut about = Vec::new();
    for database in plan.plans().iter().flat_map(|point| &point.databases) {
        let engine = match database.engine.kind {
            EngineKind::Postgresql => Engine::Postgresql,
            EngineKind::Mariadb | EngineKind::Mysql => Engine::Mariadb,
        };
        about.extend(subject_of(&database.workload)?.map(|it| (it.identity(engine), None)));
    }
    Ok(about)
}

/// Carries out the schedule.
pub(super) fn carry_out(
    (plan, recorder): (&Plan, &SharedRecorder),
    (path, done): (&Path, &[bool]),
    (how, bed): (&How, &Bed),
    observer: &mut dyn Observer,
) -> Result<Outcome, Abort> {
    let points = plan.plans();
    let work = |run: RunPlan, taker: &Taker<Step>| simulate(plan, (how, bed), run, taker);
    std::thread::scope(|scope| {
        let mut ahead = Ahead::begin(scope, plan, done, &work);
        carry_out_runs((plan, recorder), (path, done), observer, |order, run, observer| {
            let point = points[plan.point_of(run.design)];
            let active = Active { plan: point, recorder, steps: ahead.take(order) };
            active.carry_out((order, plan.schedule.len()), run, observer)
        })
    })
}

/// What a run comes to, in its order.
pub enum Step {
    /// It begins.
    Begun(Box<Scenario>),
    /// A second of it, with so many active users.
    Second(Stage, u32, Box<Second>),
    /// The rung in hand is over.
    RungEnded(Rung),
    /// The run is over: what its jobs came to, by the numbers of their databases.
    Ended(BTreeMap<usize, JobResult>),
}

/// Simulates one of the plan's runs.
fn simulate(
    plan: &Plan,
    (how, bed): (&How, &Bed),
    run: RunPlan,
    taker: &Taker<Step>,
) -> Result<(), Left> {
    let seed = seed_of(plan, run.repeat);
    let position = run.design;
    let plan = plan.plans()[plan.point_of(position)];
    let design = &plan.designs[position];
    let users = plan.procedure.users_at_once();
    let mut scenario = scenario(plan, design, users, &how.assumed)
        .map_err(|problems| Left::Refused(problems.join("; ")))?;
    scale(&mut scenario, bed.factor());
    taker.take(Step::Begun(Box::new(scenario.clone())))?;
    let target = DesignTarget::in_study(plan, position, seed.child("storage", 0))
        .map_err(|error| Left::Refused(chain(&error)))?;
    let (on, background) = ((target, &scenario), BackgroundSchedule::of(plan, position));
    let mut ladder = Ladder::with_background(on, background, &plan.procedure, how.effort, seed)
        .map_err(|error| Left::Refused(chain(&error)))?;
    let mut each = |stage, users, second: &Second| {
        taker.take(Step::Second(stage, users, Box::new(second.clone()))).is_ok()
    };
    if !ladder.warm_up(&mut each) {
        return Err(Left::NotTaken);
    }
    for users in &plan.procedure.users {
        // Without a taker it ends at its first second.
        let rung = ladder.rung(*users, &mut each);
        taker.take(Step::RungEnded(rung))?;
    }
    taker.take(Step::Ended(ladder.jobs().clone()))
}

/// A run of one point of the axes, on its way into the record.
struct Active<'a> {
    plan: &'a Plan,
    recorder: &'a SharedRecorder,
    steps: Steps<Step>,
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
                Step::Begun(_) => unreachable!("a run begins once"),
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
