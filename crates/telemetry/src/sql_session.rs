//! One read-only connection to the observed server, for one thread, that survives the server's end.
//!
//! A query that fails or takes too long closes the connection; the next call opens a new one, not
//! more often than every half second. Nothing is retried: a value that is not there in time is
//! missing. The server's own `statement_timeout` ends a slow query first, so that the deadline here is
//! for a server that is frozen or unreachable.

use crate::source::SampleError;
use std::error::Error as _;
use std::io;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};
use underlay_database::{Target, postgres};

/// How the collector's sessions are named in `pg_stat_activity`, and left out of its counts.
pub(crate) const APPLICATION_NAME: &str = "underlay-telemetry";

/// The database that initdb creates. Benchmarks do not use it.
const MAINTENANCE_DATABASE: &str = "postgres";

/// Longest time to a new connection.
const CONNECT_DEADLINE: Duration = Duration::from_secs(1);
/// Longest time for a tick's queries; the server gives up at 900 ms.
const QUERY_DEADLINE: Duration = Duration::from_millis(1500);
/// Shortest time between two attempts to connect.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(500);

/// Settings of the session. Just-in-time compilation would compile the wide statistics query.
const OPTIONS: &str = "-c statement_timeout=900 -c default_transaction_read_only=on -c jit=off \
                       -c max_parallel_workers_per_gather=0";

/// A connection, when there is one.
pub(crate) struct SqlSession {
    runtime: Runtime,
    /// Where to connect, and where else if the database does not exist or may not be entered.
    target: Target,
    otherwise: Option<Target>,
    open: Option<Open>,
    next_attempt: Instant,
    /// Why the latest attempt failed.
    refusal: String,
    /// Counts connections, to recognise prepared statements of a previous one.
    generation: u64,
}

struct Open {
    client: Client,
    driver: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl SqlSession {
    /// A session in the target's database that is not connected yet.
    pub(crate) fn new(target: &Target) -> io::Result<SqlSession> {
        Ok(SqlSession {
            runtime: Builder::new_current_thread().enable_all().build()?,
            target: target.clone(),
            otherwise: None,
            open: None,
            next_attempt: Instant::now(),
            refusal: String::new(),
            generation: 0,
        })
    }

    /// A session for questions that any database of the server answers: in the maintenance database if
    /// possible, so that its many transactions do not count in the observed one.
    pub(crate) fn aside(target: &Target) -> io::Result<SqlSession> {
        let mut session = SqlSession::new(&target.with_database(MAINTENANCE_DATABASE))?;
        session.otherwise =
            Some(target.clone()).filter(|target| target.database != MAINTENANCE_DATABASE);
        Ok(session)
    }

    /// Number of the present connection, 0 before the first. Connects if need be.
    pub(crate) fn connected(&mut self) -> Result<u64, SampleError> {
        if self.open.is_none() {
            if Instant::now() >= self.next_attempt {
                self.connect();
            }
            if self.open.is_none() {
                return Err(SampleError::Database(self.refusal.clone()));
            }
        }
        Ok(self.generation)
    }

    fn connect(&mut self) {
        self.next_attempt = Instant::now() + ATTEMPT_PAUSE;
        loop {
            match self.attempt() {
                Ok(opened) => {
                    self.open = Some(opened);
                    self.generation += 1;
                    return;
                }
                Err(Refusal::NotThisDatabase(text)) => {
                    self.refuse(&text);
                    match self.otherwise.take() {
                        Some(otherwise) => self.target = otherwise,
                        None => return,
                    }
                }
                Err(Refusal::NotNow(text)) => return self.refuse(&text),
            }
        }
    }

    fn attempt(&self) -> Result<Open, Refusal> {
        let opening = async { timeout(CONNECT_DEADLINE, open(&self.target)).await };
        let late = |_| Err(Refusal::NotNow(format!("no answer in {CONNECT_DEADLINE:?}")));
        self.runtime.block_on(opening).unwrap_or_else(late)
    }

    fn refuse(&mut self, text: &str) {
        self.refusal = format!("could not connect to {}: {text}", self.target);
    }

    /// Runs `work` on the present connection; any failure closes it.
    ///
    /// # Panics
    /// If [`SqlSession::connected`] did not succeed just before.
    pub(crate) fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, SampleError> {
        let client = &self.open.as_ref().expect("the caller connected").client;
        let outcome = self.runtime.block_on(async { timeout(QUERY_DEADLINE, work(client)).await });
        let text = match outcome {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => explain(&error),
            Err(_) => format!("no answer in {QUERY_DEADLINE:?}"),
        };
        self.open = None;
        Err(SampleError::Database(text))
    }
}

/// Why there is no connection.
enum Refusal {
    /// The server answers, but not for this database and login.
    NotThisDatabase(String),
    /// The server does not answer, or asks to come again.
    NotNow(String),
}

/// Answers that another attempt will not change.
const NOT_THIS_DATABASE: [SqlState; 4] = [
    SqlState::INVALID_CATALOG_NAME,
    SqlState::INSUFFICIENT_PRIVILEGE,
    SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
];

async fn open(target: &Target) -> Result<Open, Refusal> {
    let mut config = target.with_application_name(APPLICATION_NAME).config();
    config.options(OPTIONS).connect_timeout(CONNECT_DEADLINE);
    let (client, connection) = postgres::tls::connect(target, &config).await.map_err(|error| {
        let is_final = error.code().is_some_and(|code| NOT_THIS_DATABASE.contains(code));
        let refusal = if is_final { Refusal::NotThisDatabase } else { Refusal::NotNow };
        refusal(explain(&error))
    })?;
    let driver = tokio::spawn(async move {
        // Its error comes back from the client's next call, which reports it.
        let _reported_there = connection.await;
    });
    Ok(Open { client, driver })
}

/// The client's message names only the kind of failure; the server's or kernel's message is in the
/// source.
pub(crate) fn explain(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(database), _) => format!("{} ({})", database.message(), database.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::SqlSession;
    use underlay_database::Target;

    #[test]
    fn a_server_that_is_not_there_is_an_error_with_its_address() {
        let target = Target::unix_socket("/nonexistent/socket".into(), 5999, "nobody");
        let mut session = SqlSession::new(&target).expect("a runtime");
        let error = session.connected().expect_err("nobody listens").to_string();
        assert!(error.contains("nonexistent"), "{error}");
        let second = session.connected().expect_err("too early").to_string();
        assert_eq!(second, error, "no second attempt, the same reason");
    }
}
