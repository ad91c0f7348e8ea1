//! A session with a database of whichever engine.

use underlay_workload::tpcc::{Parameters, Tpcc, Transaction};

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
