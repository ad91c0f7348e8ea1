//! What PostgreSQL does before and after the rows of a load.

use super::connection::PostgresConnection;
use super::settling;
use crate::connection::{Connection, RequestError};
use crate::error::SessionError;
use crate::loading::{Loader, Values};
use crate::parallel::LoadError;
use crate::target::Target;

/// Statistics from 3,000 rows of a table, for all columns: the server would soon repeat it otherwise.
const SMALL_SAMPLE: &str = "SET default_statistics_target = 10";

impl Loader for PostgresConnection {
    // A commit is flushed, whatever the server's default: until it is, no vacuum can mark its rows as visible to all, and the first
    // run would do it instead.
    const LOAD_SETTINGS: &'static [&'static str] = &["SET maintenance_work_mem = '256MB'; \
        SET synchronous_commit = local; SET statement_timeout = 0; SET lock_timeout = 0; \
        SET datestyle = 'ISO'"];
    // There are as many connections as the user wants to be busy: helpers would only compete with them.
    const OWN_TABLE_SETTINGS: &'static [&'static str] =
        &["SET max_parallel_maintenance_workers = 0", SMALL_SAMPLE];

    async fn before_rows(target: &Target, tables: &[String]) -> Result<(), SessionError> {
        settling::leave_alone(target, tables).await
    }

    fn settle<E: LoadError>(
        target: &Target,
        parallel: usize,
        tables: &[String],
        values: Values,
    ) -> Result<(), E> {
        let statistics: &[&str] = if values == Values::Even { &[SMALL_SAMPLE] } else { &[] };
        settling::settle(target, parallel, tables, statistics)
    }

    async fn settle_own(&mut self, table: &str) -> Result<(), RequestError> {
        self.query(format!("VACUUM (FREEZE, ANALYZE) {table}").as_bytes()).await.map(drop)
    }

    async fn checkpoint(&mut self) -> Result<(), RequestError> {
        // Only some roles may ask for it; without it the first run has a little more to write.
        match self.query(b"CHECKPOINT").await {
            Err(error) if error.sqlstate().is_some() => {
                tracing::debug!(error = error.message(), "no checkpoint after the load");
                Ok(())
            }
            done => done.map(drop),
        }
    }

    async fn run_together(&mut self, statements: &[String]) -> Result<(), RequestError> {
        self.query(statements.join(";\n").as_bytes()).await.map(drop)
    }
}
