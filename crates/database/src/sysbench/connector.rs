//! Sysbench's transactions for the load generator, on whichever engine the target speaks.

use std::time::Duration;

use underlay_workload::sysbench::{Outcome, Parameters, Script, Sysbench, Transaction};

use super::Session;
use crate::error::SessionError;
use crate::session::{self, Commits};
use crate::target::Target;

/// Opens sessions with one database.
#[derive(Clone, Debug)]
pub struct SysbenchConnector {
    target: Target,
    workload: Sysbench,
}

impl SysbenchConnector {
    /// Sessions with `target`, which holds the tables of `parameters`.
    pub fn new(target: Target, parameters: Parameters) -> SysbenchConnector {
        SysbenchConnector { target, workload: Sysbench::new(parameters) }
    }
}

impl session::Connector for SysbenchConnector {
    type Workload = Sysbench;
    type Session = Session;

    fn workload(&self) -> &Sysbench {
        &self.workload
    }

    fn commits(&self, kind: usize) -> Commits {
        match Script::ALL[kind].is_explicit() {
            true => Commits::Explicitly,
            false => Commits::Automatically(1),
        }
    }

    fn limit_statements(&mut self, limit: Duration) {
        self.target = self.target.with_statement_timeout(limit);
    }

    async fn connect(&self) -> Result<Session, SessionError> {
        Session::connect(&self.target, self.workload.parameters.tables).await
    }
}

impl session::Session for Session {
    type Workload = Sysbench;

    async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        Session::run(self, transaction).await
    }

    async fn server_task(&mut self) -> Result<Option<u32>, SessionError> {
        Session::server_task(self).await.map(Some)
    }
}
