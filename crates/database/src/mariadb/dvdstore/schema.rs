//! The tables in the target's database: their marker, creation and removal.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use underlay_workload::dvdstore::Parameters;
use underlay_workload::dvdstore::population::Table;

use super::{database_of, procedures_sql, schema_sql, session};
use crate::dvdstore::{Described, DvdStoreError, MARKER_FORMAT, Marker, described};
use crate::error::{CommitState, SessionError};
use crate::mariadb::connection::{connect, quoted};
use crate::mariadb::ownership::{release, state};
use crate::schema_ownership::{PlaceClaim, State, WorkloadTables};
use crate::target::Target;

const MARKER_SQL: &str = "CREATE TABLE underlay_dvdstore ( \
    format int NOT NULL, nominal_kb bigint NOT NULL, seed bigint NOT NULL, identity varchar(100) NOT NULL, \
    complete boolean NOT NULL, made_database boolean NOT NULL) ENGINE=InnoDB";

/// Creates database (unless it is there, empty), marker, tables, procedure and trigger, which the load does not fire.
pub(super) async fn create(
    target: &Target,
    parameters: &Parameters,
    identity: &str,
) -> Result<(), DvdStoreError> {
    let (target, database) = database_of(target);
    let mut conn = connect(&target.with_database("")).await?;
    let made_database = match state(&mut conn, &database, WorkloadTables::Dvdstore).await? {
        State::Absent => true,
        State::Free => false,
        State::Foreign => return Err(DvdStoreError::Foreign),
        State::Ours => return Err(DvdStoreError::AlreadyLoaded),
    };
    let quoted = quoted(&database);
    if made_database {
        let sql = format!("CREATE DATABASE {quoted} CHARACTER SET latin1 COLLATE latin1_bin");
        execute(&mut conn, &sql).await?;
    }
    execute(&mut conn, &format!("USE {quoted}")).await?;
    // Definitions remember under which settings they were made.
    for sql in session::SETTINGS {
        execute(&mut conn, sql).await?;
    }
    // Definitions commit one by one: the marker comes first, so that all of them can be dropped.
    execute(&mut conn, MARKER_SQL).await?;
    conn.exec_drop(
        "INSERT INTO underlay_dvdstore VALUES (?, ?, ?, ?, false, ?)",
        (
            MARKER_FORMAT,
            parameters.size.nominal_kb(),
            parameters.seed.0.cast_signed(),
            identity,
            made_database,
        ),
    )
    .await
    .map_err(refused)?;
    for sql in tables() {
        // A database that was there may have another character set.
        let sql =
            sql.replace("ENGINE=InnoDB", "ENGINE=InnoDB CHARACTER SET latin1 COLLATE latin1_bin");
        execute(&mut conn, &sql).await?;
    }
    for sql in procedures_sql().split("\n$$\n") {
        execute(&mut conn, sql).await?;
    }
    Ok(())
}

/// The statements of the schema, with the remarks before them.
fn tables() -> impl Iterator<Item = &'static str> {
    schema_sql().split(";\n").filter(|text| text.contains("CREATE TABLE"))
}

/// Says that the load came to its end.
pub(super) async fn mark_complete(conn: &mut Conn) -> Result<(), DvdStoreError> {
    execute(conn, "UPDATE underlay_dvdstore SET complete = true").await
}

/// What shop a database holds.
pub async fn describe(target: &Target) -> Result<Described, DvdStoreError> {
    let (target, database) = database_of(target);
    let mut conn = connect(&target.with_database("")).await?;
    require_ours(&mut conn, &database).await?;
    let sql = format!(
        "SELECT format, nominal_kb, seed, identity, complete FROM {}.underlay_dvdstore",
        quoted(&database)
    );
    let marker: Option<Marker> = conn.query_first(sql).await.map_err(refused)?;
    described(marker)
}

/// Removes tables and procedure, if Underlay made them, and the database, if it made that.
pub async fn drop_tables(target: &Target) -> Result<(), DvdStoreError> {
    let (target, database) = database_of(target);
    let mut conn = connect(&target.with_database("")).await?;
    require_ours(&mut conn, &database).await?;
    let quoted = quoted(&database);
    let sql = format!("SELECT made_database FROM {quoted}.underlay_dvdstore");
    let made_database: bool = conn.query_first(sql).await.map_err(refused)?.unwrap_or(false);
    execute(&mut conn, &format!("DROP PROCEDURE IF EXISTS {quoted}.purchase_transaction")).await?;
    // Children before their parents; triggers go with their tables.
    for table in Table::ALL.into_iter().rev().map(Table::as_str).chain(["reorder"]) {
        execute(&mut conn, &format!("DROP TABLE IF EXISTS {quoted}.{table}")).await?;
    }
    // The marker last, so that a removal that was cut short can be repeated.
    execute(&mut conn, &format!("DROP TABLE {quoted}.underlay_dvdstore")).await?;
    Ok(release(&mut conn, &database, made_database, PlaceClaim::Release).await?)
}

async fn require_ours(conn: &mut Conn, database: &str) -> Result<(), DvdStoreError> {
    match state(conn, database, WorkloadTables::Dvdstore).await? {
        State::Absent | State::Free => Err(DvdStoreError::NotLoaded),
        State::Foreign => Err(DvdStoreError::Foreign),
        State::Ours => Ok(()),
    }
}

pub(super) async fn execute(conn: &mut Conn, sql: &str) -> Result<(), DvdStoreError> {
    conn.query_drop(sql).await.map_err(refused)
}

pub(super) fn refused(error: mysql_async::Error) -> DvdStoreError {
    SessionError::from_mariadb(&error, CommitState::NotSent).into()
}

#[cfg(test)]
mod tests {
    use super::{procedures_sql, tables};
    use underlay_workload::dvdstore::population::Table;

    #[test]
    fn texts_are_cut_into_statements() {
        // Those with rows, and the one that begins empty.
        assert_eq!(tables().count(), Table::ALL.len() + 1);
        assert_eq!(procedures_sql().split("\n$$\n").count(), 2);
    }
}
