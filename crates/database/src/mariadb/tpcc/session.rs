//! A session: one connection that carries out transactions of TPC-C.
//!
//! It neither retries nor reconnects: it reports what happened, classified, and the driver decides. After
//! an error the session rolls back what is open before its next transaction; after
//! [`crate::ErrorClass::ConnectionLost`] it must be replaced.

use underlay_workload::tpcc::{Parameters, Tpcc, Transaction};

use super::procedures::Procedures;
use super::statements::Statements;
use super::{database_of, identity};
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::mariadb::error::RequestError;
use crate::mariadb::link::Link;
use crate::target::Target;
use crate::tpcc::{Mode, Outcome, no_population, require_mode, require_population};

/// Prepared statements of a session, at most.
const STATEMENTS: usize = 64;
/// How the server's word begins when the database is not there.
const NO_SUCH_DATABASE: &str = "error 1049:";

/// The settings of a session; part of the workload's identity.
///
/// Text is compared and sent as the tables hold it: otherwise the server would convert it, perhaps a
/// column at a time. For the isolation see `sql/procedures.sql`.
pub(super) const SETTINGS: [&str; 3] = [
    "SET NAMES latin1 COLLATE latin1_bin",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION autocommit = 1, time_zone = '+00:00', group_concat_max_len = 65536, \
     sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
];

/// An error on the way to an [`Outcome`], with what was known of the commit.
pub(super) struct Failure {
    pub error: RequestError,
    pub commit: CommitState,
}

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> SessionError {
        failure.error.into_session_error(failure.commit)
    }
}

/// One connection with everything prepared.
pub struct Session {
    link: Link,
    kind: Kind,
    /// A transaction may have been left open: by an error, or by a caller who stopped waiting.
    dirty: bool,
    /// The connection ended, or is in a state that nobody knows.
    lost: bool,
}

enum Kind {
    Procedures(Procedures),
    Statements(Box<Statements>),
}

impl Session {
    /// Connects and prepares everything that transactions need.
    ///
    /// Refuses a database whose population or procedures are not those of `parameters` and this version:
    /// what it would measure is not what the workload's identity says.
    pub async fn connect(
        target: &Target,
        parameters: &Parameters,
        mode: Mode,
    ) -> Result<Session, SessionError> {
        Session::connect_for(target, &Tpcc::new(*parameters), mode).await
    }

    /// Like [`Session::connect`], for a workload of any profile.
    pub async fn connect_for(
        target: &Target,
        workload: &Tpcc,
        mode: Mode,
    ) -> Result<Session, SessionError> {
        require_mode(workload, mode)?;
        let mut link = match Link::connect(&database_of(target).0, STATEMENTS).await {
            Err(error) if error.message.starts_with(NO_SUCH_DATABASE) => {
                return Err(no_population());
            }
            link => link?,
        };
        for sql in SETTINGS {
            link.query(sql).await.map_err(not_sent)?;
        }
        let marker = link.marker("SELECT identity, complete FROM underlay_population").await;
        let marker = marker.map_err(not_sent)?.ok_or_else(no_population)?;
        require_population(&marker, &identity(&workload.parameters, Mode::Procedures))?;
        let kind = match mode {
            Mode::Procedures => {
                Kind::Procedures(Procedures::prepare(&mut link, workload).await.map_err(not_sent)?)
            }
            Mode::Statements => {
                Kind::Statements(Box::new(Statements::prepare(&mut link).await.map_err(not_sent)?))
            }
        };
        Ok(Session { link, kind, dirty: false, lost: false })
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.lost {
            return Err(SessionError::lost_before());
        }
        self.attempt(transaction).await.map_err(|failure| {
            let is_fatal = failure.error.is_fatal();
            let error = SessionError::from(failure);
            self.lost = is_fatal || error.class == ErrorClass::ConnectionLost;
            error
        })
    }

    async fn attempt(&mut self, transaction: &Transaction) -> Result<Outcome, Failure> {
        if self.dirty {
            let undone = self.link.query("ROLLBACK").await;
            undone.map_err(|error| Failure { error, commit: CommitState::NotSent })?;
        }
        // A procedure that ends in an error leaves its transaction open too.
        self.dirty = true;
        let outcome = match &mut self.kind {
            Kind::Procedures(procedures) => procedures.run(&mut self.link, transaction).await,
            Kind::Statements(statements) => statements.run(&mut self.link, transaction).await,
        }?;
        self.dirty = false;
        Ok(outcome)
    }
}

/// An error of a request that commits nothing.
fn not_sent(error: RequestError) -> SessionError {
    error.into_session_error(CommitState::NotSent)
}
