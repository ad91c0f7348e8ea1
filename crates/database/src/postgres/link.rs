//! One connection, driven by the task that uses it.
//!
//! The client library separates the client from the connection, which is usually a task of its own: each
//! request then costs two task switches and two wake-ups. A virtual user has one request in flight, so
//! its own task can drive the connection while it waits. It does not pool, reconnect or time out:
//! that is the driver's business.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};

use crate::postgres::tls::{self, MaybeTlsConnection};
use crate::target::Target;
use crate::transaction_counter::HAND_IN;

/// A client and the connection it speaks through.
pub struct Link {
    client: Client,
    connection: MaybeTlsConnection,
}

/// Why a request failed.
#[derive(Debug)]
pub enum RequestError {
    /// The client library or the server reported it.
    Postgres(Error),
    /// The connection had ended before the request was sent.
    NotSent(Error),
    /// There is no row where the workload's tables have one.
    NoRow,
}

impl From<Error> for RequestError {
    fn from(error: Error) -> RequestError {
        RequestError::Postgres(error)
    }
}

impl RequestError {
    /// The server's code, when the server answered.
    pub fn code(&self) -> Option<&SqlState> {
        match self {
            RequestError::Postgres(error) | RequestError::NotSent(error) => error.code(),
            RequestError::NoRow => None,
        }
    }
}

impl Link {
    /// Connects.
    pub async fn connect(target: &Target) -> Result<Link, Error> {
        let (client, connection) = tls::connect(target, &target.config()).await?;
        Ok(Link { client, connection })
    }

    /// Prepares a statement with known parameter types.
    pub async fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Statement, RequestError> {
        drive(&mut self.connection, self.client.prepare_typed(sql, types)).await
    }

    /// The first row of a statement. Returns after the server said that the statement, and the transaction
    /// if it was one by itself, has ended: also when it ended in an error.
    pub async fn row(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, RequestError> {
        let first = first_row(&self.client, statement, parameters);
        drive(&mut self.connection, first).await?.ok_or(RequestError::NoRow)
    }

    /// All rows of a statement.
    pub async fn rows(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, RequestError> {
        drive(&mut self.connection, self.client.query(statement, parameters)).await
    }

    /// Carries out a statement; returns the number of rows it changed.
    pub async fn execute(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, RequestError> {
        drive(&mut self.connection, self.client.execute(statement, parameters)).await
    }

    /// Streams the chunks that `next` gives into a `COPY ... FROM STDIN`. It is asked for a chunk when the
    /// connection has taken the one before.
    pub async fn copy_in(
        &mut self,
        sql: &str,
        mut next: impl FnMut() -> Option<Bytes>,
    ) -> Result<u64, RequestError> {
        let client = &self.client;
        let copy = async {
            let mut sink = pin!(client.copy_in(sql).await?);
            while let Some(chunk) = next() {
                sink.send(chunk).await?;
            }
            sink.finish().await
        };
        drive(&mut self.connection, copy).await
    }

    /// Has the server count now what the session did to get ready. One that cannot counts it later.
    pub async fn hand_in_counts(&mut self) -> Result<(), RequestError> {
        match self.batch(HAND_IN).await {
            Err(error) if error.code().is_some() => Ok(()),
            done => done,
        }
    }

    /// Carries out statements without parameters.
    pub async fn batch(&mut self, sql: &str) -> Result<(), RequestError> {
        drive(&mut self.connection, self.client.batch_execute(sql)).await
    }
}

async fn first_row(
    client: &Client,
    statement: &Statement,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Option<Row>, Error> {
    let mut answer = pin!(client.query_raw(statement, parameters.iter().copied()).await?);
    let mut first = None;
    let mut failure = None;
    loop {
        match answer.next().await {
            Some(Ok(row)) => {
                first.get_or_insert(row);
            }
            // The server reports the error before it undoes the transaction; it is ready only afterwards.
            Some(Err(error)) if failure.is_none() && is_survived(&error) => failure = Some(error),
            Some(Err(error)) => return Err(failure.unwrap_or(error)),
            None => return failure.map_or(Ok(first), Err),
        }
    }
}

/// Whether the server goes on with the connection after this error.
fn is_survived(error: &Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    severity == Some(Severity::Error)
}

/// Polls `request` and the connection together until the request is answered.
async fn drive<T>(
    connection: &mut MaybeTlsConnection,
    request: impl Future<Output = Result<T, Error>>,
) -> Result<T, RequestError> {
    let mut request = pin!(request);
    let mut sent = false;
    poll_fn(|context| {
        // Nobody looked at the connection since the last request: it may have ended meanwhile, and what was
        // never sent cannot have been committed.
        if !sent && let Poll::Ready(Err(reason)) = pin!(&mut *connection).poll(context) {
            return Poll::Ready(Err(RequestError::NotSent(reason)));
        }
        sent = true;
        // The request first: its first poll hands the message to the connection.
        if let Poll::Ready(answer) = request.as_mut().poll(context) {
            return Poll::Ready(answer.map_err(RequestError::Postgres));
        }
        let ended = pin!(&mut *connection).poll(context);
        // What the connection just received is for the request: look before going to sleep.
        let answer = request.as_mut().poll(context);
        match (answer, ended) {
            // An answer "connection closed" says less than the reason that the connection gave.
            (Poll::Ready(Err(closed)), Poll::Ready(Err(reason))) if closed.is_closed() => {
                Poll::Ready(Err(reason.into()))
            }
            (Poll::Ready(answer), _) => Poll::Ready(answer.map_err(RequestError::Postgres)),
            (Poll::Pending, Poll::Ready(Err(reason))) => Poll::Ready(Err(reason.into())),
            // A connection ends without a reason only when its client is gone, and that we hold.
            (Poll::Pending, Poll::Ready(Ok(())) | Poll::Pending) => Poll::Pending,
        }
    })
    .await
}
