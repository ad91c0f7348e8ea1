//! An engine's own count of transactions, by its own definition: TPM of different engines are not comparable.

use mysql_async::prelude::Queryable;

use crate::error::{CommitState, SessionError};
use crate::target::Target;
use crate::{Engine, mariadb};

/// The end of getting a session of PostgreSQL ready. A session hands in what it counted when it is next used, or after ten
/// seconds; without this, connecting would be counted among the transactions of a run. Servers before 15 have no such
/// word.
pub(crate) const HAND_IN: &str = "DO $$ BEGIN PERFORM pg_stat_force_next_flush(); \
    EXCEPTION WHEN undefined_function THEN NULL; END $$";

/// What an engine counts as a transaction, for the page that shows the count.
pub const fn definition(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => {
            "PostgreSQL: commits and rollbacks of this database, all sessions, as pg_stat_database counts them, up to \
             a second late (ten, of sessions that fall idle)"
        }
        Engine::Mariadb => {
            "MariaDB: COMMIT and ROLLBACK statements of the whole server, Com_commit and Com_rollback; statements \
             that commit by themselves do not count"
        }
    }
}

/// The transactions that the engine has counted so far.
pub async fn transactions(target: &Target) -> Result<u64, SessionError> {
    match target.engine {
        Engine::Postgresql => {
            let client = target.connect().await?;
            let sql = "SELECT (xact_commit + xact_rollback)::bigint FROM pg_stat_database \
                       WHERE datname = current_database()";
            let count: Result<i64, _> = match client.query_one(sql, &[]).await {
                Ok(row) => row.try_get(0),
                Err(error) => Err(error),
            };
            let count =
                count.map_err(|error| SessionError::from_postgres(&error, CommitState::NotSent))?;
            Ok(count.cast_unsigned())
        }
        Engine::Mariadb => {
            let mut connection = mariadb::connect(target).await?;
            let sql = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_commit', 'Com_rollback')";
            let rows: Vec<(String, String)> = connection
                .query(sql)
                .await
                .map_err(|error| SessionError::from_mariadb(&error, CommitState::NotSent))?;
            // The server writes numbers as text here; a counter that is none counts as 0.
            Ok(rows.iter().filter_map(|(_, count)| count.parse::<u64>().ok()).sum())
        }
    }
}
