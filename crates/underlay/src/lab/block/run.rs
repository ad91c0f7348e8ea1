//! One run of a study whose workload is a block load: one design in one repeat, from nothing to nothing.
//!
//! Provision, fill, precondition, settle, warm up, measure rung after rung, stop, compare all blocks. The order is that of a
//! database's run; there is no server, so nothing is restored, started or asked.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use underlay_blockio::Target;
use underlay_blockio::load::{KindKey, LoadResult, OnError, SecondTick};
use underlay_core::{Dilation, Nanos, RootSeed};
use underlay_datastore::{MountedVolume, Timing};
use underlay_host::{StateDir, Teardown};
use underlay_record::conventions::document;
use underlay_record::{CheckMoment, PhaseKind};
use underlay_study::{
    BlockPlan, DatastoreKind, DesignPlan, Plan, RunPlan, TWIN_MEASURE, TWIN_RAMP_UP,
};
use underlay_telemetry::{Collector, CollectorReport, Targets};
use underlay_workload::block::{Content, SHAPE};
use underlay_workload::identity::identity_of;

use super::io_error::stop;
use super::recording::{CHECK, CHECK_TITLE, LoadRecording, Shown, verified};
use super::{
    Course, Medium, Outcome, Phase, Place, Second, Session, Settings, Watch, run_identity,
    verifiers,
};
use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::interrupt;
use crate::lab::ladder::Rung;
use crate::lab::phases::Phases;
use crate::lab::recording::TelemetryWriter;
use crate::lab::run::{
    Came, Frame, Ground, RunResult, begin_timing, close, in_frame, keep_timing, kernel_threads,
    open_datastore, set_timing, volume_targets,
};
use crate::lab::run_log::RunLog;
use crate::lab::samplers::{DatastoreSampler, SharedDatastore};
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::storage_record;
use crate::lab::verification::{Verified, keep};
use crate::lab::workload::Checked;
use crate::stop::Stop;

/// The file on each volume that requests go to.
const FILE: &str = "block-load";

/// What all runs of an execution share.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// What is carried out.
    pub plan: &'a Plan,
    /// Its load.
    pub load: &'a BlockPlan,
    /// Where the record is written.
    pub recorder: &'a SharedRecorder,
    /// Underlay's own folder.
    pub state: &'a StateDir,
    /// The program that serves emulated volumes.
    pub server_program: &'a Path,
    /// How many times as long everything takes.
    pub dilation: Dilation,
}

/// What tells a block load from any other.
pub fn identity(load: &BlockPlan, seed: RootSeed) -> String {
    identity_of(&["underlay block 1", &format!("{load:?}"), &seed.0.to_string()])
}

/// Carries out one run and removes everything it made.
pub fn carry_out(
    stage: Stage<'_>,
    order: usize,
    scheduled: RunPlan,
    observer: &mut dyn Observer,
) -> Result<RunResult, Abort> {
    let Stage { plan, recorder, state, dilation, .. } = stage;
    let frame = Frame { plan, recorder, state, dilation };
    let design = &plan.designs[scheduled.design];
    in_frame(frame, (order, scheduled), observer, |log, teardown, observer| {
        let (rungs, verified) = (Vec::new(), None);
        let mut active = ActiveRun { stage, design, scheduled, log, teardown, rungs, verified };
        let result = active.carry_out(observer);
        Came { result, rungs: active.rungs, verified: active.verified }
    })
}

/// A run in progress.
struct ActiveRun<'a> {
    stage: Stage<'a>,
    design: &'a DesignPlan,
    scheduled: RunPlan,
    log: RunLog<'a>,
    teardown: &'a Teardown,
    rungs: Vec<Rung>,
    verified: Option<Verified>,
}

