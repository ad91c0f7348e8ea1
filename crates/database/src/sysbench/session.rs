//! A session with a database of whichever engine.

use underlay_workload::sysbench::{Outcome, Transaction};

use crate::error::SessionError;
use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// One connection.
pub enum Session {
    /// With a PostgreSQL.
    Postgres(Box<postgres::sysbench::Session>),
    /// With a MariaDB or MySQL.
    Mariadb(Box<mariadb::sysbench::Session>),
}

impl Session {
    /// Connects, and looks whether the first and the last of `tables` tables are there.
    pub async fn connect(target: &Target, tables: u32) -> Result<Session, SessionError> {
        Ok(match target.engine {
            Engine::Postgresql => Session::Postgres(Box::new(
                postgres::sysbench::Session::connect(target, tables).await?,
            )),
            Engine::Mariadb => Session::Mariadb(Box::new(
                mariadb::sysbench::Session::connect(target, tables).await?,
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
