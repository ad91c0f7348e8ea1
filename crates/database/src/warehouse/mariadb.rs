//! The warehouse's connection with MariaDB and MySQL: its tables are in the database that the URL names, `warehouse`
//! where it names none.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};
use tokio::sync::mpsc;

use crate::error::{CommitState, SessionError};
use crate::mariadb::connection::connect;
use crate::target::Target;
use crate::warehouse::answer::Rows;

/// A connection.
pub(crate) struct MariadbConnection {
    conn: Conn,
}

/// Quotients with enough digits to tell right from nearly right; rows refused, not shortened.
const SETTINGS: [&str; 3] = [
    "SET NAMES latin1 COLLATE latin1_bin",
    "SET SESSION autocommit = 1, time_zone = '+00:00', div_precision_increment = 10, \
     sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
    "SET SESSION innodb_lock_wait_timeout = 3600 /*M!100100 , max_statement_time = 0 */ \
     /*!50708 , max_execution_time = 0 */",
];

/// The database that holds the warehouse.
pub(crate) fn database_of(target: &Target) -> String {
    if target.database.is_empty() { "warehouse".to_string() } else { target.database.clone() }
}

fn refused(error: mysql_async::Error) -> SessionError {
    SessionError::from_mariadb(&error, CommitState::NotSent)
}

impl MariadbConnection {
    pub async fn open(target: &Target, is_inside: bool) -> Result<MariadbConnection, SessionError> {
        let database = if is_inside { database_of(target) } else { String::new() };
        let mut conn = connect(&target.with_database(&database)).await?;
        for sql in SETTINGS {
            conn.query_drop(sql).await.map_err(refused)?;
        }
        Ok(MariadbConnection { conn })
    }

    pub async fn rows(&mut self, sql: &str) -> Result<Rows, SessionError> {
        let rows: Vec<Row> = self.conn.query(sql).await.map_err(refused)?;
        let cell = |value: Value| match value {
            Value::NULL => None,
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            other => Some(other.as_sql(true)),
        };
        Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(cell).collect()).collect())
    }

    pub async fn stream(
        &mut self,
        table: &str,
        next: &mut (dyn FnMut() -> Option<Bytes> + Send),
    ) -> Result<(), SessionError> {
        // One message is ready while the server takes another.
        let (sender, receiver) = mpsc::channel::<Bytes>(2);
        self.conn.set_infile_handler(async move {
            let chunks = stream::unfold(receiver, |mut receiver| async move {
                receiver.recv().await.map(|chunk| (Ok(chunk), receiver))
            });
            Ok(chunks.boxed())
        });
        let sql = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET latin1 \
             FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n'"
        );
        // Dropping the sender ends the file; a server that refuses drops the receiver, which ends the rows.
        let generate = async move {
            while let Some(chunk) = next() {
                if sender.send(chunk).await.is_err() {
                    return;
                }
            }
        };
        let (loaded, ()) = futures_util::future::join(self.conn.query_drop(sql), generate).await;
        loaded.map_err(refused)
    }
}
