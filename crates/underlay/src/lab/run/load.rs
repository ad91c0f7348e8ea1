//! What happens once the servers are up: load, sampling.

use serde_json::Value;
use std::cell::Cell;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use underlay_core::{Nanos, RootSeed};
use underlay_datastore::{MountedVolume, Timing};
use underlay_driver::{DriveSpec, Pacing};
use underlay_host::Cgroup;
use underlay_record::conventions::{document, event, finding};
use underlay_record::{PhaseKind, Severity};
use underlay_study::{ClientPlace, ProcedurePlan, WorkloadPlan};
use underlay_telemetry::{CgroupTarget, Collector, Sampler, Targets, VolumeTarget};

use super::active::ActiveRun;
use super::bench::DatabaseBench;
use super::outcome::{keep_outages, keep_summary};
use super::provision::begin_timing;
use super::site::ManagedSite;
use super::under_test::UnderTest;
use crate::lab::abort::{Abort, During};
use crate::lab::background::Background;
use crate::lab::causal_check::CausalSpec;
use crate::lab::causal_check::perturbation::Perturbation;
use crate::lab::client::{ClientPath, ClientProcess};
use crate::lab::event::Observer;
use crate::lab::faults::Faults;
use crate::lab::generator::LoadGenerator;
use crate::lab::ladder::{Ladder, Measured, Rung, Site};
use crate::lab::loads::{Load, Loads, total_of};
use crate::lab::mix::MixChanges;
use crate::lab::phases::Phases;
use crate::lab::recording::TelemetryWriter;
use crate::lab::run_log::RunLog;
use crate::lab::samplers::{DatastoreSampler, DriverGauge, DriverSampler, SharedDatastore};
use crate::lab::verification::kept_from_beginning;
use crate::lab::workload::Session;

/// Arrivals that may wait during a search: the target, not the queue, shall end a step.
const SEARCH_QUEUE: u32 = 100_000;

/// What is there while load runs.
pub(super) struct Running<'r, 'f, 'd> {
    pub(super) databases: &'r mut [UnderTest<'d>],
    pub(super) sessions: &'r mut [Box<dyn Session + 'd>],
    pub(super) datastore: &'r SharedDatastore,
    pub(super) volumes: &'r [MountedVolume],
    pub(super) faults: &'r mut Faults<'f>,
    pub(super) background: &'r mut Background<'f>,
}