impl ActiveRun<'_> {
    fn carry_out(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        let mut phases = Phases::new(self.log);
        let scratch = self.scratch()?;
        let (datastore, volumes) =
            phases.carry_out(PhaseKind::Prepare, observer, |_| self.open_datastore(&scratch))?;
        let driven = self.drive(&datastore, &volumes, &mut phases, observer);
        // Why the load ended says more than what went wrong while cleaning up after it.
        let closed = phases.carry_out(PhaseKind::Stop, observer, |_| close(datastore));
        driven.and(closed)
    }

    fn scratch(&self) -> Result<PathBuf, Abort> {
        let name = format!("{}-{}", std::process::id(), self.log.run.0);
        let path = self.stage.state.scratch_dir(&name);
        self.teardown.create_directory(&path).during("create a folder for the run")?;
        Ok(path)
    }

    fn open_datastore(
        &self,
        scratch: &Path,
    ) -> Result<(SharedDatastore, Vec<MountedVolume>), Abort> {
        open_datastore(&Ground {
            design: self.design,
            // Every repeat meets other random service times, both designs of a pair the same stream.
            seed: self.stage.plan.seed.child("datastore", u64::from(self.scheduled.repeat)),
            log: self.log,
            teardown: self.teardown,
            scratch,
            server_program: self.stage.server_program,
            owner: None,
        })
    }

    /// Everything between an open datastore and its end.
    fn drive(
        &mut self,
        datastore: &SharedDatastore,
        volumes: &[MountedVolume],
        phases: &mut Phases<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        let Stage { plan, load, .. } = self.stage;
        let top = load.at(self.top(), volumes.len());
        let seed = plan.workload.seed.child("repeat", u64::from(self.scheduled.repeat));
        let content = Content::new(top.content, seed)
            .map_err(|problem| Abort::Failed(problem.to_string()))?;
        set_timing(self.design, datastore, Timing::Off)?;
        let places = self.places(volumes)?;
        let marks = match load.verify {
            true => verifiers(run_identity(), &top, &places, content, None),
            false => Vec::new(),
        };
        let mut session = Session::new(self.settings(content, seed, volumes), &places, marks);
        let loads = LoadRecording::new(
            self.log,
            SHAPE.types.iter().map(|name| (*name).to_string()).collect(),
            |key: &KindKey| key.operation.as_str().to_string(),
        );
        let mut watcher = Watcher {
            log: self.log,
            loads,
            datastore,
            observer,
            measured: PhaseKind::Measure,
            in_flight: 0,
        };
        self.write(&mut session, &mut watcher, (datastore, &mut *phases))?;
        self.settle(phases, watcher.observer)?;
        let writer =
            TelemetryWriter::start(self.log, 1).during("start the thread of the record")?;
        let targets = self.targets(datastore, volumes);
        let collector = Collector::start(targets, Duration::from_secs(1), writer.sink());
        let climbed = session.run(&self.course(volumes.len()), &mut watcher).map_err(Abort::from);
        let climbed = climbed.and_then(|()| {
            self.rungs = self.measured(session.outcome());
            ended(session.outcome())?;
            self.null_twin(&mut session, &mut watcher, (datastore, volumes.len()))
        });
        let collected = collector.stop();
        let written = writer.finish().during("write the record");
        let shown = Shown {
            is_curve: !load.curve.is_empty(),
            planned: Some(load.loads()),
            rounds_max: None,
            spin: Nanos::ZERO,
            result: &delivery,
        };
        let kept = watcher.loads.document(session.outcome(), &shown);
        self.log.document(document::BLOCK_LOAD, &kept)?;
        self.keep_collected(&collected)?;
        keep_timing(self.log, datastore)?;
        climbed?;
        written?;
        if load.verify {
            let observer = watcher.observer;
            phases.carry_out(PhaseKind::Check, observer, |observer| {
                self.compare(&mut session, datastore, observer)
            })?;
        }
        Ok(())
    }

    /// A file on each volume.
    fn places(&self, volumes: &[MountedVolume]) -> Result<Vec<Place>, Abort> {
        let medium = match self.design.kind {
            DatastoreKind::Path { .. } => Medium::Storage,
            DatastoreKind::Emulated { .. } | DatastoreKind::Cluster(_) => Medium::Emulated,
        };
        let working_set = self.stage.load.working_set;
        let place = |volume: &MountedVolume| {
            let target = Target::create(&volume.path.join(FILE), working_set)
                .map_err(|error| Abort::from(stop(&error)))?;
            Ok(Place { target, working_set, created: true, medium })
        };
        volumes.iter().map(place).collect()
    }

    fn settings(&self, content: Content, seed: RootSeed, volumes: &[MountedVolume]) -> Settings {
        let procedure = &self.stage.plan.procedure;
        Settings {
            seed,
            content,
            dilation: self.stage.dilation,
            warm_up: procedure.warm_up.into(),
            ramp_up: procedure.ramp_up.into(),
            measure: procedure.measure.into(),
            // Many volumes have a thread each; one has the processors.
            workers: u32::from(volumes.len() > 1),
            on_error: OnError::Stop,
            spin: Nanos::ZERO,
        }
    }

    /// Fills the files without delays, then writes them as often as the study says at the design's speed.
    fn write(
        &self,
        session: &mut Session<'_>,
        watcher: &mut Watcher<'_, '_>,
        (datastore, phases): (&SharedDatastore, &mut Phases<'_>),
    ) -> Result<(), Abort> {
        set_timing(self.design, datastore, Timing::Off)?;
        self.pass_over(1, session, watcher, phases)?;
        begin_timing(self.design, datastore)?;
        match self.stage.load.precondition {
            0 => Ok(()),
            passes => self.pass_over(passes, session, watcher, phases),
        }
    }

    fn pass_over(
        &self,
        passes: u32,
        session: &mut Session<'_>,
        watcher: &mut Watcher<'_, '_>,
        phases: &mut Phases<'_>,
    ) -> Result<(), Abort> {
        let phase = phases.begin(PhaseKind::Prepare, None, None, watcher.observer)?;
        let written = session.write(|_| passes, watcher).map_err(Abort::from);
        let written = written.and_then(|()| ended(session.outcome()));
        phases.end(phase, &written)?;
        written.map(drop)
    }

    fn settle(&self, phases: &mut Phases<'_>, observer: &mut dyn Observer) -> Result<(), Abort> {
        phases.carry_out(PhaseKind::Settle, observer, |_| {
            let settle = self.stage.plan.procedure.settle.into();
            let settle = self.stage.dilation.wall_duration(settle);
            match interrupt::sleep_until(Instant::now() + settle) {
                true => Ok(()),
                false => Err(Abort::Interrupted),
            }
        })
    }

    /// Threads per volume of the highest rung.
    fn top(&self) -> u32 {
        self.stage.load.threads.last().copied().unwrap_or(1)
    }

    fn course(&self, volumes: usize) -> Course {
        let load = self.stage.load;
        if !load.curve.is_empty() {
            let profile = load.at(self.top(), volumes);
            return Course::Curve(profile, load.curve.clone(), load.arrivals);
        }
        let rung = |threads: &u32| {
            let plural = if *threads == 1 { "" } else { "s" };
            (format!("{threads} thread{plural}"), load.at(*threads, volumes))
        };
        Course::Loads(load.threads.iter().map(rung).collect())
    }

    /// Requests in flight per volume, and requests per second, of what was measured to its end.
    fn measured(&self, outcome: &Outcome) -> Vec<Rung> {
        let is_whole = |phase: &&Phase| phase.is_saturated().is_some();
        let most = if self.stage.load.curve.is_empty() { usize::MAX } else { 1 };
        let whole = outcome.phases.iter().take(most).filter(is_whole);
        let volumes = outcome.targets.len().max(1) as u32;
        whole.map(|phase| (phase.in_flight / volumes, phase.result.iops())).collect()
    }

    /// The load of the highest and of the best rung without the delays of the storage, in the first repeat.
    fn null_twin(
        &self,
        session: &mut Session<'_>,
        watcher: &mut Watcher<'_, '_>,
        (datastore, volumes): (&SharedDatastore, usize),
    ) -> Result<(), Abort> {
        let Stage { plan, load, .. } = self.stage;
        if self.scheduled.repeat > 0 || !plan.has_null_twin(self.scheduled.design) {
            return Ok(());
        }
        let best = self.rungs.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|rung| rung.0);
        let is_best = |threads: &u32| Some(load.in_flight(*threads)) == best;
        let mut rungs = vec![self.top()];
        rungs.extend(load.threads.iter().copied().find(is_best).filter(|it| *it != self.top()));
        set_timing(self.design, datastore, Timing::Off)?;
        watcher.measured = PhaseKind::NullTwin;
        for threads in rungs {
            let profile = load.at(threads, volumes);
            // What this host can do takes no longer to see under a dilation.
            let seen = |time| self.stage.dilation.design(time).into();
            let times = (seen(TWIN_RAMP_UP), seen(TWIN_MEASURE));
            session
                .run_aside("null twin", &profile, times, watcher)
                .map_err(Abort::from)
                .and_then(|()| ended(session.outcome()))?;
        }
        set_timing(self.design, datastore, Timing::Modelled)
    }

    fn targets(&self, datastore: &SharedDatastore, volumes: &[MountedVolume]) -> Targets {
        let mut processes = vec![("driver".to_string(), std::process::id())];
        processes.extend(datastore.lock().unwrap_or_else(PoisonError::into_inner).processes());
        processes.extend(kernel_threads());
        Targets {
            databases: Vec::new(),
            origin: self.log.origin,
            database: None,
            processes,
            cgroup: None,
            volumes: volume_targets(volumes),
            extra: vec![Box::new(DatastoreSampler::new(Arc::clone(datastore)))],
        }
    }

    fn keep_collected(&self, collected: &CollectorReport) -> Result<(), Abort> {
        let content = json!({ "missed_ticks": collected.missed(), "cpu_ns": collected.cpu().0 });
        self.log.document(document::COLLECTOR, &content)
    }

    /// Compares every block with what was last written to it.
    fn compare(
        &mut self,
        session: &mut Session<'_>,
        datastore: &SharedDatastore,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        set_timing(self.design, datastore, Timing::Off)?;
        session.look_again();
        if interrupt::requested() {
            return Err(Abort::Interrupted);
        }
        let outcome = session.outcome();
        let Some(found) = verified(outcome) else { return Ok(()) };
        let detail = match &outcome.last_look {
            Some(look) => json!({ "blocks": look.units, "block_bytes": look.unit_bytes }),
            None => Value::Null,
        };
        let (id, title) = (CHECK.to_string(), CHECK_TITLE.to_string());
        let checks = [Checked { id, title, outcome: found, detail }];
        keep(&checks, (self.log, CheckMoment::After), observer)?;
        self.verified = Some(Verified::of(&checks, None)?);
        Ok(())
    }
}

