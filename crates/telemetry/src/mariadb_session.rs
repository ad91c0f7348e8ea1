//! One connection to the observed MariaDB, for one thread, that survives the server's end.
//!
//! As with PostgreSQL: a query that fails or takes too long closes the connection, the next call opens a
//! new one, not more often than every half second, and nothing is retried.

use crate::source::SampleError;
use crate::sql_session::APPLICATION_NAME;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use std::io;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use underlay_database::{Target, mariadb};

/// Longest time to a new connection.
const CONNECT_DEADLINE: Duration = Duration::from_secs(1);
/// Longest time for a tick's queries; the server gives up at 900 ms.
const QUERY_DEADLINE: Duration = Duration::from_millis(1500);
const STATEMENT_LIMIT: Duration = Duration::from_millis(900);
/// Shortest time between two attempts to connect.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(500);

/// A connection, when there is one.
pub(crate) struct MariadbSession {
    runtime: Runtime,
    target: Target,
    open: Option<Conn>,
    next_attempt: Instant,
    /// Why the latest attempt failed.
    refusal: String,
    /// Counts connections.
    generation: u64,
}

impl MariadbSession {
    /// A session that is not connected yet, in no database: nothing is asked that belongs to one.
    pub(crate) fn new(target: &Target) -> io::Result<MariadbSession> {
        let mut target = target
            .with_database("")
            .with_application_name(APPLICATION_NAME)
            .with_statement_timeout(STATEMENT_LIMIT);
        target.connect_timeout = CONNECT_DEADLINE;
        Ok(MariadbSession {
            runtime: Builder::new_current_thread().enable_all().build()?,
            target,
            open: None,
            next_attempt: Instant::now(),
            refusal: String::new(),
            generation: 0,
        })
    }

    /// Number of the present connection, 0 before the first. Connects if need be.
    pub(crate) fn connected(&mut self) -> Result<u64, SampleError> {
        if self.open.is_none() && Instant::now() >= self.next_attempt {
            self.next_attempt = Instant::now() + ATTEMPT_PAUSE;
            match self.runtime.block_on(open(&self.target)) {
                Ok(conn) => {
                    self.open = Some(conn);
                    self.generation += 1;
                }
                Err(text) => {
                    self.refusal = format!("could not connect to {}: {text}", self.target);
                }
            }
        }
        match self.open {
            Some(_) => Ok(self.generation),
            None => Err(SampleError::Database(self.refusal.clone())),
        }
    }

    /// Runs `work` on the present connection; any failure closes it.
    ///
    /// # Panics
    /// If [`MariadbSession::connected`] did not succeed just before.
    pub(crate) fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>,
    ) -> Result<T, SampleError> {
        let mut conn = self.open.take().expect("the caller connected");
        let outcome =
            self.runtime.block_on(async { timeout(QUERY_DEADLINE, work(&mut conn)).await });
        match outcome {
            Ok(Ok(value)) => {
                self.open = Some(conn);
                Ok(value)
            }
            Ok(Err(error)) => {
                self.close(conn);
                Err(SampleError::Database(error.to_string()))
            }
            Err(_) => {
                self.close(conn);
                Err(SampleError::Database(format!("no answer in {QUERY_DEADLINE:?}")))
            }
        }
    }

    /// A connection takes leave of its server on the runtime that it was opened on.
    fn close(&self, conn: Conn) {
        let _inside = self.runtime.enter();
        drop(conn);
    }
}

impl Drop for MariadbSession {
    fn drop(&mut self) {
        if let Some(conn) = self.open.take() {
            // The server sees the end of the connection however this goes.
            let _ =
                self.runtime.block_on(async { timeout(CONNECT_DEADLINE, conn.disconnect()).await });
        }
    }
}

async fn open(target: &Target) -> Result<Conn, String> {
    let mut conn = mariadb::connect(target).await.map_err(|error| error.to_string())?;
    // These reads take no locks and need no snapshot: each is independent.
    conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        .await
        .map_err(|error| error.to_string())?;
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use super::MariadbSession;
    use underlay_database::Target;

    #[test]
    fn a_server_that_is_not_there_is_an_error_with_its_address() {
        let target = Target::mariadb_socket("/nonexistent/socket".into(), "nobody");
        let mut session = MariadbSession::new(&target).expect("a runtime");
        let error = session.connected().expect_err("nobody listens").to_string();
        assert!(error.contains("nonexistent"), "{error}");
        let second = session.connected().expect_err("too early").to_string();
        assert_eq!(second, error, "no second attempt, the same reason");
    }
}
