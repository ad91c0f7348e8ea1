//! A session: one connection that carries out transactions of TPC-C.
//!
//! It neither retries nor reconnects: it reports what happened, classified, and the driver decides. After an error the
//! session rolls back what is open before its next transaction; after [`crate::ErrorClass::ConnectionLost`] it must be
//! replaced.

use underlay_workload::tpcc::{Identity, Parameters, Profile, Tpcc, Transaction};

use super::failure::Failure;
use super::procedures::Procedures;
use super::sql::{dialect, identity};
use super::statements::{Arrays, Returning};
use super::{Mode, Outcome};
use crate::connection::Connection;
use crate::dispatch::{AnySession, SessionFamily, on_session, open_session};
use crate::error::{CommitState, SessionError};
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// Prepared statements of a session, at most.
const STATEMENTS: usize = 64;

/// One connection with everything prepared.
pub struct Session(AnySession<Family>);

struct Family;

impl SessionFamily for Family {
    type Of<C: Connection> = EngineSession<C>;
}

impl Session {
    /// Connects and prepares everything that transactions need.
    ///
    /// Refuses a database whose population or functions are not those of `parameters` and this version: what it would measure
    /// is not what the workload's identity says.
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
        Ok(Session(open_session!(
            target.engine, C => EngineSession::<C>::connect(target, workload, mode).await
        )))
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        on_session!(&mut self.0, session => session.run(transaction).await)
    }

    /// The number that the server's host gave to the process or thread that works for this session.
    pub async fn server_task(&mut self) -> Result<u32, SessionError> {
        Ok(on_session!(&mut self.0, session => session.connection.server_task().await)?)
    }
}

struct EngineSession<C: Connection> {
    connection: C,
    transactions: Transactions<C>,
    /// A transaction may have been left open: by an error, or by a caller who stopped waiting.
    dirty: bool,
    /// The connection ended, or is in an unknown state.
    lost: bool,
}

/// How transactions reach the server.
enum Transactions<C: Connection> {
    Procedures(Procedures<C>),
    Returning(Box<Returning<C>>),
    Arrays(Box<Arrays<C>>),
}

impl<C: Connection + SchemaOwner> EngineSession<C> {
    async fn connect(
        target: &Target,
        workload: &Tpcc,
        mode: Mode,
    ) -> Result<EngineSession<C>, SessionError> {
        require_mode(workload, mode)?;
        let target = C::with_database(target, WorkloadTables::Tpcc);
        let mut connection = match C::connect(&target, STATEMENTS).await {
            Err(error) if error.is_absent() => return Err(no_population()),
            connection => connection?,
        };
        let marker = C::table(WorkloadTables::Tpcc, WorkloadTables::Tpcc.marker());
        let marker = connection.marker(&format!("SELECT identity, complete FROM {marker}")).await?;
        let wanted = identity(C::ENGINE, &workload.parameters, Mode::Procedures);
        require_population(&marker.ok_or_else(no_population)?, &wanted)?;
        // Later: a plan without scans of whole tables would be compiled for the marker.
        connection.run(dialect(C::ENGINE).settings).await?;
        let transactions = match mode {
            Mode::Procedures => {
                Transactions::Procedures(Procedures::prepare(&mut connection, workload).await?)
            }
            Mode::Statements if C::HAS_RETURNING => {
                Transactions::Returning(Box::new(Returning::prepare(&mut connection).await?))
            }
            Mode::Statements => {
                Transactions::Arrays(Box::new(Arrays::prepare(&mut connection).await?))
            }
        };
        connection.end_preparation().await?;
        Ok(EngineSession { connection, transactions, dirty: false, lost: false })
    }
}

impl<C: Connection> EngineSession<C> {
    async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.lost {
            return Err(SessionError::lost_before());
        }
        self.attempt(transaction).await.map_err(|failure| {
            self.lost = failure.error.is_fatal();
            failure.error.into_session_error(failure.commit)
        })
    }

    async fn attempt(&mut self, transaction: &Transaction) -> Result<Outcome, Failure> {
        if self.dirty {
            let undone = self.connection.query(b"ROLLBACK").await;
            undone.map_err(|error| Failure { error, commit: CommitState::NotSent })?;
        }
        // A procedure that ends in an error leaves its transaction open too. A function does not.
        let is_call = matches!(self.transactions, Transactions::Procedures(_));
        self.dirty = !(is_call && C::CALLS_COMMIT_THEMSELVES);
        let connection = &mut self.connection;
        let outcome = match &self.transactions {
            Transactions::Procedures(procedures) => procedures.run(connection, transaction).await,
            Transactions::Returning(statements) => statements.run(connection, transaction).await,
            Transactions::Arrays(statements) => statements.run(connection, transaction).await,
        }?;
        self.dirty = false;
        Ok(outcome)
    }
}

/// Refuses a profile that a mode cannot have.
fn require_mode(workload: &Tpcc, mode: Mode) -> Result<(), SessionError> {
    if mode == Mode::Statements && workload.profile != Profile::Specification {
        return Err(SessionError::refusal(&format!(
            "the profile {} draws lines in the database: use procedures, not statements",
            workload.profile
        )));
    }
    Ok(())
}

/// There is no marker.
fn no_population() -> SessionError {
    SessionError::refusal("the database holds no population that underlay made; load one")
}

/// Compares the marker, the population's identity and whether it is complete, with the identity that is wanted.
fn require_population(
    (found, complete): &(String, bool),
    wanted: &Identity,
) -> Result<(), SessionError> {
    if !complete {
        return Err(SessionError::refusal(
            "the population is incomplete; drop it and load it again",
        ));
    }
    if *found != wanted.0 {
        return Err(SessionError::refusal(&format!(
            "the population has identity {found}, but the workload needs {wanted} (different warehouses, seed, \
             entropy or version); drop it and load it again"
        )));
    }
    Ok(())
}
