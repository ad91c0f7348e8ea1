//! The tables, their marker, and their removal.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use underlay_core::RootSeed;
use underlay_workload::sysbench::{Distribution, Parameters, Script};

use super::with_database;
use crate::error::{CommitState, SessionError};
use crate::mariadb::connection::{connect, quoted};
use crate::mariadb::place::require_sight;
use crate::sysbench::{
    BULK_COMMENT, Described, MARKER_FORMAT, SysbenchError, bulk_tables, numbered,
};
use crate::target::Target;

/// One table; `#` stands for its number. Types, defaults and names are those that sysbench gives it; the character
/// set is the server's choice, as there.
pub(super) const TABLE_SQL: &str = "CREATE TABLE sbtest# (id INTEGER NOT NULL AUTO_INCREMENT, \
    k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, \
    PRIMARY KEY (id)) ENGINE=InnoDB";
/// Its secondary key, made after the rows.
pub(super) const KEYS_SQL: &str = "CREATE INDEX k_# ON sbtest# (k)";
const MARKER_SQL: &str = "CREATE TABLE underlay_sysbench (format int NOT NULL, tables_made int NOT NULL, \
    table_size int NOT NULL, seed bigint NOT NULL, distribution varchar(20) NOT NULL, complete boolean NOT NULL, \
    made_database boolean NOT NULL) ENGINE=InnoDB";

enum State {
    /// No such database.
    NoDatabase,
    /// No such tables.
    Absent,
    /// With the first table by name.
    Foreign(String),
    Ours,
}

/// A row of the marker: format, tables, rows of each, seed, distribution, complete.
type Marker = (i32, u32, u32, i64, String, bool);

impl From<mysql_async::Error> for SysbenchError {
    fn from(error: mysql_async::Error) -> SysbenchError {
        SysbenchError::Session(SessionError::from_mariadb(&error, CommitState::NotSent))
    }
}

/// Creates the database, unless it is there, the marker and the tables.
pub(super) async fn create(target: &Target, parameters: &Parameters) -> Result<(), SysbenchError> {
    let (mut conn, database, state) = look(target).await?;
    let made_database = match state {
        State::NoDatabase => true,
        State::Absent => false,
        State::Foreign(table) => return Err(SysbenchError::Foreign { table }),
        State::Ours => return Err(SysbenchError::AlreadyLoaded),
    };
    let quoted = quoted(&database);
    if made_database {
        conn.query_drop(format!("CREATE DATABASE {quoted}")).await?;
    }
    conn.query_drop(format!("USE {quoted}")).await?;
    // Definitions commit one by one: the marker comes first, so that all of them can be dropped.
    conn.query_drop(MARKER_SQL).await?;
    conn.exec_drop(
        "INSERT INTO underlay_sysbench VALUES (?, ?, ?, ?, ?, false, ?)",
        (
            MARKER_FORMAT,
            parameters.tables,
            parameters.table_size,
            parameters.seed.0.cast_signed(),
            parameters.distribution.as_str(),
            made_database,
        ),
    )
    .await?;
    for table in 1..=parameters.tables {
        conn.query_drop(numbered(TABLE_SQL, table)).await?;
    }
    Ok(())
}

/// Says that the load came to its end.
pub(super) async fn mark_complete(target: &Target) -> Result<(), SysbenchError> {
    let mut conn = connect(&with_database(target)).await?;
    Ok(conn.query_drop("UPDATE underlay_sysbench SET complete = true").await?)
}

/// What tables of Underlay's a database holds.
pub async fn describe(target: &Target) -> Result<Described, SysbenchError> {
    let (mut conn, database) = ours(target).await?;
    let sql = format!(
        "SELECT format, tables_made, table_size, seed, distribution, complete FROM {}.underlay_sysbench",
        quoted(&database)
    );
    let marker: Option<Marker> = conn.query_first(sql).await?;
    let (found, tables, table_size, seed, distribution, complete) =
        marker.ok_or(SysbenchError::Incomplete)?;
    if found != MARKER_FORMAT {
        return Err(SysbenchError::OtherFormat { found });
    }
    if !complete {
        return Err(SysbenchError::Incomplete);
    }
    let seed = RootSeed(seed.cast_unsigned());
    let distribution: Distribution = distribution.parse()?;
    let parameters = Parameters::new(tables, table_size, seed, distribution, Script::ReadWrite)?;
    Ok(Described { parameters })
}

