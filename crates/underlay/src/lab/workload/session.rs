//! A workload of any kind, as a run sees it: databases of one run may have workloads of different sizes, and the lab's course of
//! a run is written once, not compiled per workload.

use std::time::Instant;

use serde_json::Value;
use underlay_database::Target;
use underlay_database::managed::{RestoredCopy, Server};
use underlay_driver::{DriveSpec, DriveSummary};
use underlay_record::CheckMoment;
use underlay_study::{WorkloadKind, WorkloadPlan};

use super::backup::BackupSubject;
use super::batch::BatchSubject;
use super::checked::Checked;
use super::dvdstore::DvdStoreSubject;
use super::subject::{Access, Loadable, Subject};
use super::sysbench::SysbenchSubject;
use super::tpcc::TpccSubject;
use super::warehouse::WarehouseSubject;
use crate::lab::abort::Abort;
use crate::lab::client::ClientProcess;
use crate::lab::generator::{LoadGenerator, RunningLoad};
use crate::stop::Stop;

/// A workload with its size, whichever it is.
pub trait AnySubject: Loadable {
    /// What it keeps during one run.
    fn session(&self) -> Box<dyn Session + '_>;
}

/// A workload in one run: what was known before, its load, and what that kept.
pub trait Session: Send {
    /// Makes all checks, after the load also against what it was told.
    fn check(&self, access: Access<'_>, moment: CheckMoment) -> Result<Vec<Checked>, Stop>;
    /// Remembers what is known before a run of at most `users`.
    fn look_before(&mut self, access: Access<'_>, users: u32) -> Result<(), Stop>;
    /// Makes the load of `server` ready, in a process within the server's limits if there is one; it begins when users are set.
    /// Instants are counted from `origin`.
    fn start(
        &mut self,
        server: &Server,
        within: Option<ClientProcess<'_>>,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
    ) -> Result<(), Stop>;
    /// The load, between its start and its end.
    fn load(&self) -> Result<&dyn LoadGenerator, Abort>;
    /// Ends the load; nothing new is begun.
    fn stop(&mut self) -> Result<DriveSummary<()>, Abort>;
    /// A restored copy of the database, which takes its place after the run, so that it is what is checked.
    fn restored(&self) -> Option<&RestoredCopy>;
    /// The result of the run, where the headline is not counted: a job's.
    fn outcome(&self) -> Result<Option<Value>, Abort>;
}

/// The workload of a plan that needs a database; `None` of a block load, which needs none.
pub fn subject_of(plan: &WorkloadPlan) -> Result<Option<Box<dyn AnySubject>>, Stop> {
    let seed = plan.seed;
    Ok(Some(match &plan.kind {
        WorkloadKind::Tpcc(kind) => Box::new(TpccSubject::new(kind, seed)?),
        WorkloadKind::Sysbench(kind) => Box::new(SysbenchSubject::new(kind, seed)?),
        WorkloadKind::Dvdstore(kind) => Box::new(DvdStoreSubject::new(kind, seed)),
        WorkloadKind::Batch(kind) => Box::new(BatchSubject::new(kind, seed)),
        WorkloadKind::Warehouse(kind) => Box::new(WarehouseSubject::new(kind, seed)),
        WorkloadKind::Backup(kind) => Box::new(BackupSubject::new(kind, seed)?),
        WorkloadKind::Block(_) => return Ok(None),
    }))
}

impl<S: Subject> AnySubject for S {
    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(SessionOf { subject: self, before: None, load: None, accounting: None })
    }
}

struct SessionOf<'a, S: Subject> {
    subject: &'a S,
    before: Option<S::Before>,
    load: Option<S::Load>,
    accounting: Option<S::Accounting>,
}

impl<S: Subject> SessionOf<'_, S> {
    fn without_load() -> Abort {
        Abort::Failed("the load was not started".to_string())
    }
}

impl<S: Subject> Session for SessionOf<'_, S> {
    fn check(&self, access: Access<'_>, moment: CheckMoment) -> Result<Vec<Checked>, Stop> {
        let known = self.before.as_ref().zip(self.accounting.as_ref());
        self.subject.check(access, moment, known)
    }

    fn look_before(&mut self, access: Access<'_>, users: u32) -> Result<(), Stop> {
        self.before = Some(self.subject.before(access, users)?);
        Ok(())
    }

    fn start(
        &mut self,
        server: &Server,
        within: Option<ClientProcess<'_>>,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
    ) -> Result<(), Stop> {
        let Some(before) = &self.before else {
            return Err(Stop::run_failed("the state of the database before the run is unknown"));
        };
        self.load = Some(match within {
            None => self.subject.start_managed(server, spec, target, origin, before)?,
            Some(process) => self.subject.start_within(process, spec, target, origin, before)?,
        });
        Ok(())
    }

    fn load(&self) -> Result<&dyn LoadGenerator, Abort> {
        self.load.as_ref().map(|load| load as &dyn LoadGenerator).ok_or_else(Self::without_load)
    }

    fn stop(&mut self) -> Result<DriveSummary<()>, Abort> {
        let load = self.load.take().ok_or_else(Self::without_load)?;
        let DriveSummary {
            last_tick,
            totals,
            accounting,
            outages,
            longest_silence,
            commits_unknown,
            delivery,
            commits,
        } = load.stop()?;
        self.accounting = Some(accounting);
        Ok(DriveSummary {
            last_tick,
            totals,
            accounting: (),
            outages,
            longest_silence,
            commits_unknown,
            delivery,
            commits,
        })
    }

    fn restored(&self) -> Option<&RestoredCopy> {
        self.subject.restored(self.accounting.as_ref()?)
    }

    fn outcome(&self) -> Result<Option<Value>, Abort> {
        match &self.accounting {
            Some(accounting) => self.subject.outcome(accounting),
            None => Ok(None),
        }
    }
}
