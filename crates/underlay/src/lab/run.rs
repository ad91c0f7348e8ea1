//! One run: one design in one repeat, from nothing to nothing.
//!
//! Restore, start, check, warm up, climb, stop, check. Whatever is acquired is on a teardown stack of
//! this run's own, which is unwound at the end however the run ends.

use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use underlay_core::{Bytes, Nanos};
use underlay_database::managed::{
    Install, Listen, RestoreOptions, Server, ServerSpec, StopMode, Template,
};
use underlay_database::{Engine, Target};
use underlay_datastore::{
    ClusterStorage, Context, DatastoreSpec, MountedVolume, Timing, TimingReport, VolumeRequest,
    open,
};
use underlay_driver::{Arrivals, DriveSpec, DriveSummary, Pacing, Saturation};
use underlay_host::{Cgroup, CgroupLimits, FileSystem, StateDir, Teardown, Unenforced, User};
use underlay_record::conventions::{LATENESS, MODELLED, document, event, finding, histogram_scope};
use underlay_record::{
    CheckMoment, Event as RecordEvent, Finding, Interval, NewRun, PhaseKind, RunEnd, RunId,
    RunStatus, Severity,
};
use underlay_study::{DatastoreKind, DesignPlan, Durability, Plan, RunPlan};
use underlay_telemetry::{CgroupTarget, Collector, CollectorReport, Sampler, Targets};

use crate::lab::abort::{Abort, During};
use crate::lab::background::Background;
use crate::lab::event::{Event, Observer};
use crate::lab::faults::Faults;
use crate::lab::generator::RunningLoad;
use crate::lab::ladder::{Ladder, Rung, write_tick};
use crate::lab::mix::MixChanges;
use crate::lab::phases::Phases;
use crate::lab::recording::{SharedRecorder, TelemetryWriter};
use crate::lab::samplers::{DatastoreSampler, DriverGauge, DriverSampler, SharedDatastore};
use crate::lab::verification::{Verified, verify};
use crate::lab::workload::Subject;

/// Arrivals that may wait during a search: the target, not the queue, shall end a step.
const SEARCH_QUEUE: u32 = 100_000;

/// What all runs of an execution share.
pub struct Bench<'a, S> {
    /// What is carried out.
    pub plan: &'a Plan,
    /// Where the record is written.
    pub recorder: &'a SharedRecorder,
    /// Underlay's own folder.
    pub state: &'a StateDir,
    /// The database's programs.
    pub install: &'a Install,
    /// The loaded database that every run starts from.
    pub template: &'a Template,
    /// The workload.
    pub subject: &'a S,
    /// Who the server runs as.
    pub user: Option<&'a User>,
    /// The program that serves emulated volumes.
    pub server_program: &'a Path,
    /// For the checks.
    pub runtime: &'a Runtime,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunResult {
    /// In the record's words.
    pub status: RunStatus,
    /// The cause, when it did not finish.
    pub reason: Option<String>,
    /// Whether the data was right afterwards; `None` when that was not reached.
    pub verified: Option<Verified>,
}