impl ActiveRun<'_> {
    /// Drives the ladder with everything being sampled; stops load and samplers whatever happens.
    pub(super) fn drive(
        &mut self,
        running: Running<'_, '_, '_>,
        phases: &mut Phases<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        let Running { databases, sessions, datastore, volumes, faults, background } = running;
        let (log, plan) = (self.log, self.bench.plan);
        let gauge = DriverGauge::default();
        let paths = match self.start_loads(databases, sessions, observer) {
            Ok(paths) => paths,
            Err(failure) => {
                let mut servers: Vec<_> = databases.iter_mut().map(|it| &mut it.server).collect();
                return Err(kept_from_beginning(failure, &mut servers));
            }
        };
        let loads = loads_of(databases, sessions)?;
        let generator: &dyn LoadGenerator = match plan.has_named_databases() {
            true => &loads,
            false => sessions[0].load()?,
        };
        let writer = TelemetryWriter::start(log, databases.len())
            .during("start the thread of the record")?;
        let mut targets = self.targets(databases, (datastore, volumes), (&gauge, generator));
        for (database, load) in databases.iter().zip(loads.each_load()) {
            self.add_samplers(&mut targets, database, load);
        }
        for (database, path) in databases.iter().zip(&paths) {
            if let Some(sampler) = path.sampler(database.log) {
                targets.extra.push(Box::new(sampler));
            }
        }
        if let Some(sampler) = background.sampler() {
            targets.extra.push(Box::new(sampler));
        }
        let second = log.dilation.wall_duration(Duration::from_secs(1));
        let collector = Collector::start(targets, second, writer.sink());
        // The processors of several servers are no one resource: their studies make no causal check.
        let cgroups: Vec<Option<Cgroup>> = databases.iter().map(|it| it.cgroup.clone()).collect();
        let cgroup = match &cgroups[..] {
            [only] => only.as_ref(),
            _ => None,
        };
        let mut measured = Measured::default();
        let mut site = ManagedSite {
            log,
            databases: &mut *databases,
            datastore,
            volumes,
            faults,
            background,
            perturbation: Perturbation::new(self.design, cgroup, log.dilation),
            collector: &collector,
        };
        let mut ladder = Ladder {
            log,
            driver: generator,
            first_rate: first_rate(&plan.workload),
            gauge: &gauge,
            causal: self.causal_check(),
            mix: MixChanges::new(&plan.weights, self.scheduled.design, log),
            site: &mut site,
            observer: &mut *observer,
            measured: &mut measured,
        };
        let climbed = match plan.workload.kind.job_sessions() {
            None => self
                .fill_caches(&mut ladder, datastore)
                .and_then(|()| ladder.climb(&plan.procedure))
                .and_then(|()| {
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
        let jobs = match climbed {
            Ok(()) if plan.has_named_databases() => jobs_of(&loads),
            _ => Vec::new(),
        };
        drop(loads);
        let stopped = phases.carry_out(PhaseKind::Stop, observer, |_| {
            // All of them, whatever becomes of one.
            let stopped: Vec<_> = sessions.iter_mut().map(|session| session.stop()).collect();
            let collected = collector.stop();
            writer.finish().during("write the record")?;
            Ok((stopped.into_iter().collect::<Result<Vec<_>, Abort>>()?, collected))
        });
        for (database, path) in databases.iter().zip(&paths) {
            path.keep(&database.part.client, database.log)?;
        }
        // Why the climb ended says more than what went wrong while cleaning up after it.
        climbed?;
        let (mut summaries, collected) = stopped?;
        let is_search = plan.procedure.search.is_some();
        if plan.has_named_databases() {
            let is_job: Vec<bool> = databases.iter().map(|it| it.bench.plan.is_job()).collect();
            let total = total_of(&mut summaries, &is_job);
            for (database, summary) in databases.iter().zip(&summaries) {
                keep_outages(database.log, &summary.outages)?;
                keep_summary(database.log, summary, None, is_search, observer)?;
            }
            keep_summary(log, &total, Some(&collected), is_search, observer)?;
        } else {
            for summary in &summaries {
                keep_outages(log, &summary.outages)?;
                keep_summary(log, summary, Some(&collected), is_search, observer)?;
            }
        }
        let end = measured.windows.last().map_or(Nanos::ZERO, |window| window.tick.end);
        for (position, ended) in jobs {
            keep_end_of_job(databases[position].log, ended, end, observer)?;
        }
        for (database, session) in databases.iter().zip(sessions.iter()) {
            let Some(outcome) = session.outcome()? else { continue };
            database.log.document(document::OUTCOME, &outcome)?;
            if plan.has_named_databases() {
                // What a run comes to is what its users did.
                continue;
            }
            // The headline of a job is its result, not what its seconds add up to.
            let sessions = plan.workload.kind.job_sessions();
            self.rungs.extend(sessions.zip(outcome["value"].as_f64()));
        }
        Ok(())
    }

    /// Fills caches without the delays of the storage, if the study says so.
    fn fill_caches(
        &self,
        ladder: &mut Ladder<'_>,
        datastore: &SharedDatastore,
    ) -> Result<(), Abort> {
        let procedure = &self.bench.plan.procedure;
        if procedure.cache_warm_up == Nanos::ZERO {
            return Ok(());
        }
        self.set_timing(datastore, Timing::Off)?;
        ladder.fill_caches(procedure)?;
        begin_timing(self.design, datastore)
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

    /// Makes the load of each database ready where its client works, and returns the ways to their servers.
    fn start_loads(
        &self,
        databases: &[UnderTest<'_>],
        sessions: &mut [Box<dyn Session + '_>],
        observer: &mut dyn Observer,
    ) -> Result<Vec<ClientPath>, Abort> {
        let mut paths = Vec::new();
        for (database, session) in databases.iter().zip(sessions) {
            let UnderTest { bench, part, log, scratch, cgroup, server } = database;
            let path =
                ClientPath::open(&part.client, server, bench.subject.database(), log.dilation)?;
            path.doubt(*log, observer)?;
            let within = match part.client.place {
                ClientPlace::Host | ClientPlace::Remote => None,
                ClientPlace::Local => Some(ClientProcess {
                    teardown: self.teardown,
                    scratch,
                    program: self.bench.server_program,
                    cgroup: cgroup.as_ref(),
                    workload: &bench.plan.workload,
                }),
            };
            let spec = self.drive_spec(database);
            session.start(server, within, spec, path.target.clone(), log.origin)?;
            paths.push(path);
        }
        Ok(paths)
    }

    fn drive_spec(&self, database: &UnderTest<'_>) -> DriveSpec {
        let workload = &database.bench.plan.workload;
        // Each repeat has inputs of its own, the same for all designs of the repeat; so has each database.
        let mut inputs = workload.seed.child("repeat", u64::from(self.scheduled.repeat));
        if !database.bench.plan.name.is_empty() {
            // By its place in the study, so that it has the same inputs in all designs.
            let is_this = |it: &DatabaseBench<'_>| it.plan.name == database.bench.plan.name;
            let number = self.bench.databases.iter().position(is_this).unwrap_or_default();
            inputs = inputs.child("database", number as u64);
        }
        let spec = drive_spec(workload, &self.bench.plan.procedure, inputs);
        let client = &database.part.client;
        DriveSpec {
            dilation: self.bench.dilation,
            connections: client.connections,
            shares_server_cpu: client.place == ClientPlace::Local,
            server_is_here: true,
            ..spec
        }
    }

    /// What is sampled of the run as a whole; of its only database too, if it has no name.
    fn targets(
        &self,
        databases: &[UnderTest<'_>],
        (datastore, volumes): (&SharedDatastore, &[MountedVolume]),
        (gauge, generator): (&DriverGauge, &dyn LoadGenerator),
    ) -> Targets {
        let only = match databases {
            [only] if only.log.database.is_empty() => Some(only),
            _ => None,
        };
        let (here, driver) = (std::process::id(), generator.pid());
        let is_elsewhere = |it: &UnderTest<'_>| it.part.client.place == ClientPlace::Local;
        let mut processes = match databases.iter().all(is_elsewhere) {
            // Those of several databases are added with their names.
            true if only.is_none() => vec![("underlay".to_string(), here)],
            true => vec![("driver".to_string(), driver), ("underlay".to_string(), here)],
            false => vec![("driver".to_string(), driver)],
        };
        for database in databases {
            processes.extend(database.server.pid().map(|pid| (database.process(), pid)));
        }
        processes.extend(datastore.lock().unwrap_or_else(PoisonError::into_inner).processes());
        processes.extend(kernel_threads());
        let mut extra: Vec<Box<dyn Sampler>> =
            vec![Box::new(DatastoreSampler::new(Arc::clone(datastore)))];
        // A job counts no time of its own; that of the process is sampled.
        if self.bench.plan.workload.kind.job_sessions().is_none() {
            extra.push(Box::new(DriverSampler::new(gauge.clone(), generator.shape())));
        }
        Targets {
            databases: Vec::new(),
            origin: self.log.origin,
            database: only.map(UnderTest::target),
            processes,
            cgroup: only.and_then(|only| only.cgroup.as_ref()).map(cgroup_target),
            volumes: volume_targets(volumes),
            extra,
        }
    }

    /// What is sampled of one of several databases.
    fn add_samplers(&self, targets: &mut Targets, database: &UnderTest<'_>, load: &Load<'_>) {
        let name = database.log.database;
        if name.is_empty() {
            return;
        }
        let pid = load.generator.pid();
        if pid != std::process::id() {
            targets.processes.push((database.log.recorded("driver"), pid));
        }
        let cgroup = database.cgroup.as_ref().map(cgroup_target);
        targets.databases.push((name.to_string(), database.target(), cgroup));
        // As above, a job counts no time.
        if !load.is_job {
            let shape = load.generator.shape();
            let sampler = DriverSampler::named(database.log, load.gauge.clone(), shape);
            targets.extra.push(Box::new(sampler));
        }
    }
}

/// The loads of databases as one.
fn loads_of<'s>(
    databases: &[UnderTest<'s>],
    sessions: &'s [Box<dyn Session + '_>],
) -> Result<Loads<'s>, Abort> {
    let mut loads = Vec::new();
    for (database, session) in databases.iter().zip(sessions) {
        loads.push(Load {
            database: database.log.database,
            generator: session.load()?,
            is_job: database.bench.plan.is_job(),
            ended: Cell::default(),
            gauge: DriverGauge::default(),
        });
    }
    Ok(Loads::new(loads))
}

/// Positions of the databases that have jobs, with the time at which each was done.
fn jobs_of(loads: &Loads<'_>) -> Vec<(usize, Option<Nanos>)> {
    let jobs = loads.each_load().enumerate().filter(|(_, load)| load.is_job);
    jobs.map(|(position, load)| (position, load.ended.get())).collect()
}

/// Keeps when a job was done, and says if the users were measured without it, or if it was stopped with them.
fn keep_end_of_job(
    log: RunLog<'_>,
    ended: Option<Nanos>,
    measured_to: Nanos,
    observer: &mut dyn Observer,
) -> Result<(), Abort> {
    let Some(ended) = ended else {
        let text = "the job was stopped with the users, before it was done; raise procedure.measure, or make the job \
            smaller";
        return log.find(Severity::Warning, finding::JOB_STOPPED, text, observer);
    };
    log.event(event::JOB_DONE, ended, "the job was done", Value::Null)?;
    if ended >= measured_to {
        return Ok(());
    }
    let text = format!(
        "the job was done {} before the users had been measured; lower procedure.measure, or make the job larger",
        measured_to.saturating_sub(ended)
    );
    log.find(Severity::Warning, finding::JOB_DONE_EARLY, &text, observer)
}

/// A control group as samplers know it.
fn cgroup_target(cgroup: &Cgroup) -> CgroupTarget {
    let paths = cgroup.paths();
    CgroupTarget {
        memory: paths.memory.clone(),
        cpu: paths.cpu.clone(),
        cpuacct: paths.cpuacct.clone(),
        blkio: paths.blkio.clone(),
        unified: paths.unified.clone(),
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
