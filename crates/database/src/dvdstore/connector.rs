//! The shop for the load generator, on whichever engine the target speaks.

use std::time::Duration;

use underlay_workload::dvdstore::{DvdStore, Outcome, Transaction};

use super::Session;
use crate::error::SessionError;
use crate::session;
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
}
