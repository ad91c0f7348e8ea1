//! Backup and restore cycles in a study: a job. The engine's own programs back up TPC-C's data, which does not change, to
//! the volume `backup`, and restore it to a second place on the volumes of the server.
//!
//! The restored copy of the last cycle takes the database's place when the job is done, so that the checks after the run are made on
//! what was restored.

use serde_json::{Value, json};
use std::cell::Cell;
use std::time::{Duration, Instant};
use underlay_core::{Bytes, Dilation, Nanos, RootSeed};
use underlay_database::managed::{
    BackupReport, BackupTools, RestoredCopy, Server, ServerError, Watch,
};
use underlay_database::tpcc::TableNames;
use underlay_database::{Engine, Target};
use underlay_driver::DriveSpec;
use underlay_record::CheckMoment;
use underlay_study::BackupPlan;
use underlay_workload::backup::{BACKUP, RESTORE, SHAPE};
use underlay_workload::identity::identity_of;

use super::checked::Checked;
use super::loaded::{Loaded, Progress};
use super::subject::{Access, Loadable, Subject};
use super::tpcc::TpccSubject;
use crate::lab::abort::Abort;
use crate::lab::job::{JobProgress, JobRunner};
use crate::stop::Stop;

/// How often a pause looks whether it is to end.
const PAUSE_STEP: Duration = Duration::from_millis(50);
/// What is counted: megabytes.
const MEGABYTE: u64 = 1_000_000;

/// Cycles over a population of some size.
pub struct BackupSubject {
    /// The population, and its checks.
    population: TpccSubject,
    /// How many cycles, and what is in each.
    plan: BackupPlan,
}

/// What the cycles came to.
pub struct Cycles {
    operations: Vec<Operation>,
    /// Of the last cycle that restored.
    copy: Option<RestoredCopy>,
    /// Whether they were stopped before their end.
    is_stopped: bool,
}

/// One backup or restore.
pub struct Operation {
    /// Its type in [`SHAPE`].
    pub kind: usize,
    /// Its cycle, from 1.
    pub cycle: u32,
    /// Since the origin of the run.
    pub begin: Duration,
    /// What it wrote.
    pub bytes: Bytes,
    /// From its begin until what it wrote was durable.
    pub took: Duration,
}

impl Operation {
    fn of(kind: usize, cycle: u32, report: &BackupReport, origin: Instant) -> Operation {
        let begin = report.began.saturating_duration_since(origin);
        Operation { kind, cycle, begin, bytes: report.bytes, took: report.duration }
    }
}

impl BackupSubject {
    /// As the plan has it.
    pub fn new(plan: &BackupPlan, seed: RootSeed) -> Result<BackupSubject, Stop> {
        Ok(BackupSubject { population: TpccSubject::new(&plan.population(), seed)?, plan: *plan })
    }
}

impl Loadable for BackupSubject {
    fn database(&self) -> &'static str {
        self.population.database()
    }

    fn population(&self) -> String {
        self.population.population()
    }

    fn population_identity(&self, engine: Engine) -> String {
        self.population.population_identity(engine)
    }

    fn identity(&self, engine: Engine) -> String {
        let BackupPlan { cycles, pause, restore, bytes_per_second, .. } = self.plan;
        let population = self.population_identity(engine);
        let limit = bytes_per_second.map_or(String::new(), |rate| format!(" {rate}"));
        let numbers = format!("{cycles} {} {restore}{limit}", pause.0);
        identity_of(&["underlay backup 1", &population, &numbers])
    }

    fn load(
        &self,
        access: Access<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Loaded, Stop> {
        self.population.load(access, progress)
    }
}

impl Subject for BackupSubject {
    type Load = JobRunner<Result<Cycles, ServerError>>;
    type Accounting = Option<Result<Cycles, ServerError>>;
    type Before = ();

    fn before(&self, _: Access<'_>, _: u32) -> Result<(), Stop> {
        Ok(())
    }

    fn check(
        &self,
        access: Access<'_>,
        _: CheckMoment,
        _: Option<(&(), &Self::Accounting)>,
    ) -> Result<Vec<Checked>, Stop> {
        // Nothing was changed: after the run everything must be as it was loaded, too.
        let tables = TableNames::of(access.target.engine);
        self.population.check_tables(access, &tables, CheckMoment::Before, None)
    }

    fn start(&self, _: DriveSpec, _: Target, _: Instant, (): &()) -> Result<Self::Load, Stop> {
        Err(Stop::bad_input("backups are only possible of a server that a study manages"))
    }

    fn start_managed(
        &self,
        server: &Server,
        spec: DriveSpec,
        _: Target,
        origin: Instant,
        (): &(),
    ) -> Result<Self::Load, Stop> {
        let (plan, tools) = (in_host_time(self.plan, spec.dilation), server.backup_tools());
        let job = JobRunner::start(&SHAPE, 1, origin, move |progress| {
            carry_out(&tools, &plan, origin, progress)
        });
        job.map_err(|error| Stop::host(format!("could not start a thread: {error}")))
    }

    fn restored<'a>(&self, accounting: &'a Self::Accounting) -> Option<&'a RestoredCopy> {
        accounting.as_ref()?.as_ref().ok()?.copy.as_ref()
    }

    fn outcome(&self, accounting: &Self::Accounting) -> Result<Option<Value>, Abort> {
        match accounting {
            None => Ok(None),
            Some(Err(error)) => Err(Abort::failed("the backups ended early", error)),
            // With the users of other databases; those that were done are results.
            Some(Ok(cycles)) if cycles.is_stopped && cycles.operations.is_empty() => Ok(None),
            Some(Ok(cycles)) => Ok(Some(outcome(&cycles.operations, cycles.is_stopped))),
        }
    }
}

