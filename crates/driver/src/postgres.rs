//! TPC-C on PostgreSQL as the driver's session.

use underlay_database::postgres::tpcc::{Mode, Outcome, Session as TpccSession};
use underlay_database::{SessionError, Target};
use underlay_workload::tpcc::{Parameters, Transaction};

use crate::session::{Connector, Session};

/// Opens TPC-C sessions with one PostgreSQL database.
#[derive(Clone, Debug)]
pub struct Postgres {
    /// The database.
    pub target: Target,
    /// Size and constants of the workload.
    pub parameters: Parameters,
    /// Procedures or single statements.
    pub mode: Mode,
}

impl Connector for Postgres {
    type Session = TpccSession;

    async fn connect(&self) -> Result<TpccSession, SessionError> {
        TpccSession::connect(&self.target, &self.parameters, self.mode).await
    }
}

impl Session for TpccSession {
    async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        TpccSession::run(self, transaction).await
    }
}