/// Carries out one run and removes everything it made.
pub fn carry_out<S: Subject>(
    bench: &Bench<'_, S>,
    order: usize,
    scheduled: RunPlan,
    observer: &mut dyn Observer,
) -> Result<RunResult, Abort> {
    let design = &bench.plan.designs[scheduled.design];
    let origin = Instant::now();
    let run = bench
        .recorder
        .lock()
        .begin_run(&NewRun {
            design: u32::try_from(scheduled.design).unwrap_or(u32::MAX),
            repeat: scheduled.repeat + 1,
            order: u32::try_from(order).unwrap_or(u32::MAX),
            at: Nanos::ZERO,
            origin_wall_ns: wall_clock_ns(),
        })
        .during("write the record")?;
    observer.notice(&Event::RunBegan {
        position: order + 1,
        runs: bench.plan.schedule.len(),
        design: &design.title,
        repeat: scheduled.repeat + 1,
    });
    let teardown = Teardown::create(bench.state, &format!("run {} {}", order + 1, design.name))
        .during("keep a list of what is created")?;
    let mut active = ActiveRun {
        bench,
        design,
        scheduled,
        run,
        origin,
        teardown: &teardown,
        rungs: Vec::new(),
        verified: None,
    };
    let result = active.carry_out(observer);
    let (rungs, verified) = (active.rungs, active.verified);
    for leftover in teardown.unwind() {
        let text = format!("could not remove {}: {}", leftover.resource, leftover.reason);
        observer.notice(&Event::Found { severity: Severity::Warning, text: &text });
    }
    let (status, reason) = match (result, &verified) {
        (Ok(()), Some(Verified::Broken(check))) => (RunStatus::Failed, Some(check.clone())),
        (Ok(()), _) => (RunStatus::Finished, None),
        (Err(Abort::Interrupted), _) => {
            (RunStatus::Interrupted, Some("stopped by the user".to_string()))
        }
        (Err(Abort::Failed(reason)), _) => (RunStatus::Failed, Some(reason)),
    };
    let end = RunEnd { at: origin.elapsed().into(), status, reason: reason.clone() };
    bench.recorder.lock().end_run(run, &end).during("write the record")?;
    let unit = bench.plan.workload.kind.shape().headline.unit;
    observer.notice(&Event::RunEnded { status, unit, rungs: &rungs, reason: reason.as_deref() });
    Ok(RunResult { status, reason, verified })
}

/// A run in progress.
struct ActiveRun<'a, S> {
    bench: &'a Bench<'a, S>,
    design: &'a DesignPlan,
    scheduled: RunPlan,
    run: RunId,
    origin: Instant,
    teardown: &'a Teardown,
    rungs: Vec<Rung>,
    verified: Option<Verified>,
}

/// What is there while load runs.
struct Running<'r, 'f> {
    server: &'r mut Server,
    datastore: &'r SharedDatastore,
    volumes: &'r [MountedVolume],
    cgroup: Option<&'r Cgroup>,
    faults: &'r mut Faults<'f>,
    mix: &'r mut MixChanges<'f>,
    background: &'r mut Background<'f>,
}