/// Removes the tables, if Underlay made them, and the database, if it made that.
pub async fn drop_tables(target: &Target) -> Result<(), SysbenchError> {
    let (mut conn, database) = ours(target).await?;
    let quoted = quoted(&database);
    let marker: Option<(u32, bool)> = conn
        .query_first(format!("SELECT tables_made, made_database FROM {quoted}.underlay_sysbench"))
        .await?;
    let (tables, made_database) = marker.unwrap_or((0, false));
    // Only what a load or a bulk insert of ours made: the marker says how many, the names are fixed.
    for table in 1..=tables {
        conn.query_drop(format!("DROP TABLE IF EXISTS {quoted}.sbtest{table}")).await?;
    }
    drop_bulk(&mut conn, &database).await?;
    // The marker last, so that a removal that was cut short can be repeated.
    conn.query_drop(format!("DROP TABLE {quoted}.underlay_sysbench")).await?;
    // Not when somebody else has put something there meanwhile.
    let sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema = ?";
    if made_database && conn.exec_first::<u64, _, _>(sql, (&database,)).await? == Some(0) {
        conn.query_drop(format!("DROP DATABASE {quoted}")).await?;
    }
    Ok(())
}

/// Removes the tables for bulk inserts that Underlay made, whoever made those beside them; gives their number.
pub async fn drop_bulk_tables(target: &Target) -> Result<u64, SysbenchError> {
    let (mut conn, database, _) = look(target).await?;
    drop_bulk(&mut conn, &database).await
}

async fn drop_bulk(conn: &mut Conn, database: &str) -> Result<u64, SysbenchError> {
    let bulk: Vec<String> = conn
        .exec(
            "SELECT table_name FROM information_schema.tables \
              WHERE table_schema = ? AND table_name REGEXP '^sbtest_bulk[0-9]+$' AND table_comment = ?",
            (database, BULK_COMMENT),
        )
        .await?;
    for table in &bulk {
        conn.query_drop(format!("DROP TABLE {}.{table}", quoted(database))).await?;
    }
    Ok(bulk.len() as u64)
}

/// Gives each of `users` users an empty table for bulk inserts.
pub async fn prepare_bulk(target: &Target, users: u32) -> Result<(), SysbenchError> {
    let mut conn = connect(&with_database(target)).await?;
    let tables = bulk_tables(users);
    let mut others: Vec<String> = conn
        .exec(
            "SELECT table_name FROM information_schema.tables \
              WHERE table_schema = database() AND table_name REGEXP '^sbtest_bulk[0-9]+$' AND table_comment <> ?",
            (BULK_COMMENT,),
        )
        .await?;
    others.sort();
    if let Some(table) = others.into_iter().find(|name| tables.contains(name)) {
        return Err(SysbenchError::ForeignBulk { table });
    }
    for table in tables {
        conn.query_drop(format!(
            "CREATE TABLE IF NOT EXISTS {table} (id INTEGER NOT NULL PRIMARY KEY, \
             k INTEGER DEFAULT 0 NOT NULL) ENGINE=InnoDB COMMENT='{BULK_COMMENT}'"
        ))
        .await?;
        conn.query_drop(format!("TRUNCATE TABLE {table}")).await?;
    }
    Ok(())
}

/// A connection without a database, and the name of that with Underlay's tables.
async fn ours(target: &Target) -> Result<(Conn, String), SysbenchError> {
    match look(target).await? {
        (_, _, State::NoDatabase | State::Absent) => Err(SysbenchError::NotLoaded),
        (_, _, State::Foreign(table)) => Err(SysbenchError::Foreign { table }),
        (conn, database, State::Ours) => Ok((conn, database)),
    }
}

/// A connection without a database, the name of the target's, and what it holds.
async fn look(target: &Target) -> Result<(Conn, String, State), SysbenchError> {
    let database = with_database(target).database;
    let mut conn = connect(&target.with_database("")).await?;
    require_sight(&mut conn, &database, "underlay_sysbench").await?;
    let found: Option<(u64, Option<String>, u64)> = conn
        .exec_first(
            "SELECT (SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?), \
                    (SELECT min(table_name) FROM information_schema.tables \
                      WHERE table_schema = ? AND table_name REGEXP '^sbtest[0-9]+$'), \
                    (SELECT count(*) FROM information_schema.tables \
                      WHERE table_schema = ? AND table_name = 'underlay_sysbench')",
            (&database, &database, &database),
        )
        .await?;
    let state = match found {
        None | Some((0, ..)) => State::NoDatabase,
        Some((.., 1..)) => State::Ours,
        Some((_, Some(table), 0)) => State::Foreign(table),
        Some((_, None, 0)) => State::Absent,
    };
    Ok((conn, database, state))
}
