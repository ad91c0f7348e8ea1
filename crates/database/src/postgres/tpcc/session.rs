//! A session: one connection that carries out transactions of TPC-C.
//!
//! It neither retries nor reconnects: it reports what happened, classified, and the driver decides. After
//! an error the session rolls back what is open before its next transaction; after
//! [`crate::ErrorClass::ConnectionLost`] it must be replaced.

use tokio_postgres::error::SqlState;
use underlay_workload::tpcc::{Parameters, Transaction};

use super::link::Link;
use super::procedures::Procedures;
use super::statements::Statements;
use super::{Mode, identity};
use crate::error::{CommitState, SessionError};
use crate::target::Target;

/// What a transaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it was committed. `false` only for the intended rollback of 1 % of the new orders.
    pub committed: bool,
    /// The number of the order that a committed New-Order created.
    pub order_id: Option<u32>,
    /// Districts in which a Delivery found no order to deliver.
    pub skipped_deliveries: u32,
}

impl Outcome {
    pub(super) const COMMITTED: Outcome =
        Outcome { committed: true, order_id: None, skipped_deliveries: 0 };
    pub(super) const ROLLED_BACK: Outcome =
        Outcome { committed: false, order_id: None, skipped_deliveries: 0 };
}

/// An error on the way to an [`Outcome`], with what was known of the commit.
pub(super) struct Failure {
    pub error: tokio_postgres::Error,
    pub commit: CommitState,
}

/// The server's code for the intended rollback; raised by `sql/procedures.sql`.
pub(super) const INVALID_ITEM: &str = "UL001";

/// One connection with everything prepared.
pub struct Session {
    link: Link,
    kind: Kind,
    /// An error left a transaction open.
    dirty: bool,
}

enum Kind {
    Procedures(Procedures),
    Statements(Box<Statements>),
}

impl Session {
    /// Connects and prepares everything that transactions need.
    ///
    /// Refuses a database whose population was made with other parameters, by its marker.
    pub async fn connect(
        target: &Target,
        parameters: &Parameters,
        mode: Mode,
    ) -> Result<Session, SessionError> {
        let not_sent = |error: tokio_postgres::Error| {
            SessionError::from_postgres(&error, CommitState::NotSent)
        };
        let mut link = Link::connect(target).await.map_err(not_sent)?;
        // The functions' statements are planned once per session: their plans do not depend on the
        // values, and planning again would be charged to the database.
        link.batch("SET plan_cache_mode = force_generic_plan").await.map_err(not_sent)?;
        let _ = identity(parameters, mode);
        let kind = match mode {
            Mode::Procedures => {
                Kind::Procedures(Procedures::prepare(&mut link).await.map_err(not_sent)?)
            }
            Mode::Statements => {
                Kind::Statements(Box::new(Statements::prepare(&mut link).await.map_err(not_sent)?))
            }
        };
        Ok(Session { link, kind, dirty: false })
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.dirty {
            self.link
                .batch("ROLLBACK")
                .await
                .map_err(|error| SessionError::from_postgres(&error, CommitState::NotSent))?;
            self.dirty = false;
        }
        let result = match &self.kind {
            Kind::Procedures(procedures) => procedures.run(&mut self.link, transaction).await,
            Kind::Statements(statements) => statements.run(&mut self.link, transaction).await,
        };
        result.map_err(|failure| {
            self.dirty = matches!(self.kind, Kind::Statements(_));
            SessionError::from_postgres(&failure.error, failure.commit)
        })
    }
}

/// Whether the server reported the intended rollback.
pub(super) fn is_intended_rollback(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code: &SqlState| code.code() == INVALID_ITEM)
}
