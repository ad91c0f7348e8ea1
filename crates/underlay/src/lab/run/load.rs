//! What happens once the server is up: checks, load, sampling.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use underlay_core::RootSeed;
use underlay_database::managed::Server;
use underlay_database::{Engine, Target};
use underlay_datastore::{MountedVolume, Timing};
use underlay_driver::{DriveSpec, DriveSummary, Pacing};
use underlay_host::Cgroup;
use underlay_record::conventions::document;
use underlay_record::{CheckMoment, PhaseKind};
use underlay_study::{ClientPlace, ProcedurePlan, WorkloadPlan};
use underlay_telemetry::{CgroupTarget, Collector, Sampler, Targets, VolumeTarget};

use super::outcome::keep_summary;
use super::site::ManagedSite;
use super::{ActiveRun, Running};
use crate::lab::abort::{Abort, During};
use crate::lab::causal_check::CausalSpec;
use crate::lab::causal_check::perturbation::Perturbation;
use crate::lab::client::{ClientPath, ClientProcess};
use crate::lab::event::Observer;
use crate::lab::generator::{LoadGenerator, RunningLoad};
use crate::lab::ladder::{Ladder, Measured, Rung, Site};
use crate::lab::mix::MixChanges;
use crate::lab::phases::Phases;
use crate::lab::recording::TelemetryWriter;
use crate::lab::samplers::{DatastoreSampler, DriverGauge, DriverSampler, SharedDatastore};
use crate::lab::template::access;
use crate::lab::verification::{Verified, crash_behind, keep, made};
use crate::lab::workload::Subject;

/// Arrivals that may wait during a search: the target, not the queue, shall end a step.
const SEARCH_QUEUE: u32 = 100_000;