/// A pause and a rate as they are under a dilation.
fn in_host_time(plan: BackupPlan, dilation: Dilation) -> BackupPlan {
    let slower_by = u64::from(dilation.factor());
    BackupPlan {
        pause: dilation.wall(plan.pause),
        bytes_per_second: plan.bytes_per_second.map(|rate| rate / slower_by),
        ..plan
    }
}

/// One cycle after the other, until they are done or to be stopped.
fn carry_out(
    tools: &BackupTools,
    plan: &BackupPlan,
    origin: Instant,
    progress: &JobProgress,
) -> Result<Cycles, ServerError> {
    let mut cycles = Cycles { operations: Vec::new(), copy: None, is_stopped: false };
    let mut last: Option<BackupReport> = None;
    for cycle in 1..=plan.cycles {
        if cycle > 1 && !pause(plan.pause.into(), progress) {
            cycles.is_stopped = true;
            break;
        }
        // The volume has room for one.
        if let Some(backup) = last.take() {
            tools.remove(&backup)?;
        }
        let Some(backup) =
            watched(BACKUP, progress, |watch| tools.take(plan.bytes_per_second, watch))?
        else {
            cycles.is_stopped = true;
            break;
        };
        cycles.operations.push(Operation::of(BACKUP, cycle, &backup, origin));
        if plan.restore {
            // One that is stopped leaves nothing of the copy before it, either.
            cycles.copy = watched(RESTORE, progress, |watch| tools.restore_copy(&backup, watch))?;
            let Some(copy) = &cycles.copy else {
                cycles.is_stopped = true;
                break;
            };
            cycles.operations.push(Operation::of(RESTORE, cycle, &copy.report, origin));
        }
        last = Some(backup);
    }
    Ok(cycles)
}

/// Carries out an operation whose bytes are counted as they are written. `None` when it was stopped.
fn watched<T>(
    kind: usize,
    progress: &JobProgress,
    act: impl FnOnce(&Watch<'_>) -> Result<T, ServerError>,
) -> Result<Option<T>, ServerError> {
    let counted = Cell::new(0);
    let written = |bytes: Bytes| {
        let megabytes = bytes.0 / MEGABYTE;
        // What a program removes again was written all the same.
        let new = megabytes.saturating_sub(counted.get());
        if new > 0 {
            progress.completed(kind, new, None);
            counted.set(megabytes);
        }
    };
    match act(&Watch { stop: &|| progress.is_to_stop(), written: &written }) {
        Ok(done) => Ok(Some(done)),
        Err(ServerError::Stopped { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether it was not to be stopped meanwhile.
fn pause(length: Duration, progress: &JobProgress) -> bool {
    let end = Instant::now() + length;
    loop {
        if progress.is_to_stop() {
            return false;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(PAUSE_STEP));
    }
}

/// The record's document: the rate of all backups together, the same of restores, and each of them.
/// `is_stopped`: before all were done.
pub fn outcome(operations: &[Operation], is_stopped: bool) -> Value {
    let total = |kind: usize| {
        let of_kind = operations.iter().filter(|operation| operation.kind == kind);
        let (mut count, mut bytes, mut took) = (0u32, Bytes::ZERO, Duration::ZERO);
        for operation in of_kind {
            count += 1;
            bytes += operation.bytes;
            took += operation.took;
        }
        let seconds = took.as_secs_f64();
        (count > 0 && seconds > 0.0).then(|| {
            json!({
                "count": count,
                "bytes_per_second": bytes.0 as f64 / seconds,
                "seconds": seconds / f64::from(count),
            })
        })
    };
    let (backup, restore) = (total(BACKUP), total(RESTORE));
    let rate = backup.as_ref().and_then(|backup| backup["bytes_per_second"].as_f64());
    json!({
        "value": rate.map(|rate| rate / MEGABYTE as f64),
        "backup": backup,
        "restore": restore,
        "is_stopped": is_stopped,
        "operations": operations.iter().map(|operation| json!({
            "kind": SHAPE.types[operation.kind],
            "cycle": operation.cycle,
            "begin_ns": Nanos::from(operation.begin).0,
            "end_ns": Nanos::from(operation.begin + operation.took).0,
            "bytes": operation.bytes.0,
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::{BACKUP, Operation, RESTORE, outcome};
    use serde_json::Value;
    use std::time::Duration;
    use underlay_core::Bytes;

    fn operation(kind: usize, cycle: u32, begin_s: u64, megabytes: u64, took_s: u64) -> Operation {
        let (begin, took) = (Duration::from_secs(begin_s), Duration::from_secs(took_s));
        let bytes = Bytes(megabytes * 1_000_000);
        Operation { kind, cycle, begin, bytes, took }
    }

    #[test]
    fn rates_are_those_of_all_bytes_over_all_seconds() {
        let cycles = [
            operation(BACKUP, 1, 0, 600, 1),
            operation(RESTORE, 1, 1, 500, 5),
            operation(BACKUP, 2, 10, 600, 3),
            operation(RESTORE, 2, 13, 500, 5),
        ];
        let said = outcome(&cycles, false);
        // Not the mean of 600 and 200 MB/s: a slow backup has more seconds.
        assert_eq!(said["value"], 300.0);
        assert_eq!(said["backup"]["seconds"], 2.0);
        assert_eq!(said["restore"]["bytes_per_second"], 100e6);
        assert_eq!(said["operations"][3]["kind"], "restore");
        assert_eq!(said["operations"][3]["end_ns"], 18_000_000_000u64);
        let alone = outcome(&cycles[..1], true);
        assert_eq!((&said["is_stopped"], &alone["is_stopped"]), (&false.into(), &true.into()));
        assert_eq!((&alone["restore"], &alone["value"]), (&Value::Null, &Value::from(600.0)));
    }
}
