//! The checks on MariaDB: see [`crate::dvdstore::check`] for what they are.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};
use underlay_workload::dvdstore::{DvdStoreAccounting, Parameters};

use super::database_of;
use super::schema::{execute, refused};
use crate::dvdstore::{CheckResult, DvdStoreError, Reader, Tally, inspect, integer_of, tally_of};
use crate::mariadb::connection::connect;
use crate::target::Target;

/// One state of the database for all statements, and no limit that an account may have for its work.
const BEGIN: [&str; 4] = [
    "SET NAMES latin1 COLLATE latin1_bin",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES' /*M!100100 , max_statement_time = 0 */ \
     /*!50708 , max_execution_time = 0 */",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
];

/// A connection that checks, in a transaction in which everything is of one state.
pub struct CheckConnection(Conn);

impl Reader for CheckConnection {
    async fn read(&mut self, sql: &str, each: &mut dyn FnMut(&[i64])) -> Result<(), DvdStoreError> {
        let mut answer = self.0.query_iter(sql).await.map_err(refused)?;
        while let Some(row) = answer.next().await.map_err(refused)? {
            each(&numbers(&row)?);
        }
        answer.drop_result().await.map_err(refused)
    }
}

/// The columns; statements are sent as text, and so are their answers.
fn numbers(row: &Row) -> Result<Vec<i64>, DvdStoreError> {
    (0..row.len())
        .map(|index| match row.as_ref(index) {
            Some(Value::Bytes(text)) => integer_of(&String::from_utf8_lossy(text)),
            Some(Value::NULL) | None => Ok(0),
            Some(other) => Err(DvdStoreError::NotANumber(format!("{other:?}"))),
        })
        .collect()
}

impl CheckConnection {
    /// Connects, and begins the transaction.
    pub async fn open(target: &Target) -> Result<CheckConnection, DvdStoreError> {
        let target = database_of(&target.with_application_name("underlay-check")).0;
        let mut conn = connect(&target).await?;
        for sql in BEGIN {
            execute(&mut conn, sql).await?;
        }
        Ok(CheckConnection(conn))
    }

    /// Carries out a statement within the transaction, which is never committed.
    pub async fn execute(&mut self, sql: &str) -> Result<(), DvdStoreError> {
        execute(&mut self.0, sql).await
    }

    /// Makes all checks within the transaction.
    pub async fn check(
        &mut self,
        parameters: &Parameters,
        run: Option<(&Tally, &DvdStoreAccounting)>,
    ) -> Result<Vec<CheckResult>, DvdStoreError> {
        inspect(self, parameters, run).await
    }
}

/// Counts what a run changes.
pub async fn tally(target: &Target) -> Result<Tally, DvdStoreError> {
    tally_of(&mut CheckConnection::open(target).await?).await
}

/// Makes all checks; see [`crate::dvdstore::check`].
pub async fn check(
    target: &Target,
    parameters: &Parameters,
    run: Option<(&Tally, &DvdStoreAccounting)>,
) -> Result<Vec<CheckResult>, DvdStoreError> {
    CheckConnection::open(target).await?.check(parameters, run).await
}