impl<S: Subject> ActiveRun<'_, S> {
    pub(super) fn check_before(
        &self,
        server: &mut Server,
        target: &Target,
        observer: &mut dyn Observer,
    ) -> Result<S::Before, Abort> {
        let (subject, access) = (self.bench.subject, access(self.bench.runtime, target));
        let checks = subject.check(access, CheckMoment::Before, None);
        let crash = crash_behind(&checks, server)?;
        let checks = made(checks, crash.as_deref())?;
        keep(&checks, (self.log, CheckMoment::Before), observer)?;
        match Verified::of(&checks, crash.as_deref())? {
            Verified::Clean => {
                Ok(subject.before(access, self.bench.plan.procedure.users_at_once())?)
            }
            Verified::Broken(check) => {
                Err(Abort::Failed(format!("the restored database is not consistent: {check}")))
            }
        }
    }

    /// Drives the ladder with everything being sampled; stops load and samplers whatever happens.
    pub(super) fn drive(
        &mut self,
        running: Running<'_, '_>,
        before: &S::Before,
        phases: &mut Phases<'_>,
        observer: &mut dyn Observer,
    ) -> Result<DriveSummary<S::Accounting>, Abort> {
        let Running { server, datastore, volumes, cgroup, faults, background, scratch } = running;
        let (log, plan) = (self.log, self.bench.plan);
        let client = self.design.client;
        let database = self.bench.subject.database();
        let target = server.target().with_database(database);
        let gauge = DriverGauge::default();
        let path = ClientPath::open(&client, server, database, log.dilation)?;
        path.doubt(log, observer)?;
        let driver = self.start_load((server, &path), cgroup, scratch, before)?;
        let writer = TelemetryWriter::start(log.recorder.clone(), log.run, log.dilation)
            .during("start the thread of the record")?;
        let mut targets =
            self.targets(target, server, (datastore, volumes), cgroup, (&gauge, driver.pid()));
        if let Some(sampler) = path.sampler() {
            targets.extra.push(Box::new(sampler));
        }
        if let Some(sampler) = background.sampler() {
            targets.extra.push(Box::new(sampler));
        }
        let second = log.dilation.wall_duration(Duration::from_secs(1));
        let collector = Collector::start(targets, second, writer.sink());
        let mut measured = Measured::default();
        let mut site = ManagedSite {
            log,
            server,
            datastore,
            volumes,
            faults,
            background,
            perturbation: Perturbation::new(self.design, cgroup, log.dilation),
            collector: &collector,
        };
        let mut ladder = Ladder {
            log,
            driver: &driver,
            first_rate: first_rate(&plan.workload),
            gauge: &gauge,
            causal: self.causal_check(),
            mix: MixChanges::new(&plan.weights, self.scheduled.design, log),
            site: &mut site,
            observer: &mut *observer,
            measured: &mut measured,
        };
        let climbed = match plan.workload.kind.job_sessions() {
            None => ladder.climb(&plan.procedure).and_then(|()| {
                let rungs = self.twin_rungs(&ladder.measured.rungs());
                if rungs.is_empty() {
                    return Ok(());
                }
                self.set_timing(datastore, Timing::Off)?;
                let climbed = ladder.climb_null_twin(&rungs);
                self.set_timing(datastore, Timing::Modelled)?;
                climbed
            }),
            Some(sessions) => ladder.wait_for_job(sessions, &plan.procedure),
        };
        // What happened since its last second.
        let climbed = climbed.and_then(|()| site.check_health());
        // Whatever ended the climb: processes that wait for broken storage can only end once it is repaired.
        let repaired = site.repair_faults(observer);
        // Requests of background work that wait for broken storage have ended now.
        let stopped = site.stop_background(observer);
        let climbed = climbed.and(repaired).and(stopped);
        self.rungs = measured.rungs();
        let stopped = phases.carry_out(PhaseKind::Stop, observer, |_| {
            let summary = driver.stop();
            let collected = collector.stop();
            writer.finish().during("write the record")?;
            Ok((summary?, collected))
        });
        path.keep(&client, log)?;
        // Why the climb ended says more than what went wrong while cleaning up after it.
        climbed?;
        let (summary, collected) = stopped?;
        let is_search = plan.procedure.search.is_some();
        keep_summary(log, &summary, Some(&collected), is_search, observer)?;
        if let Some(outcome) = self.bench.subject.outcome(&summary.accounting)? {
            log.document(document::OUTCOME, &outcome)?;
            // The headline of a job is its result, not what its seconds add up to.
            let sessions = plan.workload.kind.job_sessions();
            self.rungs.extend(sessions.zip(outcome["value"].as_f64()));
        }
        Ok(summary)
    }

    /// Users of the null twin of this run: those that headlines are about, of the highest rung and of the best one. None in later
    /// repeats.
    fn twin_rungs(&self, measured: &[Rung]) -> Vec<u32> {
        if self.scheduled.repeat > 0 || !self.bench.plan.has_null_twin(self.scheduled.design) {
            return Vec::new();
        }
        let best = measured.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(users, _)| *users);
        let mut rungs = vec![self.users()];
        rungs.extend(best.filter(|best| *best != self.users()));
        rungs
    }

    /// Users of the top of the ladder.
    pub(super) fn users(&self) -> u32 {
        self.bench.plan.procedure.most_users()
    }

    /// The causal check of this run: one per design is enough, in the first repeat.
    fn causal_check(&self) -> Option<CausalSpec> {
        let plan = self.bench.plan.procedure.causal.filter(|_| self.scheduled.repeat == 0)?;
        let seed = self.bench.plan.seed.child("causal-check", self.scheduled.design as u64);
        Some(CausalSpec { plan, connections: self.design.client.connections, seed })
    }

    /// Makes the load ready where the design's client works.
    fn start_load(
        &self,
        (server, path): (&Server, &ClientPath),
        cgroup: Option<&Cgroup>,
        scratch: &Path,
        before: &S::Before,
    ) -> Result<S::Load, Abort> {
        let (subject, origin) = (self.bench.subject, self.log.origin);
        let (spec, target) = (self.drive_spec(), path.target.clone());
        match self.design.client.place {
            ClientPlace::Host | ClientPlace::Remote => {
                Ok(subject.start_managed(server, spec, target, origin, before)?)
            }
            ClientPlace::Local => {
                let process = ClientProcess {
                    teardown: self.teardown,
                    scratch,
                    program: self.bench.server_program,
                    cgroup,
                    workload: &self.bench.plan.workload,
                };
                Ok(subject.start_within(process, spec, target, origin, before)?)
            }
        }
    }

    fn drive_spec(&self) -> DriveSpec {
        let workload = &self.bench.plan.workload;
        // Each repeat has inputs of its own, the same for all designs of the repeat.
        let inputs = workload.seed.child("repeat", u64::from(self.scheduled.repeat));
        let spec = drive_spec(workload, &self.bench.plan.procedure, inputs);
        let client = &self.design.client;
        DriveSpec {
            dilation: self.bench.dilation,
            connections: client.connections,
            shares_server_cpu: client.place == ClientPlace::Local,
            ..spec
        }
    }

    pub(super) fn targets(
        &self,
        target: Target,
        server: &Server,
        (datastore, volumes): (&SharedDatastore, &[MountedVolume]),
        cgroup: Option<&Cgroup>,
        (gauge, driver): (&DriverGauge, u32),
    ) -> Targets {
        let mut processes = vec![("driver".to_string(), driver)];
        if driver != std::process::id() {
            processes.push(("underlay".to_string(), std::process::id()));
        }
        processes.extend(server.pid().map(|pid| (process_name(target.engine).to_string(), pid)));
        processes.extend(datastore.lock().unwrap_or_else(PoisonError::into_inner).processes());
        processes.extend(kernel_threads());
        let mut extra: Vec<Box<dyn Sampler>> =
            vec![Box::new(DatastoreSampler::new(Arc::clone(datastore)))];
        // A job counts no time of its own; that of the process is sampled.
        if self.bench.plan.workload.kind.job_sessions().is_none() {
            extra.push(Box::new(DriverSampler::new(gauge.clone())));
        }
        Targets {
            origin: self.log.origin,
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
            volumes: volume_targets(volumes),
            extra,
        }
    }
}

