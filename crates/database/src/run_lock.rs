//! Which runs of a workload are in progress in a database, so that its tables are not removed during a
//! run.
//!
//! A running load holds a lock of the server by a name that follows from the workload: PostgreSQL's advisory locks are
//! shared among runs, MariaDB's user locks have one holder each, so runs take numbered ones. The server releases them with
//! the session, also when the client is killed: no lock can be left behind. What is deliberately not here: protection from
//! programs that do not use the lock.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio_postgres::Client;

use crate::error::{CommitState, SessionError};
use crate::target::Target;
use crate::{Engine, mariadb};

/// "undl", the first half of PostgreSQL's key; the second is the workload's.
const KEY: i32 = 0x756e_646c;
/// So many runs on the same tables are seen on MariaDB.
const SLOTS: u32 = 16;

/// A session that says that a run is in progress until it is dropped.
pub struct RunLock {
    _session: LockSession,
}

enum LockSession {
    Postgres { _client: Client },
    Mariadb { _conn: Conn },
}

/// Holds the lock of `workload` ("tpcc") in the database of `target`.
pub async fn hold(target: &Target, workload: &str) -> Result<RunLock, SessionError> {
    let _session = match target.engine {
        Engine::Postgresql => {
            let client = target.connect().await?;
            let sql = format!("SELECT pg_advisory_lock_shared({KEY}, {})", key_of(workload));
            client
                .batch_execute(&sql)
                .await
                .map_err(|error| SessionError::from_postgres(&error, CommitState::NotSent))?;
            LockSession::Postgres { _client: client }
        }
        Engine::Mariadb => {
            let mut conn = mariadb::connect(&target.with_database("")).await?;
            for slot in 0..SLOTS {
                let name = name_of(target, workload, slot);
                let sql = "SELECT GET_LOCK(?, 0)";
                let taken: Option<Option<u8>> = conn
                    .exec_first(sql, (name,))
                    .await
                    .map_err(|error| SessionError::from_mariadb(&error, CommitState::NotSent))?;
                if taken.flatten() == Some(1) {
                    break;
                }
            }
            LockSession::Mariadb { _conn: conn }
        }
    };
    Ok(RunLock { _session })
}

/// Whether a run of `workload` is in progress in the database of `target`.
pub async fn is_held(target: &Target, workload: &str) -> Result<bool, SessionError> {
    match target.engine {
        Engine::Postgresql => {
            let client = target.connect().await?;
            let key = key_of(workload);
            let sql = format!(
                "SELECT CASE WHEN pg_try_advisory_lock({KEY}, {key}) \
                 THEN pg_advisory_unlock({KEY}, {key}) ELSE false END"
            );
            let row = client.query_one(&sql, &[]).await;
            let is_free = row
                .and_then(|row| row.try_get::<_, bool>(0))
                .map_err(|error| SessionError::from_postgres(&error, CommitState::NotSent))?;
            Ok(!is_free)
        }
        Engine::Mariadb => {
            let failed = |error| SessionError::from_mariadb(&error, CommitState::NotSent);
            let mut conn = mariadb::connect(&target.with_database("")).await?;
            let mut is_held = false;
            for slot in 0..SLOTS {
                let name = name_of(target, workload, slot);
                let used: Option<Option<u64>> =
                    conn.exec_first("SELECT IS_USED_LOCK(?)", (name,)).await.map_err(failed)?;
                is_held |= used.flatten().is_some();
            }
            conn.disconnect().await.map_err(failed)?;
            Ok(is_held)
        }
    }
}

/// The workload's half of PostgreSQL's key: FNV-1a of its name. Databases have keys of their own.
fn key_of(workload: &str) -> i32 {
    let hash = workload
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.cast_signed()
}

/// The name of a lock of MariaDB, whose locks are the server's. MySQL allows 64 characters.
fn name_of(target: &Target, workload: &str, slot: u32) -> String {
    let database = key_of(&target.database).cast_unsigned();
    format!("underlay-drive-{workload}-{database:08x}-{slot}")
}
