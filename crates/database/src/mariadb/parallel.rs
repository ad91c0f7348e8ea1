//! Work divided among connections with a thread each, under the settings that suit a load.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::error::{CommitState, SessionError};
use crate::mariadb::connection::connect;
use crate::parallel::{LoadError, spread};
use crate::target::Target;

/// Settings of the loaders' connections. References are by construction, and verified by the checks.
///
/// `unique_checks` stays on: together with `foreign_key_checks = 0`, switching it off makes the server fill an
/// empty table by sorting all of its rows first, which costs it twice the processor time of plain insertion (10.11: 5.7
/// against 2.8 s for 2 million narrow rows, 4.0 against 1.7 s for stock) and keeps all other connections
/// out of the table.
const SETTINGS: &str = "SET SESSION foreign_key_checks = 0, \
    innodb_lock_wait_timeout = 3600 /*M!100100 , max_statement_time = 0 */ /*!50708 , max_execution_time = 0 */";

/// Carries out `work` on each of `items`, the last first, on `parallel` threads with a connection each, which
/// has the `settings` and those of a load. Ends early at the first error.
pub(super) fn in_parallel<T: Send, E: LoadError>(
    target: &Target,
    (parallel, settings): (usize, &[&str]),
    items: Vec<T>,
    work: impl AsyncFn(&mut Conn, &T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    spread((parallel, target.stop), items, async |take| {
        let mut conn = connect(target).await?;
        for sql in settings.iter().chain([&SETTINGS]) {
            execute(&mut conn, sql).await?;
        }
        while let Some(item) = take() {
            work(&mut conn, &item).await?;
        }
        // A courtesy: everything was answered.
        let _ = conn.disconnect().await;
        Ok(())
    })
}

/// Carries out one statement.
pub(super) async fn execute(conn: &mut Conn, sql: &str) -> Result<(), SessionError> {
    conn.query_drop(sql).await.map_err(refused)
}

/// What a server's refusal of something that is not a transaction is.
pub(super) fn refused(error: mysql_async::Error) -> SessionError {
    SessionError::from_mariadb(&error, CommitState::NotSent)
}
