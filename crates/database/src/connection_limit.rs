//! How many sessions a server allows a user at once, so that too many are refused before a run instead of failing during
//! it.
//!
//! What is deliberately not here: how many of them other programs use at the moment, because that
//! changes.

use mysql_async::prelude::Queryable;

use crate::error::{CommitState, SessionError};
use crate::target::Target;
use crate::{Engine, mariadb};

/// The server's connections without those that it keeps for others; the database's and the role's limits do not bind
/// superusers. `reserved_connections` came with version 16.
const POSTGRES_SQL: &str = "SELECT CASE WHEN rolsuper THEN current_setting('max_connections')::int ELSE least( \
     current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int \
       - coalesce(current_setting('reserved_connections', true)::int, 0), \
     CASE WHEN datconnlimit >= 0 THEN datconnlimit END, \
     CASE WHEN rolconnlimit >= 0 THEN rolconnlimit END) END \
   FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()";
/// The second is the account's own, or the server's for all accounts; 0 is none.
const MARIADB_SQL: &str = "SELECT @@GLOBAL.max_connections, @@SESSION.max_user_connections";

/// The sessions that the user of `target` may have at once.
pub async fn connection_limit(target: &Target) -> Result<u32, SessionError> {
    match target.engine {
        Engine::Postgresql => {
            let client = target.connect().await?;
            let limit = match client.query_one(POSTGRES_SQL, &[]).await {
                Ok(row) => row.try_get::<_, i32>(0),
                Err(error) => Err(error),
            };
            let limit =
                limit.map_err(|error| SessionError::from_postgres(&error, CommitState::NotSent))?;
            Ok(limit.max(0).cast_unsigned())
        }
        Engine::Mariadb => {
            let failed = |error| SessionError::from_mariadb(&error, CommitState::NotSent);
            let mut conn = mariadb::connect(target).await?;
            let limits: Option<(u32, u32)> = conn.query_first(MARIADB_SQL).await.map_err(failed)?;
            conn.disconnect().await.map_err(failed)?;
            let (all, own) = limits.ok_or_else(SessionError::no_row)?;
            Ok(if own == 0 { all } else { all.min(own) })
        }
    }
}