impl<S: Subject> ActiveRun<'_, S> {
    fn carry_out(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        let (recorder, run) = (self.bench.recorder, self.run);
        let mut phases = Phases::new(recorder, run, self.origin);
        let scratch = self.scratch()?;
        let (datastore, volumes) =
            phases.carry_out(PhaseKind::Prepare, observer, |_| self.open_datastore(&scratch))?;
        let cgroup = self.make_cgroup(observer)?;
        let mut background =
            Background::new(self.bench.plan, self.scheduled, recorder, run, self.origin);
        let mut server = phases.carry_out(PhaseKind::Restore, observer, |_| {
            self.set_timing(&datastore, Timing::Off)?;
            background.prepare(&volumes, self.bench.plan.seed)?;
            self.restore(&scratch, &volumes, cgroup.clone())
        })?;
        phases
            .carry_out(PhaseKind::Start, observer, |observer| self.start(&mut server, observer))?;
        let target = server.target().with_database(self.bench.subject.database());
        let before = phases.carry_out(PhaseKind::Check, observer, |observer| {
            self.check_before(&target, observer)
        })?;
        self.set_timing(&datastore, Timing::Modelled)?;
        let mut faults = Faults::new(self.bench.plan, self.scheduled, recorder, run, self.origin);
        let mut mix = MixChanges::new(self.bench.plan, self.scheduled, recorder, run, self.origin);
        let running = Running {
            server: &mut server,
            datastore: &datastore,
            volumes: &volumes,
            cgroup: cgroup.as_ref(),
            faults: &mut faults,
            mix: &mut mix,
            background: &mut background,
        };
        let driven = self.drive(running, &mut phases, observer);
        self.keep_timing(&datastore, observer)?;
        let summary = match driven {
            Err(Abort::Failed(reason)) if faults.lost().is_some() => {
                self.verified = Some(Verified::Broken(reason));
                None
            }
            driven => Some(driven?),
        };
        if faults.have_happened() && faults.lost().is_none() {
            phases.carry_out(PhaseKind::Fault, observer, |_| {
                self.set_timing(&datastore, Timing::Off)?;
                faults.start_anew(&mut server, &datastore)
            })?;
        }
        if let Some(reason) = faults.lost() {
            self.verified = Some(Verified::Broken(reason.to_string()));
        }
        if let Some(summary) = summary.filter(|_| faults.lost().is_none()) {
            // A server that was started again may be elsewhere.
            let target = server.target().with_database(self.bench.subject.database());
            phases.carry_out(PhaseKind::Check, observer, |observer| {
                self.set_timing(&datastore, Timing::Off)?;
                let known = Some((&before, &summary.books));
                let kept = (recorder, run, CheckMoment::After);
                let with = (self.bench.subject, self.bench.runtime);
                self.verified = Some(verify(with, &target, known, kept, observer)?);
                Ok(())
            })?;
        }
        faults.conclude(self.verified.as_ref(), observer)?;
        phases.carry_out(PhaseKind::Stop, observer, |_| match faults.lost() {
            None => server.stop(StopMode::Fast).during("stop the database server").map(|_| ()),
            Some(_) => server.kill().during("end the database server"),
        })?;
        drop(server);
        if let Some(cgroup) = cgroup {
            cgroup.release().during("remove the control group")?;
        }
        close(datastore)
    }

    /// A folder of this run's own; short, because sockets live in it.
    fn scratch(&self) -> Result<PathBuf, Abort> {
        let name = format!("{}-{}", std::process::id(), self.run.0);
        let path = self.bench.state.scratch_dir(&name);
        self.teardown.create_directory(&path).during("create a folder for the run")?;
        Ok(path)
    }

    fn open_datastore(
        &self,
        scratch: &Path,
    ) -> Result<(SharedDatastore, Vec<MountedVolume>), Abort> {
        let spec = match &self.design.kind {
            DatastoreKind::Path { directory } => {
                DatastoreSpec::Path { directory: directory.clone() }
            }
            DatastoreKind::Emulated { devices, durability, backing } => DatastoreSpec::Emulated {
                devices: devices.clone(),
                // Every repeat meets other random service times, both designs of a pair the same stream.
                seed: self.bench.plan.seed.child("datastore", u64::from(self.scheduled.repeat)),
                backing_directory: backing.clone(),
                durability: datastore_durability(*durability),
            },
            DatastoreKind::Cluster(plan) => DatastoreSpec::Cluster {
                storage: Box::new(ClusterStorage {
                    spec: plan.spec.clone(),
                    policy: plan.policy,
                    policies: BTreeMap::new(),
                }),
                seed: self.bench.plan.seed.child("datastore", u64::from(self.scheduled.repeat)),
                backing_directory: None,
            },
        };
        let volumes: Vec<VolumeRequest> = self
            .design
            .volumes
            .iter()
            .map(|volume| VolumeRequest {
                name: volume.name.clone(),
                capacity: volume.capacity,
                file_system: datastore_file_system(volume.file_system),
                device: volume.device.clone(),
            })
            .collect();
        let context = Context {
            teardown: self.teardown,
            scratch,
            server_program: self.bench.server_program,
            owner: self.bench.user,
        };
        let datastore = open(&spec, &volumes, &context).during("open the datastore")?;
        let mounted = datastore.volumes().to_vec();
        let described: Vec<_> = mounted
            .iter()
            .zip(&volumes)
            .map(|(volume, request)| {
                json!({
                    "name": volume.name,
                    "path": volume.path,
                    "block_device": volume.block_device,
                    "capacity_bytes": volume.capacity.0,
                    "file_system": request.file_system.as_str(),
                })
            })
            .collect();
        self.document(document::DATASTORE, &json!({ "volumes": described }))?;
        Ok((Arc::new(Mutex::new(datastore)), mounted))
    }

    fn make_cgroup(&self, observer: &mut dyn Observer) -> Result<Option<Cgroup>, Abort> {
        let engine = &self.design.engine;
        let limits = CgroupLimits { memory: engine.memory_limit, cpus: engine.cpus };
        let name = format!("underlay-{}-{}", std::process::id(), self.run.0);
        let (cgroup, unenforced) =
            Cgroup::create(self.teardown, &name, &limits).during("create a control group")?;
        let listed: Vec<_> = unenforced
            .iter()
            .map(|Unenforced { limit, reason, remedy }| {
                json!({ "limit": limit, "reason": reason, "remedy": remedy })
            })
            .collect();
        self.document(document::UNENFORCED, &json!(listed))?;
        for Unenforced { limit, reason, remedy } in &unenforced {
            let text = format!("the limit of {limit} is not enforced: {reason} ({remedy})");
            self.find(Severity::Warning, finding::LIMIT_NOT_ENFORCED, &text, observer)?;
        }
        Ok(cgroup)
    }

    fn restore(
        &self,
        scratch: &Path,
        volumes: &[MountedVolume],
        cgroup: Option<Cgroup>,
    ) -> Result<Server, Abort> {
        let directory = |volume: &str, name: &str| -> Result<PathBuf, Abort> {
            volumes
                .iter()
                .find(|mounted| mounted.name == volume)
                .map(|mounted| mounted.path.join(name))
                .ok_or_else(|| Abort::Failed(format!("the design has no volume `{volume}`")))
        };
        let names = match self.bench.install.engine() {
            Engine::Postgresql => ("pgdata", "pgwal"),
            Engine::Mariadb => ("mariadb", "redo"),
        };
        let spec = ServerSpec {
            name: format!("run-{}", self.run.0),
            install: self.bench.install.clone(),
            data: directory("data", names.0)?,
            wal: directory("wal", names.1)?,
            backup: directory("backup", "backup")?,
            settings: self.design.engine.settings.clone(),
            run_as: self.bench.user.cloned(),
            cgroup,
            runtime_dir: scratch.join("pg"),
            listen: Listen::UnixSocket,
        };
        let wal_ready = self.wal_ready(volumes);
        let (server, copied) = self
            .bench
            .template
            .restore(self.teardown, spec, &RestoreOptions { log_ready: wal_ready })
            .during("restore the template")?;
        self.bench
            .recorder
            .lock()
            .write_document(
                Some(self.run),
                "restore",
                &json!({
                    "files": copied.files,
                    "bytes": copied.bytes.0,
                    "duration_ns": Nanos::from(copied.duration).0,
                    "wal_ready_bytes": wal_ready.0,
                }),
            )
            .during("write the record")?;
        Ok(server)
    }

    /// WAL segments to have ready: a server that has been running recycles its segments and writes into
    /// space that exists. A quarter of the log volume is what it would hold after its first checkpoint.
    fn wal_ready(&self, volumes: &[MountedVolume]) -> Bytes {
        let capacity = volumes
            .iter()
            .find(|volume| volume.name == "wal")
            .map_or(0, |volume| volume.capacity.0);
        Bytes((capacity / 4).min(Bytes::from_mib(512).0) >> 24 << 24)
    }

    fn start(&self, server: &mut Server, observer: &mut dyn Observer) -> Result<(), Abort> {
        let started = server.start().during("start the database server")?;
        for warning in &started.warnings {
            self.find(Severity::Warning, finding::NOT_DURABLE, warning, observer)?;
        }
        let settings: BTreeMap<_, _> = server
            .settings_in_force()
            .during("read the settings in force")?
            .into_iter()
            .map(|setting| {
                (setting.name, json!({ "value": setting.value, "source": setting.source }))
            })
            .collect();
        self.document(document::ENGINE_SETTINGS, &json!(settings))?;
        self.document(
            document::ENGINE,
            &json!({
                "engine": self.bench.install.product(),
                "version": self.bench.install.version(),
                "programs": self.bench.install.bin_dir(),
                "data_bytes": self.bench.template.manifest().bytes.0,
                "start_ns": Nanos::from(started.duration).0,
            }),
        )
    }

    fn check_before(
        &self,
        target: &Target,
        observer: &mut dyn Observer,
    ) -> Result<S::Before, Abort> {
        let kept = (self.bench.recorder, self.run, CheckMoment::Before);
        let (subject, runtime) = (self.bench.subject, self.bench.runtime);
        match verify((subject, runtime), target, None, kept, observer)? {
            Verified::Clean => subject.before(runtime, target, self.users()),
            Verified::Broken(check) => {
                Err(Abort::Failed(format!("the restored database is not consistent: {check}")))
            }
        }
    }

    /// Drives the ladder with everything being sampled; stops load and samplers whatever happens.
    fn drive(
        &mut self,
        running: Running<'_, '_>,
        phases: &mut Phases<'_>,
        observer: &mut dyn Observer,
    ) -> Result<DriveSummary<S::Books>, Abort> {
        let Running { server, datastore, volumes, cgroup, faults, mix, background } = running;
        let target = server.target().with_database(self.bench.subject.database());
        let gauge = DriverGauge::default();
        let driver = self.bench.subject.start(self.drive_spec(), target.clone(), self.origin)?;
        let writer = TelemetryWriter::start(self.bench.recorder.clone(), self.run)
            .during("start the thread of the record")?;
        let mut targets = self.targets(target, server, datastore, volumes, cgroup, &gauge);
        if let Some(sampler) = background.sampler() {
            targets.extra.push(Box::new(sampler));
        }
        let collector = Collector::start(targets, Duration::from_secs(1), writer.sink());
        let mut rungs = Vec::new();
        let mut ladder = Ladder {
            origin: self.origin,
            recorder: self.bench.recorder,
            run: self.run,
            driver: &driver,
            first_rate: self.first_rate(),
            gauge: &gauge,
            server,
            datastore,
            volumes,
            faults,
            mix,
            background,
            collector: &collector,
            observer: &mut *observer,
        };
        let plan = self.bench.plan;
        let climbed = match plan.workload.kind.job_sessions() {
            None => ladder.climb(&plan.procedure, &mut rungs),
            Some(sessions) => ladder.wait_for_job(sessions, &plan.procedure, &mut rungs),
        };
        // Whatever ended the climb: processes that wait for broken storage can only end once it is mended.
        let mended = ladder.mend_faults();
        // Requests of background work that wait for broken storage have ended now.
        let stopped = ladder.stop_background();
        let climbed = climbed.and(mended).and(stopped);
        self.rungs = rungs;
        let stopped = phases.carry_out(PhaseKind::Stop, observer, |_| {
            let summary = driver.stop();
            let collected = collector.stop();
            writer.finish().during("write the record")?;
            Ok((summary, collected))
        });
        // Why the climb ended says more than what went wrong while cleaning up after it.
        climbed?;
        let (summary, collected) = stopped?;
        write_tick(self.bench.recorder, self.run, &summary.last_tick)?;
        self.keep_summary(&summary, &collected, observer)?;
        if let Some(outcome) = self.bench.subject.outcome(&summary.books)? {
            self.document(document::OUTCOME, &outcome)?;
        }
        Ok(summary)
    }

    /// Users of the top of the ladder.
    fn users(&self) -> u32 {
        self.bench.plan.procedure.users.last().copied().unwrap_or(1)
    }

    /// Transactions per second of an open loop; 0 of a closed one.
    fn first_rate(&self) -> f64 {
        match self.bench.plan.workload.pacing {
            underlay_study::Pacing::Open { rate_per_second, .. } => rate_per_second,
            underlay_study::Pacing::Closed { .. } | underlay_study::Pacing::Job => 0.0,
        }
    }

    fn drive_spec(&self) -> DriveSpec {
        let workload = &self.bench.plan.workload;
        let users = self.users();
        // Each repeat has inputs of its own, the same for all designs of the repeat.
        let inputs = workload.seed.child("repeat", u64::from(self.scheduled.repeat));
        let mut spec = DriveSpec::new(inputs, users);
        spec.statement_timeout = workload.statement_timeout.into();
        spec.pacing = match workload.pacing {
            underlay_study::Pacing::Closed { key_think } => Pacing::Closed { key_think },
            underlay_study::Pacing::Job => Pacing::Closed { key_think: 0.0 },
            underlay_study::Pacing::Open { rate_per_second, arrivals } => Pacing::open(
                rate_per_second,
                match arrivals {
                    underlay_study::Arrivals::Poisson => Arrivals::Poisson,
                    underlay_study::Arrivals::Uniform => Arrivals::Uniform,
                },
            ),
        };
        if let (Some(_), Pacing::Open { queue_limit, .. }) =
            (&self.bench.plan.procedure.search, &mut spec.pacing)
        {
            *queue_limit = SEARCH_QUEUE;
        }
        spec
    }

    fn targets(
        &self,
        target: Target,
        server: &Server,
        datastore: &SharedDatastore,
        volumes: &[MountedVolume],
        cgroup: Option<&Cgroup>,
        gauge: &DriverGauge,
    ) -> Targets {
        let mut processes = vec![("driver".to_string(), std::process::id())];
        processes.extend(server.pid().map(|pid| (process_name(target.engine).to_string(), pid)));
        processes.extend(datastore.lock().unwrap_or_else(PoisonError::into_inner).processes());
        processes.extend(kernel_threads());
        let block_device = |volume: &MountedVolume| match &volume.block_device {
            Some(device) => device.clone(),
            None => volume.path.to_string_lossy().into_owned(),
        };
        let mut extra: Vec<Box<dyn Sampler>> =
            vec![Box::new(DatastoreSampler::new(Arc::clone(datastore)))];
        // A job counts no time of its own; that of the process is sampled.
        if self.bench.plan.workload.kind.job_sessions().is_none() {
            extra.push(Box::new(DriverSampler::new(gauge.clone())));
        }
        Targets {
            origin: self.origin,
            database: Some(target),
            processes,
            cgroup: cgroup.map(|cgroup| {
                let paths = cgroup.paths();
                CgroupTarget {
                    memory: paths.memory.clone(),
                    cpu: paths.cpu.clone(),
                    cpuacct: paths.cpuacct.clone(),
                    blkio: paths.blkio.clone(),
                    unified: paths.unified.clone(),
                }
            }),
            volumes: volumes
                .iter()
                .map(|volume| (volume.name.clone(), block_device(volume)))
                .collect(),
            extra,
        }
    }

    fn keep_summary(
        &self,
        summary: &DriveSummary<S::Books>,
        collected: &CollectorReport,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        for outage in &summary.outages {
            self.bench
                .recorder
                .lock()
                .event(&RecordEvent {
                    run: Some(self.run),
                    at: outage.first_error,
                    kind: event::OUTAGE.to_string(),
                    text: format!(
                        "{} errors seen by {} users",
                        outage.errors, outage.users_affected
                    ),
                    data: json!({
                        "until_ns": outage.restored.map(|at| at.0),
                        "recovered_ns": outage.recovered.map(|at| at.0),
                        "last_error_ns": outage.last_error.0,
                        "commits_unknown": outage.commits_unknown,
                    }),
                })
                .during("write the record")?;
        }
        let saturation = Saturation::of(&summary.totals);
        self.document(
            document::DRIVER,
            &json!({
                "commits_unknown": summary.commits_unknown,
                "outages": summary.outages.len(),
                "cpu_ns": summary.totals.cpu_ns,
                "busiest_thread_share": saturation.awake_share,
                "dispatch_lag_p99_ns": saturation.lag_p99.0,
                "errors": summary
                    .totals
                    .samples
                    .iter()
                    .map(|sample| json!({
                        "at_ns": sample.at.0,
                        "class": sample.class.as_str(),
                        "sqlstate": sample.sqlstate,
                        "message": sample.message,
                    }))
                    .collect::<Vec<_>>(),
                "delivery": summary.delivery.as_ref().map(|delivery| json!({
                    "requested": delivery.requested,
                    "completed": delivery.completed,
                    "overflowed": delivery.overflowed,
                    "shortfall": delivery.shortfall,
                })),
            }),
        )?;
        // A search offers more than can be delivered; what each of its steps delivered is judged there.
        if let Some(delivery) = &summary.delivery
            && self.bench.plan.procedure.search.is_none()
            && delivery.verdict != underlay_driver::DeliveryVerdict::Delivered
        {
            let text = format!(
                "the requested load was not delivered: {} of {} transactions completed",
                delivery.completed, delivery.requested
            );
            self.find(Severity::Invalid, "load-not-delivered", &text, observer)?;
        }
        self.document(
            document::COLLECTOR,
            &json!({ "missed_ticks": collected.missed(), "cpu_ns": collected.cpu().0 }),
        )
    }

    /// Keeps the emulation's own judgement of its timing.
    fn keep_timing(
        &self,
        datastore: &SharedDatastore,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        let report = datastore.lock().unwrap_or_else(PoisonError::into_inner).timing();
        // A datastore that has just died cannot be asked; why the run ended is said elsewhere.
        let Ok(Some(report)) = report else { return Ok(()) };
        let TimingReport {
            lateness,
            modelled,
            valid,
            reason,
            host_limited_share,
            floor,
            compensation,
            export,
            ..
        } = report;
        let interval = Interval { begin: Nanos::ZERO, end: self.origin.elapsed().into() };
        {
            let mut recorder = self.bench.recorder.lock();
            for (name, histogram) in [(LATENESS, &lateness), (MODELLED, &modelled)] {
                recorder
                    .histogram(self.run, interval, histogram_scope::TIMING, name, histogram)
                    .during("write the record")?;
            }
        }
        self.document(
            document::TIMING,
            &json!({
                "valid": valid,
                "reason": reason,
                "host_limited_share": host_limited_share,
                "floor_ns": floor.0,
                "compensation_ns": compensation.0,
                "export": export.as_str(),
            }),
        )?;
        if let Some(reason) = reason {
            self.find(Severity::Warning, finding::NOT_TIMING_VALID, &reason, observer)?;
        }
        Ok(())
    }

    fn set_timing(&self, datastore: &SharedDatastore, timing: Timing) -> Result<(), Abort> {
        if matches!(self.design.kind, DatastoreKind::Path { .. }) {
            // A real device has one timing.
            return Ok(());
        }
        let mut datastore = datastore.lock().unwrap_or_else(PoisonError::into_inner);
        datastore.set_timing(timing).during("switch the modelled latencies")
    }

    fn document(&self, name: &str, content: &serde_json::Value) -> Result<(), Abort> {
        self.bench
            .recorder
            .lock()
            .write_document(Some(self.run), name, content)
            .during("write the record")
    }

    fn find(
        &self,
        severity: Severity,
        code: &str,
        text: &str,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        observer.notice(&Event::Found { severity, text });
        self.bench
            .recorder
            .lock()
            .finding(&Finding {
                run: Some(self.run),
                severity,
                code: code.to_string(),
                text: text.to_string(),
                data: serde_json::Value::Null,
            })
            .during("write the record")
    }
}