/// Volumes as samplers know them.
pub fn volume_targets(volumes: &[MountedVolume]) -> Vec<VolumeTarget> {
    let target = |volume: &MountedVolume| VolumeTarget {
        name: volume.name.clone(),
        place: match &volume.block_device {
            Some(device) => device.clone(),
            None => volume.path.to_string_lossy().into_owned(),
        },
        owns_device: volume.owns_block_device,
    };
    volumes.iter().map(target).collect()
}

/// Transactions per second of an open loop when it begins; 0 of a closed one.
pub fn first_rate(workload: &WorkloadPlan) -> f64 {
    match workload.pacing {
        underlay_study::Pacing::Open { rate_per_second, .. } => rate_per_second,
        underlay_study::Pacing::Closed { .. } | underlay_study::Pacing::Job => 0.0,
    }
}

/// How the load generator drives a workload, with the random inputs of `inputs`.
pub fn drive_spec(
    workload: &WorkloadPlan,
    procedure: &ProcedurePlan,
    inputs: RootSeed,
) -> DriveSpec {
    let mut spec = DriveSpec::new(inputs, procedure.users_at_once());
    spec.statement_timeout = workload.statement_timeout.into();
    spec.pacing = match workload.pacing {
        underlay_study::Pacing::Closed { key_think } => Pacing::Closed { key_think },
        underlay_study::Pacing::Job => Pacing::Closed { key_think: 0.0 },
        underlay_study::Pacing::Open { rate_per_second, arrivals } => {
            Pacing::open(rate_per_second, arrivals)
        }
    };
    if let (Some(_), Pacing::Open { queue_limit, .. }) = (&procedure.search, &mut spec.pacing) {
        *queue_limit = SEARCH_QUEUE;
    }
    spec
}

/// The kernel's threads, which carry the volumes' I/O: without them that work would count as somebody
/// else's. `None` where process 2 is not their parent, as in a container.
pub fn kernel_threads() -> Option<(String, u32)> {
    const KTHREADD: u32 = 2;
    let name = std::fs::read_to_string(format!("/proc/{KTHREADD}/comm")).ok()?;
    (name.trim() == "kthreadd").then(|| ("kernel".to_string(), KTHREADD))
}

/// The record's name of the server's processes, by which its pages find them.
pub fn process_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "postgres",
        Engine::Mariadb => "mariadb",
    }
}
