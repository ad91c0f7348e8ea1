//! One connection of either engine, as far as the warehouse goes: statements, results as text, streams of rows.

use bytes::Bytes;

use super::WarehouseError;
use super::answer::Rows;
use crate::Engine;
use crate::error::SessionError;
use crate::target::Target;

/// A connection.
pub(super) enum Connection {
    Postgres(super::postgres::PostgresConnection),
    Mariadb(super::mariadb::MariadbConnection),
}

impl Connection {
    /// Connects with the server; `is_inside` says whether with the warehouse, which must then be there.
    pub async fn open(target: &Target, is_inside: bool) -> Result<Connection, SessionError> {
        Ok(match target.engine {
            Engine::Postgresql => {
                Connection::Postgres(super::postgres::PostgresConnection::open(target).await?)
            }
            Engine::Mariadb => Connection::Mariadb(
                super::mariadb::MariadbConnection::open(target, is_inside).await?,
            ),
        })
    }

    /// Carries out a statement; `doing` says in an error what it was for.
    pub async fn execute(&mut self, doing: &str, sql: &str) -> Result<(), WarehouseError> {
        self.rows(doing, sql).await.map(drop)
    }

    /// The result of a statement.
    pub async fn rows(&mut self, doing: &str, sql: &str) -> Result<Rows, WarehouseError> {
        let answered = match self {
            Connection::Postgres(connection) => connection.rows(sql).await,
            Connection::Mariadb(connection) => connection.rows(sql).await,
        };
        answered.map_err(|error| WarehouseError::Session { doing: doing.to_string(), error })
    }

    /// Streams rows into a table: tab-separated text, a newline after each row.
    pub async fn stream(
        &mut self,
        table: &str,
        next: &mut (dyn FnMut() -> Option<Bytes> + Send),
    ) -> Result<(), WarehouseError> {
        let streamed = match self {
            Connection::Postgres(connection) => connection.stream(table, next).await,
            Connection::Mariadb(connection) => connection.stream(table, next).await,
        };
        streamed
            .map_err(|error| WarehouseError::Session { doing: format!("loading {table}"), error })
    }
}
