//! One run on a database that Underlay does not manage: loaded by the same users or job, measured by the same ladder and
//! written to the same record as a run of a study.
//!
//! Nothing is provisioned, restored or broken; what is there was loaded before. A run that was stopped, or that lost its
//! server, is still checked and returned, so that what users saw is not lost.

use std::time::{Duration, Instant};

use underlay_core::{Dilation, Nanos};
use underlay_database::transaction_counter::{self, EngineCount};
use underlay_database::{Engine, Target};
use underlay_driver::{DriveSummary, Mix, Pacing, Weights};
use underlay_record::conventions::document;
use underlay_record::{
    CheckMoment, CheckOutcome, ExecutionStatus, NewRun, PhaseKind, Recorder, RunEnd, RunStatus,
    Severity, WriteError,
};
use underlay_study::{ProcedurePlan, WeightsPlan, WorkloadPlan};
use underlay_telemetry::{Collector, CollectorReport, Targets};
use underlay_workload::transactional::Shape;

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::generator::{LoadGenerator, RunningLoad};
use crate::lab::interrupt;
use crate::lab::ladder::{Ladder, Measured, Site};
use crate::lab::mix::MixChanges;
use crate::lab::phases::Phases;
use crate::lab::recording::TelemetryWriter;
use crate::lab::run::{drive_spec, first_rate, keep_outages, keep_summary, wall_clock_ns};
use crate::lab::run_log::RunLog;
use crate::lab::samplers::{DriverGauge, DriverSampler};
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::verification::keep;
use crate::lab::workload::{Access, Checked, Subject, session_failed};
use crate::stop::{Stop, chain};

/// A server that went away under load is waited for so long.
const RETURN_LIMIT: Duration = Duration::from_secs(60);
/// How its sessions are named on the server.
const APPLICATION_NAME: &str = "underlay-drive";

/// What is run.
pub struct ExternalPlan {
    /// What users do.
    pub workload: WorkloadPlan,
    /// How it is measured.
    pub procedure: ProcedurePlan,
    /// Weights from the beginning, instead of the workload's own mix.
    pub mix: Option<Weights>,
    /// Later changes of the mix.
    pub weights: Vec<WeightsPlan>,
    /// At most so many connections, shared by the users.
    pub connections: Option<u32>,
    /// Threads of the load generator.
    pub threads: Option<usize>,
    /// The rate of an open loop rises over this time.
    pub ramp: Nanos,
    /// Whether the database is checked before and after the run.
    pub checks: bool,
}

/// A run, as far as it came.
pub struct Finished<S: Subject + ?Sized> {
    /// What was found before it.
    pub checked_before: Checks,
    /// What was measured.
    pub measured: Measured,
    /// Why it ended early, if it did.
    pub ended: Result<(), Abort>,
    /// What the load generator knows.
    pub summary: DriveSummary<S::Accounting>,
    /// What was known before it.
    pub before: S::Before,
    /// What was found after it.
    pub checked_after: Result<Checks, Stop>,
}

/// Checks that were made.
#[derive(Default)]
pub struct Checks {
    /// What they found.
    pub results: Vec<Checked>,
    /// How long they took.
    pub duration: Duration,
}

impl Checks {
    /// What follows from them; `when` is ` before the run` or so.
    ///
    /// # Errors
    /// A violation, else a check that could not be made: data that could not be checked may
    /// well be right.
    pub fn verdict(&self, when: &str) -> Result<(), Stop> {
        let say = |check: &Checked| format!("consistency{when}: {}", check.describe());
        let is_violated = |check: &&Checked| matches!(check.outcome, CheckOutcome::Violated { .. });
        match (self.results.iter().find(is_violated), self.failed().next()) {
            (Some(violated), _) => Err(Stop::check_violated(say(violated))),
            (None, Some(not_made)) => Err(Stop::run_failed(say(not_made))),
            (None, None) => Ok(()),
        }
    }

    /// Those that do not hold.
    pub fn failed(&self) -> impl Iterator<Item = &Checked> {
        self.results.iter().filter(|check| !check.holds())
    }
}

/// The database's own counts at an instant.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// When they were read.
    pub at: Instant,
    /// How many of what the headline counts there have been, by a sequence of the database's own.
    pub counted: Option<u64>,
    /// Transactions as the engine counts them.
    pub engine: EngineCount,
}

