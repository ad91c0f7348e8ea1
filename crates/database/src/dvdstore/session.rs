//! A session with a shop on whichever engine.

use underlay_workload::dvdstore::{Outcome, Parameters, Transaction};

use crate::error::SessionError;
use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// One connection with everything prepared.
pub enum Session {
    /// With a PostgreSQL.
    Postgres(Box<postgres::dvdstore::Session>),
    /// With a MariaDB or MySQL.
    Mariadb(Box<mariadb::dvdstore::Session>),
}

impl Session {
    /// Connects and prepares everything that transactions need.
    ///
    /// Refuses a database whose shop is not that of `parameters` and this version: what it would measure is not what
    /// the workload's identity says.
    pub async fn connect(
        target: &Target,
        parameters: &Parameters,
    ) -> Result<Session, SessionError> {
        Ok(match target.engine {
            Engine::Postgresql => Session::Postgres(Box::new(
                postgres::dvdstore::Session::connect(target, parameters).await?,
            )),
            Engine::Mariadb => Session::Mariadb(Box::new(
                mariadb::dvdstore::Session::connect(target, parameters).await?,
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
