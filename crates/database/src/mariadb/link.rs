//! One connection for transactions: with our own protocol code if possible, otherwise through the client library.
//!
//! Both give the same counts, rows and errors; the direct one costs less processor time. It keeps no list of statements,
//! sends one request at a time and does not reconnect.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Params, Statement, Value};

use super::connection::{connect_with_statements, setup};
use super::direct::{self, Direct, Opened, Parameter, Row, decimal};
use super::error::RequestError;
use crate::connection::Completed;
use crate::error::{CommitState, SessionError};
use crate::target::Target;

/// One connection.
#[derive(Debug)]
pub(super) enum Link {
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

impl Link {
    /// Connects, with room for `statements` prepared statements: the library closes those that it has no room for.
    pub(super) async fn connect(target: &Target, statements: usize) -> Result<Link, SessionError> {
        let failed = |error: Error| SessionError::from_mariadb(&error, CommitState::NotSent);
        match Direct::connect(target).await.map_err(failed)? {
            Opened::Here(direct) => {
                let mut link = Link::Direct(direct);
                for sql in setup(target) {
                    let told = link.query(&sql).await;
                    told.map_err(|error| error.into_session_error(CommitState::NotSent))?;
                }
                Ok(link)
            }
            Opened::NotHere => {
                Ok(Link::Library(connect_with_statements(target, statements).await?))
            }
        }
    }

    /// Prepares a statement.
    pub(super) async fn prepare(&mut self, sql: &str) -> Result<Prepared, RequestError> {
        Ok(match self {
            Link::Direct(direct) => Prepared::Direct(direct.prepare(sql).await?),
            Link::Library(conn) => Prepared::Library(conn.prep(sql).await?),
        })
    }

    /// Carries out a statement of this connection, and shows `look` each of its rows.
    pub(super) async fn rows(
        &mut self,
        statement: &Prepared,
        parameters: &[Parameter<'_>],
        look: &mut dyn FnMut(Row<'_>),
    ) -> Result<Completed, RequestError> {
        match (self, statement) {
            (Link::Direct(direct), Prepared::Direct(statement)) => {
                direct.execute(*statement, parameters, look).await
            }
            (Link::Library(conn), Prepared::Library(statement)) => {
                with_library(conn, statement, parameters, look).await
            }
            _ => unreachable!("a statement is used on the connection that prepared it"),
        }
    }

    /// Carries out a statement that changes a row once for each of `count` rows of values, in their order: as one array where
    /// the server takes such, one by one where not. Returns whether it changed at least one row each time.
    pub(super) async fn change_each(
        &mut self,
        statement: &Prepared,
        count: usize,
        values: &[Parameter<'_>],
    ) -> Result<bool, RequestError> {
        if count == 0 {
            return Ok(true);
        }
        if let (Link::Direct(direct), Prepared::Direct(statement)) = (&mut *self, statement)
            && direct.takes_arrays()
        {
            let completed = direct.execute_array(*statement, values).await?;
            return Ok(completed.changed >= count as u64);
        }
        for row in values.chunks_exact(values.len() / count) {
            if self.rows(statement, row, &mut |_| {}).await?.changed == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Carries out a statement without parameters, and calls `look` with each of its rows, which are texts.
    pub(super) async fn read(
        &mut self,
        sql: &str,
        look: &mut dyn FnMut(Row<'_>),
    ) -> Result<(), RequestError> {
        match self {
            Link::Direct(direct) => direct.query(sql.as_bytes(), look).await.map(drop),
            Link::Library(conn) => {
                let mut answer = conn.query_iter(sql).await?;
                while let Some(row) = answer.next().await? {
                    look(Row::of_library(&row));
                }
                Ok(answer.drop_result().await?)
            }
        }
    }

    /// Carries out a statement without parameters. Its rows, if it has any, are not looked at.
    pub(super) async fn query(&mut self, sql: impl AsRef<[u8]>) -> Result<Completed, RequestError> {
        match self {
            Link::Direct(direct) => direct.query(sql.as_ref(), &mut |_| {}).await,
            Link::Library(conn) => {
                conn.query_drop(sql.as_ref().to_vec()).await?;
                Ok(Completed { changed: conn.affected_rows(), ..Completed::default() })
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Link::Direct(direct) = self {
            direct.quit();
        }
    }
}

async fn with_library(
    conn: &mut Conn,
    statement: &Statement,
    parameters: &[Parameter<'_>],
    look: &mut dyn FnMut(Row<'_>),
) -> Result<Completed, RequestError> {
    let values = match parameters {
        [] => Params::Empty,
        parameters => Params::Positional(parameters.iter().map(value).collect()),
    };
    let mut answer = conn.exec_iter(statement, values).await?;
    let mut completed = Completed::default();
    if answer.columns().is_none_or(|columns| columns.is_empty()) {
        completed.changed = answer.affected_rows();
        completed.last_insert_id = answer.last_insert_id().unwrap_or(0);
    }
    // A call has a result for each of its selects.
    while !answer.is_empty() {
        answer
            .for_each(|row| {
                completed.returned += 1;
                look(Row::of_library(&row));
            })
            .await?;
    }
    answer.drop_result().await?;
    Ok(completed)
}

fn value(parameter: &Parameter<'_>) -> Value {
    match parameter {
        Parameter::Null => Value::NULL,
        Parameter::Int(value) => Value::Int(i64::from(*value)),
        Parameter::Cents(cents) => {
            let (digits, begin) = decimal(*cents);
            Value::Bytes(digits[begin..].to_vec())
        }
        Parameter::Text(text) => Value::Bytes(text.to_vec()),
    }
}