/// The database's own counts around a measured window.
pub struct CountedSite<'a> {
    /// Reads them; `None` where they could not be read, or are not wanted.
    pub ask: &'a dyn Fn() -> Option<Reading>,
    /// At the begin of the last measured window.
    pub first: Option<Reading>,
    /// At its end.
    pub last: Option<Reading>,
}

impl Site for CountedSite<'_> {
    fn phase_began(&mut self, kind: PhaseKind, _: u32) {
        if kind == PhaseKind::Measure {
            self.first = (self.ask)();
        }
    }

    fn phase_ended(&mut self, kind: PhaseKind, _: u32) {
        if kind == PhaseKind::Measure {
            self.last = (self.ask)();
        }
    }
}

/// Carries out one run and ends the record. Samples of server and host are taken where the record `is_kept`.
///
/// # Errors
/// What kept the load from beginning.
pub fn carry_out<S: Subject>(
    subject: &S,
    access: Access<'_>,
    plan: &ExternalPlan,
    (recorder, is_kept): (Recorder, bool),
    site: &mut dyn Site,
    observer: &mut dyn Observer,
) -> Result<Finished<S>, Stop> {
    let recorder = SharedRecorder::new(recorder);
    let origin = Instant::now();
    let new =
        NewRun { design: 0, repeat: 1, order: 0, at: Nanos::ZERO, origin_wall_ns: wall_clock_ns() };
    let run = recorder.lock().begin_run(&new).map_err(unwritten)?;
    let log = RunLog { recorder: &recorder, run, origin, dilation: Dilation::NONE, database: "" };
    let done = course(subject, access, plan, log, is_kept, site, observer);
    observer.notice(&Event::Ended);
    let ended = match &done {
        Ok(finished) => match (&finished.ended, &finished.checked_after) {
            (Err(abort), _) => Err(abort.clone()),
            (Ok(()), Err(stop)) => Err(Abort::Failed(stop.to_string())),
            (Ok(()), Ok(checks)) => {
                checks.verdict("").map_err(|stop| Abort::Failed(stop.to_string()))
            }
        },
        Err(stop) => Err(Abort::Failed(stop.to_string())),
    };
    let (status, execution, reason) = match ended {
        Ok(()) => (RunStatus::Finished, ExecutionStatus::Finished, None),
        Err(Abort::Interrupted) => {
            let reason = "stopped by the user".to_string();
            (RunStatus::Interrupted, ExecutionStatus::Cancelled, Some(reason))
        }
        Err(Abort::Failed(reason)) => (RunStatus::Failed, ExecutionStatus::Failed, Some(reason)),
    };
    let end = RunEnd { at: log.now(), status, reason };
    recorder.lock().end_run(run, &end).map_err(unwritten)?;
    recorder.finish(execution).map_err(unwritten)?;
    done
}

fn unwritten(error: WriteError) -> Stop {
    Stop::host(format!("could not write the record: {}", chain(&error)))
}

fn course<S: Subject>(
    subject: &S,
    access: Access<'_>,
    plan: &ExternalPlan,
    log: RunLog<'_>,
    is_kept: bool,
    site: &mut dyn Site,
    observer: &mut dyn Observer,
) -> Result<Finished<S>, Stop> {
    let mut checked_before = Checks::default();
    if plan.checks {
        let moment = CheckMoment::Before;
        checked_before = checked(subject, access, None, (log, moment), observer)?;
        // What is wrong already cannot be distinguished from what the run breaks.
        checked_before.verdict(" before the run")?;
    }
    let users = plan.procedure.most_users();
    let before = subject.before(access, users)?;
    let target = access.target.with_application_name(APPLICATION_NAME);
    let mut spec = drive_spec(&plan.workload, &plan.procedure, plan.workload.seed);
    spec.connections = plan.connections;
    spec.threads = plan.threads;
    spec.server_is_here = target.is_on_this_host();
    if let Pacing::Open { ramp, .. } = &mut spec.pacing {
        *ramp = plan.ramp;
    }
    let driver = subject.start(spec, target.clone(), log.origin, &before)?;
    if let Some(weights) = &plan.mix {
        driver
            .set_mix(Mix::Weighted(weights.clone()))
            .map_err(|error| Stop::bad_input(chain(&error)))?;
    }
    let gauge = DriverGauge::default();
    let samples =
        is_kept.then(|| Samples::start(log, target, (&gauge, driver.shape()))).transpose()?;
    let mut measured = Measured::default();
    let mut ladder = Ladder {
        log,
        driver: &driver,
        first_rate: first_rate(&plan.workload),
        gauge: &gauge,
        causal: None,
        mix: MixChanges::new(&plan.weights, 0, log),
        site,
        observer: &mut *observer,
        measured: &mut measured,
    };
    let ended = match plan.workload.kind.job_sessions() {
        None => ladder.climb(&plan.procedure),
        Some(sessions) => ladder.wait_for_job(sessions, &plan.procedure),
    };
    let summary = driver.stop()?;
    let collected = samples.map(Samples::stop).transpose()?;
    let is_search = plan.procedure.search.is_some();
    keep_outages(log, &summary.outages)?;
    keep_summary(log, &summary, collected.as_ref(), is_search, observer)?;
    if let Ok(Some(outcome)) = subject.outcome(&summary.accounting) {
        log.document(document::OUTCOME, &outcome)?;
    }
    // Without what is read and checked now, the run would be lost.
    let checked_after = interrupt::shielded(|| {
        wait_for_server(access, observer);
        if !plan.checks {
            return Ok(Checks::default());
        }
        let known = Some((&before, &summary.accounting));
        checked(subject, access, known, (log, CheckMoment::After), observer)
    });
    Ok(Finished { checked_before, measured, ended, summary, before, checked_after })
}