/// Why the load ended before its time, if it did.
fn ended(outcome: &Outcome) -> Result<(), Abort> {
    match outcome.failure() {
        Some(failure) => Err(Abort::Failed(format!("a request failed: {failure}"))),
        None if outcome.interrupted => Err(Abort::Interrupted),
        None => Ok(()),
    }
}

/// What reports judge the delivery of a load by.
pub fn delivery(result: &LoadResult) -> Value {
    json!({ "due": result.due, "undelivered": result.undelivered })
}

/// Writes what happens to the record, and looks after the datastore.
struct Watcher<'a, 'o> {
    log: RunLog<'a>,
    loads: LoadRecording<'a>,
    datastore: &'a SharedDatastore,
    observer: &'o mut dyn Observer,
    /// What the measured time of a load is.
    measured: PhaseKind,
    /// Requests in flight per volume.
    in_flight: u32,
}

impl Watch for Watcher<'_, '_> {
    fn load_began(&mut self, label: &str, in_flight_per_target: u32) {
        self.in_flight = in_flight_per_target;
        let (kind, users) = (self.measured, Some(in_flight_per_target));
        self.observer.notice(&Event::PhaseBegan { kind, users, expected: None });
        let now = self.log.now();
        self.loads.begin_load(label, self.measured, in_flight_per_target, now);
    }

    fn second(&mut self, tick: &SecondTick, second: &Second) -> Result<(), Stop> {
        let interval = self.loads.tick(tick)?;
        storage_record::write(self.log, self.datastore, interval)?;
        let health = self.datastore.lock().unwrap_or_else(PoisonError::into_inner).health();
        health.map_err(|error| Abort::failed("the datastore failed", &error))?;
        let seconds = interval.seconds().max(f64::MIN_POSITIVE);
        let rate = (second.reads + second.writes) as f64 / seconds;
        self.observer.notice(&Event::Second {
            headline: rate,
            unit: SHAPE.headline.unit,
            counted: SHAPE.headline.counted,
            counted_per_second: rate,
            users: self.in_flight,
            response_p99: second.p99.map(Nanos),
            errors: second.errors,
        });
        Ok(())
    }

    fn load_ended(&mut self, result: &LoadResult) -> Result<(), Stop> {
        self.loads.end_load(result, self.log.now())
    }
}