/// The kernel's threads, which carry the volumes' I/O: without them that work would count as somebody
/// else's. `None` where process 2 is not their parent, as in a container.
fn kernel_threads() -> Option<(String, u32)> {
    const KTHREADD: u32 = 2;
    let name = std::fs::read_to_string(format!("/proc/{KTHREADD}/comm")).ok()?;
    (name.trim() == "kthreadd").then(|| ("kernel".to_string(), KTHREADD))
}

fn close(datastore: SharedDatastore) -> Result<(), Abort> {
    // The sampler's share went with the collector: this is the last one. If it is not, unwinding the
    // teardown stack removes the datastore all the same.
    match Arc::try_unwrap(datastore) {
        Ok(datastore) => {
            let datastore = datastore.into_inner().unwrap_or_else(PoisonError::into_inner);
            datastore.close().during("remove the datastore")
        }
        Err(_) => Ok(()),
    }
}

fn datastore_durability(durability: Durability) -> underlay_datastore::Durability {
    match durability {
        Durability::Profile => underlay_datastore::Durability::Profile,
        Durability::Flushed => underlay_datastore::Durability::Flushed,
        Durability::Acknowledged => underlay_datastore::Durability::Acknowledged,
        Durability::Lying => underlay_datastore::Durability::Lying,
    }
}

fn datastore_file_system(file_system: underlay_study::FileSystem) -> FileSystem {
    match file_system {
        underlay_study::FileSystem::Ext4 => FileSystem::Ext4,
        underlay_study::FileSystem::Xfs => FileSystem::Xfs,
    }
}

/// The record's name of the server's processes, by which its pages find them.
pub fn process_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "postgres",
        Engine::Mariadb => "mariadb",
    }
}

/// Now, in nanoseconds since the Unix epoch.
pub fn wall_clock_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos::from(since_epoch).0
}
