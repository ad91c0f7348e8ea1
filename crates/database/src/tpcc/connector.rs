//! TPC-C for the load generator, on whichever engine the target speaks.

use std::time::Duration;

use underlay_workload::tpcc::{HomeWarehouse, Outcome, Parameters, Profile, Tpcc, Transaction};

use super::{Mode, Session};
use crate::connection::Connection;
use crate::dispatch::with_engine;
use crate::error::SessionError;
use crate::session::{self, Commits};
use crate::target::Target;

/// Opens TPC-C sessions with one database.
#[derive(Clone, Debug)]
pub struct TpccConnector {
    target: Target,
    workload: Tpcc,
    mode: Mode,
}

impl TpccConnector {
    /// Sessions with `target`, which holds the population of `parameters`. Acknowledged orders are kept.
    pub fn new(target: Target, parameters: Parameters, mode: Mode) -> TpccConnector {
        TpccConnector { target, workload: Tpcc::new(parameters), mode }
    }

    /// The same with the rules of a profile.
    pub fn with_profile(mut self, profile: Profile) -> TpccConnector {
        self.workload.profile = profile;
        self
    }

    /// The same with home warehouses chosen so.
    pub fn with_home_warehouse(mut self, home_warehouse: HomeWarehouse) -> TpccConnector {
        self.workload.home_warehouse = home_warehouse;
        self
    }
}

impl session::Connector for TpccConnector {
    type Workload = Tpcc;
    type Session = Session;

    fn workload(&self) -> &Tpcc {
        &self.workload
    }

    fn commits(&self, _kind: usize) -> Commits {
        let calls_commit = with_engine!(self.target.engine, C => C::CALLS_COMMIT_THEMSELVES);
        match self.mode {
            Mode::Procedures if calls_commit => Commits::Automatically(1),
            Mode::Procedures | Mode::Statements => Commits::Explicitly,
        }
    }

    fn limit_statements(&mut self, limit: Duration) {
        self.target = self.target.with_statement_timeout(limit);
    }

    async fn connect(&self) -> Result<Session, SessionError> {
        Session::connect_for(&self.target, &self.workload, self.mode).await
    }
}

impl session::Session for Session {
    type Workload = Tpcc;

    async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        Session::run(self, transaction).await
    }

    async fn server_task(&mut self) -> Result<Option<u32>, SessionError> {
        Session::server_task(self).await.map(Some)
    }
}
