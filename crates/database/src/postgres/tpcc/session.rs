//! A session: one connection that carries out transactions of TPC-C.
//!
//! It neither retries nor reconnects: it reports what happened, classified, and the driver decides. After
//! an error the session rolls back what is open before its next transaction; after
//! [`crate::ErrorClass::ConnectionLost`] it must be replaced.

use tokio_postgres::error::SqlState;
use underlay_workload::tpcc::{Parameters, Tpcc, Transaction};

use super::procedures::Procedures;
use super::statements::Statements;
use super::{Mode, Outcome, identity};
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::postgres::link::{Link, RequestError};
use crate::target::Target;
use crate::tpcc::{no_population, require_mode, require_population};

/// The settings of a session; part of the workload's identity.
///
/// Statements are planned once per session: their plans do not depend on the values, and planning again would
/// be charged to the database. Every access is by a key: a table of a few pages would otherwise be read as
/// a whole, by a plan that stays when old row versions have made it long.
pub(super) const SETTINGS: &str =
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off";

/// An error on the way to an [`Outcome`], with what was known of the commit.
pub(super) struct Failure {
    pub error: RequestError,
    pub commit: CommitState,
}

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> SessionError {
        match failure.error {
            RequestError::Postgres(error) => SessionError::from_postgres(&error, failure.commit),
            RequestError::NotSent(error) => {
                SessionError::from_postgres(&error, CommitState::NotSent)
            }
            RequestError::NoRow => SessionError::no_row(),
        }
    }
}

/// The server's code for the intended rollback; raised by `sql/procedures.sql`.
pub(super) const INVALID_ITEM: &str = "UL001";

/// One connection with everything prepared.
pub struct Session {
    link: Link,
    kind: Kind,
    /// A transaction may have been left open: by an error, or by a caller who stopped waiting.
    dirty: bool,
    /// The connection ended.
    lost: bool,
}

enum Kind {
    Procedures(Procedures),
    Statements(Box<Statements>),
}

impl Session {
    /// Connects and prepares everything that transactions need.
    ///
    /// Refuses a database whose population or functions are not those of `parameters` and this version: what
    /// it would measure is not what the workload's identity says.
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
        let mut link = Link::connect(target).await.map_err(|error| not_sent(error.into()))?;
        let marker = marker(&mut link).await?;
        require_population(&marker, &identity(&workload.parameters, Mode::Procedures))?;
        link.batch(SETTINGS).await.map_err(not_sent)?;
        let kind = match mode {
            Mode::Procedures => {
                Kind::Procedures(Procedures::prepare(&mut link, workload).await.map_err(not_sent)?)
            }
            Mode::Statements => {
                Kind::Statements(Box::new(Statements::prepare(&mut link).await.map_err(not_sent)?))
            }
        };
        link.hand_in_counts().await.map_err(not_sent)?;
        Ok(Session { link, kind, dirty: false, lost: false })
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.lost {
            return Err(SessionError::lost_before());
        }
        let result = self.attempt(transaction).await;
        self.lost = result.as_ref().is_err_and(|error| error.class == ErrorClass::ConnectionLost);
        result
    }

    async fn attempt(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.dirty {
            self.link.batch("ROLLBACK").await.map_err(not_sent)?;
        }
        self.dirty = matches!(self.kind, Kind::Statements(_));
        let outcome = match &self.kind {
            Kind::Procedures(procedures) => procedures.run(&mut self.link, transaction).await,
            Kind::Statements(statements) => statements.run(&mut self.link, transaction).await,
        }?;
        self.dirty = false;
        Ok(outcome)
    }
}

/// An error of a request that commits nothing.
fn not_sent(error: RequestError) -> SessionError {
    Failure { error, commit: CommitState::NotSent }.into()
}

/// What the population's marker says: its identity, and whether it is complete.
async fn marker(link: &mut Link) -> Result<(String, bool), SessionError> {
    let marker = link.prepare("SELECT identity, complete FROM tpcc.underlay_population", &[]).await;
    let marker = match marker {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            return Err(no_population());
        }
        marker => marker.map_err(not_sent)?,
    };
    let rows = link.rows(&marker, &[]).await.map_err(not_sent)?;
    let row = rows.first().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose();
    Ok(row.map_err(not_sent)?.unwrap_or_default())
}

/// Whether the server reported the intended rollback.
pub(super) fn is_intended_rollback(error: &RequestError) -> bool {
    error.code().is_some_and(|code| code.code() == INVALID_ITEM)
}
