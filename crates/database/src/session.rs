//! Sessions: one connection that runs the transactions of a workload, and how one is opened.
//!
//! An engine implements both for each workload it can carry out; the load generator needs nothing else
//! of it. No method is called through a table: the generator is compiled for each pair of workload and engine.

use std::future::Future;
use std::time::Duration;

use underlay_workload::transactional::Workload;

use crate::error::SessionError;

/// How a session has the transactions of a type committed: what an engine's counters of commits make of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Commits {
    /// The server gets a COMMIT or ROLLBACK, from the session or within a procedure: one for each
    /// transaction.
    Explicitly,
    /// This many statements commit automatically (autocommit).
    Automatically(u32),
}

/// A session with a database, used by one user at a time and never moved to another thread.
pub trait Session {
    /// What it carries out.
    type Workload: Workload;

    /// Runs one transaction to its end.
    ///
    /// After an error of any class but [`ConnectionLost`](crate::ErrorClass::ConnectionLost) the
    /// session must be fit for the next transaction. The future may be dropped at any time; the session
    /// is then dropped too.
    fn run(
        &mut self,
        transaction: &<Self::Workload as Workload>::Transaction,
    ) -> impl Future<Output = Result<<Self::Workload as Workload>::Outcome, SessionError>>;

    /// The number that the server's host gave to the process or thread that works for this session; `None` where
    /// no server is behind it.
    fn server_task(&mut self) -> impl Future<Output = Result<Option<u32>, SessionError>> {
        std::future::ready(Ok(None))
    }
}

/// Opens sessions for one workload. One clone goes to each worker thread.
pub trait Connector: Clone + Send + 'static {
    /// What its sessions carry out.
    type Workload: Workload;
    /// What it opens.
    type Session: Session<Workload = Self::Workload> + 'static;

    /// The workload, with its size and constants.
    fn workload(&self) -> &Self::Workload;

    /// How its sessions have transactions of this type committed, by its index in
    /// [`Shape::types`](underlay_workload::transactional::Shape::types).
    fn commits(&self, kind: usize) -> Commits;

    /// From now on sessions are opened so that the server cancels a statement that takes longer than
    /// `limit`. Where no server is involved there is nothing to do.
    fn limit_statements(&mut self, limit: Duration);

    /// Opens a session on the current thread's runtime.
    fn connect(&self) -> impl Future<Output = Result<Self::Session, SessionError>>;
}
