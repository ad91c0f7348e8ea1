//! A session with a database of whichever engine, and what those of all engines refuse.

use underlay_workload::tpcc::{Identity, Parameters, Profile, Tpcc, Transaction};

use super::{Mode, Outcome};
use crate::error::SessionError;
use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// One connection with everything prepared.
pub enum Session {
    /// With a PostgreSQL.
    Postgres(Box<postgres::tpcc::Session>),
    /// With a MariaDB or MySQL.
    Mariadb(Box<mariadb::tpcc::Session>),
}

impl Session {
    /// Connects and prepares everything that transactions need.
    ///
    /// Refuses a database whose population is not that of `parameters` and this version.
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
        Ok(match target.engine {
            Engine::Postgresql => Session::Postgres(Box::new(
                postgres::tpcc::Session::connect_for(target, workload, mode).await?,
            )),
            Engine::Mariadb => Session::Mariadb(Box::new(
                mariadb::tpcc::Session::connect_for(target, workload, mode).await?,
            )),
        })
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        match self {
            Session::Postgres(session) => session.run(transaction).await,
            Session::Mariadb(session) => session.run(transaction).await,
        }
    }
}

/// Refuses a profile that a mode cannot have.
pub(crate) fn require_mode(workload: &Tpcc, mode: Mode) -> Result<(), SessionError> {
    if mode == Mode::Statements && workload.profile != Profile::Specification {
        return Err(SessionError::refusal(&format!(
            "the profile {} draws lines in the database: use procedures, not statements",
            workload.profile
        )));
    }
    Ok(())
}

/// There is no marker.
pub(crate) fn no_population() -> SessionError {
    SessionError::refusal("the database holds no population that underlay made; load one")
}

/// Compares what the marker says, the population's identity and whether it is complete, with the identity that is wanted.
pub(crate) fn require_population(
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
            "the population has the identity {found}, the workload needs {wanted}: other warehouses, seed, \
             entropy or version; drop it and load it again"
        )));
    }
    Ok(())
}