fn checked<S: Subject>(
    subject: &S,
    access: Access<'_>,
    run: Option<(&S::Before, &S::Accounting)>,
    (log, moment): (RunLog<'_>, CheckMoment),
    observer: &mut dyn Observer,
) -> Result<Checks, Stop> {
    let mut phases = Phases::new(log);
    let phase = phases.begin(PhaseKind::Check, None, None, observer)?;
    let began = Instant::now();
    // Other runs may have changed what was loaded.
    let results = subject.check(access, CheckMoment::After, run).and_then(|results| {
        keep(&results, (log, moment), observer)?;
        Ok(results)
    });
    let ended = match &results {
        Ok(_) => Ok(()),
        Err(stop) => Err(Abort::Failed(stop.to_string())),
    };
    phases.end(phase, &ended)?;
    Ok(Checks { results: results?, duration: began.elapsed() })
}

/// A server that went away under load may come back, and can then be judged.
fn wait_for_server(access: Access<'_>, observer: &mut dyn Observer) {
    let target = match access.target.engine {
        Engine::Postgresql => access.target.clone(),
        // The database may not be there.
        Engine::Mariadb => access.target.with_database(""),
    };
    let deadline = Instant::now() + RETURN_LIMIT;
    let mut is_reported = false;
    while let Err(error) = access.runtime.block_on(transaction_counter::count(&target)) {
        if error.is_denial() || Instant::now() >= deadline {
            return;
        }
        if !std::mem::replace(&mut is_reported, true) {
            let text = "the database does not answer; waiting for it, to check its data";
            observer.notice(&Event::Found { severity: Severity::Warning, text });
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// The database's own counts now.
pub fn reading(access: Access<'_>, counted: Option<u64>) -> Result<Reading, Stop> {
    let engine =
        access.runtime.block_on(transaction_counter::count(access.target)).map_err(|error| {
            session_failed(&error, format!("could not read the transactions: {error}"))
        })?;
    Ok(Reading { at: Instant::now(), counted, engine })
}

/// Samples of the database server's statistics, of the load generator and of this host.
struct Samples {
    collector: Collector,
    writer: TelemetryWriter,
}

impl Samples {
    fn start(
        log: RunLog<'_>,
        target: Target,
        (gauge, shape): (&DriverGauge, &Shape),
    ) -> Result<Samples, Abort> {
        let writer = TelemetryWriter::start(log, 1).during("start the thread of the record")?;
        let targets = Targets {
            databases: Vec::new(),
            origin: log.origin,
            database: Some(target),
            processes: vec![("driver".to_string(), std::process::id())],
            cgroup: None,
            volumes: Vec::new(),
            extra: vec![Box::new(DriverSampler::new(gauge.clone(), shape))],
        };
        let collector = Collector::start(targets, Duration::from_secs(1), writer.sink());
        Ok(Samples { collector, writer })
    }

    fn stop(self) -> Result<CollectorReport, Abort> {
        let report = self.collector.stop();
        self.writer.finish().during("write the record")?;
        Ok(report)
    }
}
