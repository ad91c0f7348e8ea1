//! An engine's own count of transactions, by its own definition. So the TPM of different engines is not
//! comparable.

use mysql_async::prelude::Queryable;

use crate::error::{CommitState, SessionError};
use crate::target::Target;
use crate::{Engine, mariadb};

/// The end of getting a session of PostgreSQL ready. A session hands in what it counted when it is next used, or after ten
/// seconds; without this, connecting would be counted among the transactions of a run. Servers before 15 have no such
/// word.
pub(crate) const HAND_IN: &str = "DO $$ BEGIN PERFORM pg_stat_force_next_flush(); \
    EXCEPTION WHEN undefined_function THEN NULL; END $$";

const OF_POSTGRESQL: &str = "PostgreSQL: commits and rollbacks of this database, all sessions, as pg_stat_database \
     counts them, up to a second late (ten seconds for sessions that become idle)";
const OF_MARIADB: &str = "MariaDB: COMMIT and ROLLBACK statements of the whole server, Com_commit and Com_rollback; statements \
     that commit by themselves do not count";
const OF_STATEMENTS: &str = "MariaDB: statements of the whole server that committed by themselves, Handler_commit; no \
     session sent BEGIN, COMMIT or ROLLBACK in that time";

/// What an engine has counted at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineCount {
    engine: Engine,
    /// Transactions; of MariaDB only those that were ended by a statement.
    transactions: u64,
    /// BEGIN statements, of MariaDB.
    begun: u64,
    /// MariaDB's own commits: one at the end of each statement that used a table, whatever ends its transaction, and one
    /// for each COMMIT. None where a binary log takes part, whose commits are among them.
    commits: Option<u64>,
}

impl EngineCount {
    /// Transactions; of MariaDB those that were ended by a COMMIT or a ROLLBACK.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// The transactions since `earlier`, and what the engine counts as one; none if its counters were reset.
    ///
    /// MariaDB has no counter of statements that commit by themselves. If no session opened or ended a transaction by a
    /// statement, each of its own commits is one. Otherwise statements within transactions are among them, and their number
    /// is unknown.
    pub fn since(&self, earlier: &EngineCount) -> Option<(u64, &'static str)> {
        let ended = self.transactions.checked_sub(earlier.transactions)?;
        let begun = self.begun.checked_sub(earlier.begun)?;
        match self.engine {
            Engine::Postgresql => Some((ended, OF_POSTGRESQL)),
            Engine::Mariadb => {
                let commits = self.commits.zip(earlier.commits);
                let commits = commits.and_then(|(now, then)| now.checked_sub(then));
                Some(match commits {
                    Some(commits) if ended == 0 && begun == 0 && commits > 0 => {
                        (commits, OF_STATEMENTS)
                    }
                    _ => (ended, OF_MARIADB),
                })
            }
        }
    }

    /// What the engine counts, whatever happened meanwhile.
    pub fn definition(&self) -> &'static str {
        match self.engine {
            Engine::Postgresql => OF_POSTGRESQL,
            Engine::Mariadb => OF_MARIADB,
        }
    }
}

/// What the engine has counted so far.
pub async fn count(target: &Target) -> Result<EngineCount, SessionError> {
    let engine = target.engine;
    match engine {
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
            Ok(EngineCount { engine, transactions: count.cast_unsigned(), begun: 0, commits: None })
        }
        Engine::Mariadb => {
            let refused = |error| SessionError::from_mariadb(&error, CommitState::NotSent);
            let mut connection = mariadb::connect(target).await?;
            let is_logged: Option<u64> =
                connection.query_first("SELECT @@log_bin").await.map_err(refused)?;
            let sql = "SHOW GLOBAL STATUS WHERE Variable_name IN \
                       ('Com_commit', 'Com_rollback', 'Com_begin', 'Handler_commit')";
            let rows: Vec<(String, String)> = connection.query(sql).await.map_err(refused)?;
            // The server writes numbers as text here; a counter that is none counts as 0.
            let of = |name: &str| {
                let row = rows.iter().find(|(counter, _)| counter.eq_ignore_ascii_case(name));
                row.and_then(|(_, count)| count.parse::<u64>().ok()).unwrap_or(0)
            };
            Ok(EngineCount {
                engine,
                transactions: of("Com_commit") + of("Com_rollback"),
                begun: of("Com_begin"),
                commits: (is_logged == Some(0)).then(|| of("Handler_commit")),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EngineCount, OF_MARIADB, OF_STATEMENTS};
    use crate::Engine;

    fn mariadb(transactions: u64, begun: u64, commits: Option<u64>) -> EngineCount {
        EngineCount { engine: Engine::Mariadb, transactions, begun, commits }
    }

    #[test]
    fn commits_of_statements_count_only_where_nobody_opened_a_transaction() {
        let then = mariadb(10, 10, Some(100));
        let since = |now: EngineCount| now.since(&then);
        assert_eq!(since(mariadb(10, 10, Some(350))), Some((250, OF_STATEMENTS)));
        assert_eq!(since(mariadb(12, 12, Some(350))), Some((2, OF_MARIADB)));
        // One that is still open.
        assert_eq!(since(mariadb(10, 11, Some(350))), Some((0, OF_MARIADB)));
        // By sessions without autocommit.
        assert_eq!(since(mariadb(15, 10, Some(350))), Some((5, OF_MARIADB)));
        // The binary log commits too.
        assert_eq!(since(mariadb(10, 10, None)), Some((0, OF_MARIADB)));
        assert_eq!(since(mariadb(10, 10, Some(100))), Some((0, OF_MARIADB)));
        // A server that was restarted.
        assert_eq!(since(mariadb(3, 3, Some(900))), None);
    }
}
