//! What the driver needs from a database: to connect, and to run one transaction.

use std::future::Future;

use underlay_database::SessionError;
use underlay_database::postgres::tpcc::Outcome;
use underlay_workload::tpcc::Transaction;

/// A session with a database, used by one user at a time and never moved to another thread.
pub trait Session {
    /// Runs one transaction to its end.
    ///
    /// After an error of any class but [`ConnectionLost`](underlay_database::ErrorClass::ConnectionLost)
    /// the session must be fit for the next transaction. The future may be dropped at any time; the session is
    /// then dropped too.
    fn run(
        &mut self,
        transaction: &Transaction,
    ) -> impl Future<Output = Result<Outcome, SessionError>>;
}

/// Opens sessions. One clone goes to each worker thread.
pub trait Connector: Clone + Send + 'static {
    /// What it opens.
    type Session: Session + 'static;

    /// Opens a session on the current thread's runtime.
    fn connect(&self) -> impl Future<Output = Result<Self::Session, SessionError>>;
}
