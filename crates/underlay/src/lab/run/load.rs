//! What happens once the server is up: checks, load, sampling.

use std::sync::{Arc, PoisonError};
use std::time::Duration;
use underlay_database::managed::Server;
use underlay_database::{Engine, Target};
use underlay_datastore::MountedVolume;
use underlay_driver::{Arrivals, DriveSpec, DriveSummary, Pacing};
use underlay_host::Cgroup;
use underlay_record::conventions::document;
use underlay_record::{CheckMoment, PhaseKind};
use underlay_telemetry::{CgroupTarget, Collector, Sampler, Targets, VolumeTarget};

use super::{ActiveRun, Running};
use crate::lab::abort::{Abort, During};
use crate::lab::event::Observer;
use crate::lab::generator::RunningLoad;
use crate::lab::ladder::{Ladder, write_tick};
use crate::lab::phases::Phases;
use crate::lab::recording::TelemetryWriter;
use crate::lab::samplers::{DatastoreSampler, DriverGauge, DriverSampler, SharedDatastore};
use crate::lab::verification::{Verified, verify};
use crate::lab::workload::Subject;

/// Arrivals that may wait during a search: the target, not the queue, shall end a step.
const SEARCH_QUEUE: u32 = 100_000;

impl<S: Subject> ActiveRun<'_, S> {
    pub(super) fn check_before(
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
    pub(super) fn drive(
        &mut self,
        running: Running<'_, '_>,
        phases: &mut Phases<'_>,
        observer: &mut dyn Observer,
    ) -> Result<DriveSummary<S::Accounting>, Abort> {
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
            Some(sessions) => ladder.wait_for_job(sessions, &plan.procedure),
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
        if let Some(outcome) = self.bench.subject.outcome(&summary.accounting)? {
            self.document(document::OUTCOME, &outcome)?;
            // The headline of a job is what it came to, not what its seconds add up to.
            let sessions = self.bench.plan.workload.kind.job_sessions();
            self.rungs.extend(sessions.zip(outcome["value"].as_f64()));
        }
        Ok(summary)
    }

    /// Users of the top of the ladder.
    pub(super) fn users(&self) -> u32 {
        self.bench.plan.procedure.users.last().copied().unwrap_or(1)
    }

    /// Transactions per second of an open loop; 0 of a closed one.
    pub(super) fn first_rate(&self) -> f64 {
        match self.bench.plan.workload.pacing {
            underlay_study::Pacing::Open { rate_per_second, .. } => rate_per_second,
            underlay_study::Pacing::Closed { .. } | underlay_study::Pacing::Job => 0.0,
        }
    }

    pub(super) fn drive_spec(&self) -> DriveSpec {
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

    pub(super) fn targets(
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
                .map(|volume| VolumeTarget {
                    name: volume.name.clone(),
                    place: block_device(volume),
                    owns_device: volume.owns_block_device,
                })
                .collect(),
            extra,
        }
    }
}

/// The kernel's threads, which carry the volumes' I/O: without them that work would count as somebody
/// else's. `None` where process 2 is not their parent, as in a container.
pub(super) fn kernel_threads() -> Option<(String, u32)> {
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
