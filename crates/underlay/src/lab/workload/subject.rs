//! A workload with its size: how its population is made, how it is driven, and how it is checked. Knows no workload.

use std::time::Instant;

use serde_json::Value;
use tokio::runtime::Runtime;
use underlay_database::managed::{RestoredCopy, Server};
use underlay_database::{Engine, Target};
use underlay_driver::DriveSpec;
use underlay_record::CheckMoment;

use super::checked::Checked;
use super::loaded::{Loaded, Progress};
use crate::lab::abort::Abort;
use crate::lab::client::ClientProcess;
use crate::lab::generator::RunningLoad;
use crate::stop::Stop;

/// The database that a workload uses, and how it is reached.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// For what waits for the database.
    pub runtime: &'a Runtime,
    /// Where it is.
    pub target: &'a Target,
    /// Connections of a load, and of checks that are made side by side.
    pub parallel: usize,
}

/// A workload with its size, as its population is made and told from others.
pub trait Loadable: Sync {
    /// The database that holds its tables in every managed server.
    fn database(&self) -> &'static str;

    /// Its name and size, short and fit for a file name: `tpcc-8w`.
    fn population(&self) -> String;

    /// What tells its population from any other, on this engine.
    fn population_identity(&self, engine: Engine) -> String;

    /// What tells population and transactions from any other, on this engine.
    fn identity(&self, engine: Engine) -> String;

    /// Loads the population. Blocks; called outside of any runtime.
    fn load(
        &self,
        access: Access<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Loaded, Stop>;
}

/// A workload with its size, as it is driven and checked.
pub trait Subject: Loadable {
    /// What loads the server: users that are driven, or a job.
    type Load: RunningLoad<Accounting = Self::Accounting> + Send;
    /// What it keeps of a run.
    type Accounting: Send;
    /// What is known before a run and compared with after it.
    type Before: Send;

    /// What is known before a run of at most `users`.
    fn before(&self, access: Access<'_>, users: u32) -> Result<Self::Before, Stop>;

    /// Makes all checks, after a run also against what it was told. `Before` is for a population that nothing has
    /// changed since its load.
    fn check(
        &self,
        access: Access<'_>,
        moment: CheckMoment,
        run: Option<(&Self::Before, &Self::Accounting)>,
    ) -> Result<Vec<Checked>, Stop>;

    /// Makes the load ready; it begins when users are set. Instants are counted from `origin`.
    fn start(
        &self,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        before: &Self::Before,
    ) -> Result<Self::Load, Stop>;

    /// The same in a process within the server's limits. A job works in the lab's own threads, and its study refuses this.
    fn start_within(
        &self,
        process: ClientProcess<'_>,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        before: &Self::Before,
    ) -> Result<Self::Load, Stop> {
        let _ = (process, spec, target, origin, before);
        Err(Stop::bad_input("a job cannot run within the limits of the server"))
    }

    /// The same with a server that Underlay manages, for what needs more of it than its address.
    fn start_managed(
        &self,
        server: &Server,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        before: &Self::Before,
    ) -> Result<Self::Load, Stop> {
        let _ = server;
        self.start(spec, target, origin, before)
    }

    /// A restored copy of the database, which takes its place after the run, so that it is what is checked.
    fn restored<'a>(&self, accounting: &'a Self::Accounting) -> Option<&'a RestoredCopy> {
        let _ = accounting;
        None
    }

    /// The result of the run, for the record's document of that name, where the headline is not counted: a job's.
    fn outcome(&self, accounting: &Self::Accounting) -> Result<Option<Value>, Abort> {
        let _ = accounting;
        Ok(None)
    }
}
