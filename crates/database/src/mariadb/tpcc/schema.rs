//! The tables in the target's database: their marker, creation and removal.
//!
//! The marker is a table that says that Underlay made the others, and with which parameters. A database
//! with tables but without it is somebody else's: it is neither loaded, nor emptied, nor driven.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use underlay_core::RootSeed;
use underlay_workload::tpcc::population::Table;
use underlay_workload::tpcc::{Entropy, Parameters};

use super::{database_of, procedures_sql, schema_sql, session};
use crate::error::{CommitState, SessionError};
use crate::mariadb::connection::{connect, quoted};
use crate::mariadb::ownership::{release, state};
use crate::schema_ownership::{PlaceClaim, State, WorkloadTables, tpcc_name};
use crate::target::Target;
use crate::tpcc::{Described, MARKER_FORMAT, TpccError};

const MARKER_SQL: &str = "CREATE TABLE underlay_population ( \
    format int NOT NULL, warehouses int NOT NULL, seed bigint NOT NULL, entropy smallint NOT NULL, \
    identity varchar(100) NOT NULL, complete boolean NOT NULL, made_database boolean NOT NULL) ENGINE=InnoDB";

const PROCEDURES: [&str; 5] = ["new_order", "payment", "order_status", "delivery", "stock_level"];

/// Creates database (unless it is there, empty), marker, tables and procedures.
pub(super) async fn create(
    target: &Target,
    parameters: &Parameters,
    identity: &str,
) -> Result<(), TpccError> {
    let (target, database) = database_of(target);
    let mut conn = connect(&target.with_database("")).await?;
    let made_database = match state(&mut conn, &database, WorkloadTables::Tpcc).await? {
        State::Absent => true,
        State::Free => false,
        State::Foreign => return Err(TpccError::Foreign),
        State::Ours => return Err(TpccError::AlreadyLoaded),
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
        "INSERT INTO underlay_population VALUES (?, ?, ?, ?, ?, false, ?)",
        (
            MARKER_FORMAT,
            parameters.warehouses,
            parameters.seed.0.cast_signed(),
            parameters.entropy.percent(),
            identity,
            made_database,
        ),
    )
    .await
    .map_err(refused)?;
    for sql in tables() {
        execute(&mut conn, sql).await?;
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
pub(super) async fn mark_complete(target: &Target) -> Result<(), TpccError> {
    let mut conn = connect(&database_of(target).0).await?;
    execute(&mut conn, "UPDATE underlay_population SET complete = true").await
}

/// What population a database holds.
pub async fn describe(target: &Target) -> Result<Described, TpccError> {
    let (target, database) = database_of(target);
    let mut conn = connect(&target.with_database("")).await?;
    match state(&mut conn, &database, WorkloadTables::Tpcc).await? {
        State::Absent | State::Free => return Err(TpccError::NotLoaded),
        State::Foreign => return Err(TpccError::Foreign),
        State::Ours => {}
    }
    let sql = format!(
        "SELECT format, warehouses, seed, entropy, identity, complete FROM {}.underlay_population",
        quoted(&database)
    );
    let row: Option<(i32, u32, i64, u8, String, bool)> =
        conn.query_first(sql).await.map_err(refused)?;
    let (format, warehouses, seed, entropy, identity, complete) =
        row.ok_or(TpccError::Incomplete)?;
    if format != MARKER_FORMAT {
        return Err(TpccError::OtherFormat { found: format, expected: MARKER_FORMAT });
    }
    if !complete {
        return Err(TpccError::Incomplete);
    }
    let seed = RootSeed(seed.cast_unsigned());
    let parameters = Parameters::new(warehouses, seed, Entropy::new(entropy)?)?;
    Ok(Described { parameters, identity })
}

/// Removes tables and procedures, if Underlay made them, and the database, if it made that.
pub async fn drop_schema(target: &Target) -> Result<(), TpccError> {
    let (target, database) = database_of(target);
    let mut conn = connect(&target.with_database("")).await?;
    match state(&mut conn, &database, WorkloadTables::Tpcc).await? {
        State::Absent | State::Free => return Err(TpccError::NotLoaded),
        State::Foreign => return Err(TpccError::Foreign),
        State::Ours => {}
    }
    let quoted = quoted(&database);
    let sql = format!("SELECT made_database FROM {quoted}.underlay_population");
    let made_database: bool = conn.query_first(sql).await.map_err(refused)?.unwrap_or(false);
    for procedure in PROCEDURES {
        let sql = format!("DROP PROCEDURE IF EXISTS {quoted}.{procedure}_transaction");
        execute(&mut conn, &sql).await?;
    }
    for table in Table::ALL {
        let sql = format!("DROP TABLE IF EXISTS {quoted}.{}", tpcc_name(table));
        execute(&mut conn, &sql).await?;
    }
    // The marker last, so that a removal that was cut short can be repeated.
    execute(&mut conn, &format!("DROP TABLE {quoted}.underlay_population")).await?;
    Ok(release(&mut conn, &database, made_database, PlaceClaim::Release).await?)
}

async fn execute(conn: &mut Conn, sql: &str) -> Result<(), TpccError> {
    conn.query_drop(sql).await.map_err(refused)
}

fn refused(error: mysql_async::Error) -> TpccError {
    SessionError::from_mariadb(&error, CommitState::NotSent).into()
}

#[cfg(test)]
mod tests {
    use super::{PROCEDURES, tables};

    #[test]
    fn texts_are_cut_into_statements() {
        assert_eq!(tables().count(), 9);
        let procedures: Vec<&str> = super::procedures_sql().split("\n$$\n").collect();
        assert_eq!(procedures.len(), PROCEDURES.len());
        for (text, name) in procedures.iter().zip(PROCEDURES) {
            assert!(text.contains(&format!("CREATE PROCEDURE {name}_transaction")), "{name}");
        }
    }
}
