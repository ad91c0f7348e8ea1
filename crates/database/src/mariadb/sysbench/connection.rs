//! The connection of a session: spoken to directly where that is possible, through the client library where it is not.
//!
//! Both give the same counts and the same errors; the direct one costs less processor time. It keeps no list of
//! statements and does not reconnect.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Params, Statement, Value};

use crate::error::{CommitState, SessionError};
use crate::mariadb::connection::{connect_with_statements, setup};
use crate::mariadb::direct::{self, Direct, Opened, Parameter};
use crate::target::Target;

/// One connection.
#[derive(Debug)]
pub(super) enum Connection {
    /// Without the library.
    Direct(Box<Direct>),
    /// With it: the server wants another plugin for authentication.
    Library(Conn),
}

/// A statement of a connection.
#[derive(Clone, Debug)]
pub(super) enum Prepared {
    /// Of a direct one.
    Direct(direct::Prepared),
    /// Of the library.
    Library(Statement),
}

impl Connection {
    /// Connects, with room for `statements` prepared statements: the library closes those that it has no room for.
    pub(super) async fn open(
        target: &Target,
        statements: usize,
    ) -> Result<Connection, SessionError> {
        let failed = |error: Error| SessionError::from_mariadb(&error, CommitState::NotSent);
        match Direct::connect(target).await.map_err(failed)? {
            Opened::Here(mut direct) => {
                for sql in setup(target) {
                    direct.query(&sql).await.map_err(failed)?;
                }
                Ok(Connection::Direct(direct))
            }
            Opened::NotHere => Connection::open_with_library(target, statements).await,
        }
    }

    async fn open_with_library(
        target: &Target,
        statements: usize,
    ) -> Result<Connection, SessionError> {
        Ok(Connection::Library(connect_with_statements(target, statements).await?))
    }

    /// Prepares a statement.
    pub(super) async fn prepare(&mut self, sql: &str) -> Result<Prepared, Error> {
        Ok(match self {
            Connection::Direct(direct) => Prepared::Direct(direct.prepare(sql).await?),
            Connection::Library(conn) => Prepared::Library(conn.prep(sql).await?),
        })
    }

    /// Carries out a statement of this connection; returns the number of rows that it changed or returned.
    pub(super) async fn execute(
        &mut self,
        statement: &Prepared,
        parameters: &[Parameter<'_>],
    ) -> Result<u64, Error> {
        match (self, statement) {
            (Connection::Direct(direct), Prepared::Direct(statement)) => {
                direct.execute(*statement, parameters).await
            }
            (Connection::Library(conn), Prepared::Library(statement)) => {
                let values = parameters.iter().map(value).collect();
                let mut answer = conn.exec_iter(statement, Params::Positional(values)).await?;
                let is_select = answer.columns().is_some_and(|columns| !columns.is_empty());
                let mut returned = 0;
                answer.for_each(|_| returned += 1).await?;
                let changed = answer.affected_rows();
                answer.drop_result().await?;
                Ok(if is_select { returned } else { changed })
            }
            _ => unreachable!("a statement is used on the connection that prepared it"),
        }
    }

    /// Carries out a statement without parameters; returns the number of rows that it changed.
    pub(super) async fn query(&mut self, sql: &str) -> Result<u64, Error> {
        match self {
            Connection::Direct(direct) => direct.query(sql).await,
            Connection::Library(conn) => {
                conn.query_drop(sql).await?;
                Ok(conn.affected_rows())
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Connection::Direct(direct) = self {
            direct.quit();
        }
    }
}

fn value(parameter: &Parameter<'_>) -> Value {
    match parameter {
        Parameter::Int(value) => Value::Int(i64::from(*value)),
        Parameter::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
    }
}
