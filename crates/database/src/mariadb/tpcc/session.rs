//! A session: one connection that carries out transactions of TPC-C.
//!
//! It neither retries nor reconnects: it reports what happened, classified, and the driver decides. After
//! an error the session rolls back what is open before its next transaction; after
//! [`crate::ErrorClass::ConnectionLost`] it must be replaced.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use underlay_workload::tpcc::{Parameters, Profile, Tpcc, Transaction};

use super::procedures::Procedures;
use super::statements::Statements;
use super::{database_of, identity};
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::mariadb::connection::connect;
use crate::target::Target;
use crate::tpcc::{Mode, Outcome};

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

/// Why a request failed.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The client library or the server reported it.
    Mariadb(mysql_async::Error),
    /// There is no row where the workload's tables have one.
    NoRow,
}

impl From<mysql_async::Error> for RequestError {
    fn from(error: mysql_async::Error) -> RequestError {
        RequestError::Mariadb(error)
    }
}

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> SessionError {
        match failure.error {
            RequestError::Mariadb(error) => SessionError::from_mariadb(&error, failure.commit),
            RequestError::NoRow => refusal(
                "a statement found no row where the population has one; check and load it again",
            ),
        }
    }
}

/// One connection with everything prepared.
pub struct Session {
    conn: Conn,
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
        if mode == Mode::Statements && workload.profile != Profile::Specification {
            return Err(refusal(&format!(
                "the profile {} draws lines in the database: use procedures, not statements",
                workload.profile
            )));
        }
        let mut conn = match connect(&database_of(target).0).await {
            // Unknown database.
            Err(error) if error.message.starts_with("error 1049:") => return Err(no_population()),
            conn => conn?,
        };
        for sql in SETTINGS {
            conn.query_drop(sql).await.map_err(not_sent)?;
        }
        require_population(&mut conn, &workload.parameters).await?;
        let kind = match mode {
            Mode::Procedures => {
                Kind::Procedures(Procedures::prepare(&mut conn, workload).await.map_err(not_sent)?)
            }
            Mode::Statements => {
                Kind::Statements(Box::new(Statements::prepare(&mut conn).await.map_err(not_sent)?))
            }
        };
        Ok(Session { conn, kind, dirty: false, lost: false })
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.lost {
            let message = "the session had lost its connection before; open another";
            return Err(SessionError { class: ErrorClass::ConnectionLost, ..refusal(message) });
        }
        self.attempt(transaction).await.map_err(|failure| {
            // After an error of the client library an answer may be half read.
            let is_unread =
                matches!(&failure.error, RequestError::Mariadb(error) if error.is_fatal());
            let error = SessionError::from(failure);
            self.lost = is_unread || error.class == ErrorClass::ConnectionLost;
            error
        })
    }

    async fn attempt(&mut self, transaction: &Transaction) -> Result<Outcome, Failure> {
        if self.dirty {
            self.conn
                .query_drop("ROLLBACK")
                .await
                .map_err(|error| Failure { error: error.into(), commit: CommitState::NotSent })?;
        }
        // A procedure that ends in an error leaves its transaction open too.
        self.dirty = true;
        let outcome = match &self.kind {
            Kind::Procedures(procedures) => procedures.run(&mut self.conn, transaction).await,
            Kind::Statements(statements) => statements.run(&mut self.conn, transaction).await,
        }?;
        self.dirty = false;
        Ok(outcome)
    }
}

/// An error of a request that commits nothing.
fn not_sent(error: mysql_async::Error) -> SessionError {
    SessionError::from_mariadb(&error, CommitState::NotSent)
}

/// An error that neither the server nor the client library raised. Nothing was committed.
fn refusal(message: &str) -> SessionError {
    SessionError {
        class: ErrorClass::Other,
        sqlstate: None,
        message: message.to_string(),
        commit_unknown: false,
    }
}

fn no_population() -> SessionError {
    refusal("the database holds no population that underlay made; load one")
}

/// Compares the marker with the identity that a population of these parameters has.
async fn require_population(conn: &mut Conn, parameters: &Parameters) -> Result<(), SessionError> {
    const NO_SUCH_TABLE: u16 = 1146;
    let marker: Option<(String, bool)> =
        match conn.query_first("SELECT identity, complete FROM underlay_population").await {
            Err(mysql_async::Error::Server(error)) if error.code == NO_SUCH_TABLE => {
                return Err(no_population());
            }
            marker => marker.map_err(not_sent)?,
        };
    let (found, complete) = marker.unwrap_or_default();
    if !complete {
        return Err(refusal("the population is incomplete; drop it and load it again"));
    }
    let wanted = identity(parameters, Mode::Procedures);
    if found != wanted.0 {
        return Err(refusal(&format!(
            "the population has the identity {found}, the workload needs {wanted}: other warehouses, seed, \
             entropy or version; drop it and load it again"
        )));
    }
    Ok(())
}
