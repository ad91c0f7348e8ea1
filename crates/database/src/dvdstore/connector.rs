//! The shop for the load generator, on whichever engine the target speaks.

use std::time::Duration;

use underlay_workload::dvdstore::{DvdStore, Outcome, Step, Transaction};

use super::Session;
use crate::connection::Connection;
use crate::dispatch::with_engine;
use crate::error::SessionError;
use crate::session::{self, Commits};
use crate::target::Target;

/// Opens sessions with one database.
#[derive(Clone, Debug)]
pub struct DvdStoreConnector {
    target: Target,
    workload: DvdStore,
}

impl DvdStoreConnector {
    /// Sessions with `target`, which holds the shop of `workload`.
    pub fn new(target: Target, workload: DvdStore) -> DvdStoreConnector {
        DvdStoreConnector { target, workload }
    }
}

impl session::Connector for DvdStoreConnector {
    type Workload = DvdStore;
    type Session = Session;

    fn workload(&self) -> &DvdStore {
        &self.workload
    }

    fn commits(&self, kind: usize) -> Commits {
        let calls_commit = with_engine!(self.target.engine, C => C::CALLS_COMMIT_THEMSELVES);
        match Step::ALL[kind] {
            // The only step of several statements: a call.
            Step::Purchase if !calls_commit => Commits::Explicitly,
            _ => Commits::Automatically(1),
        }
    }

    fn limit_statements(&mut self, limit: Duration) {
        self.target = self.target.with_statement_timeout(limit);
    }

    async fn connect(&self) -> Result<Session, SessionError> {
        Session::connect(&self.target, &self.workload.parameters).await
    }
}

impl session::Session for Session {
    type Workload = DvdStore;

    async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        Session::run(self, transaction).await
    }

    async fn server_task(&mut self) -> Result<Option<u32>, SessionError> {
        Session::server_task(self).await.map(Some)
    }
}
