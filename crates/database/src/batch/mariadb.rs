//! Batch insertion on MariaDB and MySQL: a database with the table and its marker.
//!
//! The database is the one that the URL names, `batch` where it names none. It is made where it is not there, and
//! must be empty otherwise.

use std::fmt::Write as _;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use underlay_workload::batch::{
    CHECKORD_BYTES, Claim, Parameters, Row, TEXT_COLUMNS, Text, Verdict, Verifier,
};

use crate::batch::{BatchError, Marker};
use crate::error::{CommitState, SessionError};
use crate::mariadb::connection::{connect, quoted};
use crate::mariadb::ownership::{release, settle, state};
use crate::schema_ownership::{SchemaClaim, State, WorkloadTables};
use crate::target::Target;

const MARKER_SQL: &str = "CREATE TABLE underlay_batch (format int NOT NULL, rows_wanted int NOT NULL, \
    seed bigint NOT NULL, sessions int NOT NULL, mode varchar(20) NOT NULL, is_rollback boolean NOT NULL, \
    is_complete boolean NOT NULL, made_database boolean NOT NULL) ENGINE=InnoDB";
/// The study's table. The moment of the insertion is that of its statement.
const TABLE_SQL: &str = "CREATE TABLE test (rec_num int NOT NULL PRIMARY KEY, `date` char(8), `time` char(8), \
    reff char(10), acc char(10), stock char(6), bs char(1), price char(8), qty char(8), status char(1), \
    owflag char(3), ordrec char(8), firmid char(5), checkord binary(16), branchid char(5), \
    sj datetime DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB";
/// Settings of every session. Rows must be refused, not shortened.
pub(super) const SETTINGS: &[&str] = &[
    "SET NAMES latin1 COLLATE latin1_bin",
    "SET SESSION autocommit = 1, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
];

/// Column names in the order of the generator: number, texts, bytes.
pub(super) fn columns() -> String {
    let texts = TEXT_COLUMNS.map(|(name, _)| format!("`{name}`")).join(", ");
    format!("rec_num, {texts}, checkord")
}

/// A block over rows that it reads from JSON. Nothing in a row is or contains a quote.
pub(super) fn loop_over(rows: &[Row], commits: bool) -> String {
    let mut json = String::new();
    for row in rows {
        let separator = if json.is_empty() { "" } else { "," };
        let _ = write!(json, "{separator}[{}", row.rec_num);
        row.texts.iter().for_each(|text| {
            let _ = write!(json, ",\"{}\"", text.as_str());
        });
        json.push_str(",\"");
        row.checkord.iter().for_each(|byte| {
            let _ = write!(json, "{byte:02x}");
        });
        json.push_str("\"]");
    }
    let texts = TEXT_COLUMNS
        .iter()
        .enumerate()
        .map(|(index, (name, width))| format!(", `{name}` char({width}) PATH '$[{}]'", index + 1));
    let fields = texts.collect::<String>();
    let values = TEXT_COLUMNS.map(|(name, _)| format!("r.`{name}`")).join(", ");
    let commit = if commits { "COMMIT; " } else { "" };
    format!(
        "BEGIN NOT ATOMIC FOR r IN (SELECT * FROM JSON_TABLE('[{json}]', '$[*]' COLUMNS (rec_num int PATH '$[0]'{fields}, \
         checkord char({}) PATH '$[{}]')) AS given) DO \
         INSERT INTO test ({}) VALUES (r.rec_num, {values}, UNHEX(r.checkord)); {commit}END FOR; END",
        2 * CHECKORD_BYTES,
        TEXT_COLUMNS.len() + 1,
        columns()
    )
}

fn database_of(target: &Target) -> String {
    if target.database.is_empty() { "batch".to_string() } else { target.database.clone() }
}

fn refused(error: mysql_async::Error) -> BatchError {
    not_sent(error).into()
}

fn not_sent(error: mysql_async::Error) -> SessionError {
    SessionError::from_mariadb(&error, CommitState::NotSent)
}

async fn execute(conn: &mut Conn, sql: &str) -> Result<(), BatchError> {
    conn.query_drop(sql).await.map_err(refused)
}

/// A connection with the database, which must be ours.
async fn open_ours(target: &Target) -> Result<Conn, BatchError> {
    let mut conn = connect(&target.with_database("")).await?;
    let database = database_of(target);
    match state(&mut conn, &database, WorkloadTables::Batch).await? {
        State::Absent | State::Free => return Err(BatchError::NotThere),
        State::Foreign => return Err(BatchError::Foreign),
        State::Ours => {}
    }
    for &sql in SETTINGS {
        execute(&mut conn, sql).await?;
    }
    execute(&mut conn, &format!("USE {}", quoted(&database))).await?;
    Ok(conn)
}

pub(crate) async fn create(target: &Target, marker: &Marker) -> Result<(), BatchError> {
    let mut conn = connect(&target.with_database("")).await?;
    let database = database_of(target);
    match state(&mut conn, &database, WorkloadTables::Batch).await? {
        State::Absent | State::Free => {}
        State::Foreign => return Err(BatchError::Foreign),
        State::Ours => drop_tables(target, SchemaClaim::Keep).await?,
    }
    let made_database = state(&mut conn, &database, WorkloadTables::Batch).await? == State::Absent;
    let quoted = quoted(&database);
    if made_database {
        execute(
            &mut conn,
            &format!("CREATE DATABASE {quoted} CHARACTER SET latin1 COLLATE latin1_bin"),
        )
        .await?;
    }
    execute(&mut conn, &format!("USE {quoted}")).await?;
    // Definitions commit one by one: the marker comes first, so that all of them can be dropped.
    execute(&mut conn, MARKER_SQL).await?;
    let values = (
        marker.format,
        marker.rows,
        marker.seed,
        marker.sessions,
        &marker.mode,
        marker.is_rollback,
        marker.is_complete,
        made_database,
    );
    conn.exec_drop("INSERT INTO underlay_batch VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        .await
        .map_err(refused)?;
    execute(&mut conn, TABLE_SQL).await
}

pub(crate) async fn mark_complete(target: &Target) -> Result<(), BatchError> {
    let mut conn = open_ours(target).await?;
    execute(&mut conn, "UPDATE underlay_batch SET is_complete = true").await
}

pub(crate) async fn marker(target: &Target) -> Result<Marker, BatchError> {
    let mut conn = open_ours(target).await?;
    let sql = "SELECT format, rows_wanted, seed, sessions, mode, is_rollback, is_complete FROM underlay_batch";
    let row: Option<(i32, i32, i64, i32, String, bool, bool)> =
        conn.query_first(sql).await.map_err(refused)?;
    let (format, rows, seed, sessions, mode, is_rollback, is_complete) =
        row.ok_or_else(|| BatchError::Damaged("it is empty".to_string()))?;
    Ok(Marker { format, rows, seed, sessions, mode, is_rollback, is_complete })
}

pub(crate) async fn drop_schema(target: &Target) -> Result<(), BatchError> {
    drop_tables(target, SchemaClaim::Release).await
}

async fn drop_tables(target: &Target, claim: SchemaClaim) -> Result<(), BatchError> {
    let mut conn = open_ours(target).await?;
    let made: Option<bool> =
        conn.query_first("SELECT made_database FROM underlay_batch").await.map_err(refused)?;
    settle(&mut conn, &database_of(target)).await?;
    execute(&mut conn, "DROP TABLE IF EXISTS test").await?;
    // The marker last, so that a removal that was cut short can be repeated.
    execute(&mut conn, "DROP TABLE underlay_batch").await?;
    let database = database_of(target);
    Ok(release(&mut conn, &database, made == Some(true), claim).await?)
}

pub(crate) async fn verify(
    target: &Target,
    parameters: &Parameters,
    claims: Vec<Claim>,
) -> Result<Verdict, BatchError> {
    let mut conn = open_ours(target).await?;
    let sql = format!("SELECT {} FROM test ORDER BY rec_num", columns());
    let verifier = Verifier::new(*parameters, claims);
    // The binary protocol: text would be converted and parsed for nothing.
    let rows = conn.exec_iter(sql, ()).await.map_err(refused)?;
    let verifier = rows
        .reduce_and_drop(verifier, |mut verifier, row: mysql_async::Row| {
            match read(&row) {
                Some(row) => verifier.row(&row),
                None => verifier
                    .impossible(&format!("a row has no value, or one of a wrong size: {row:?}")),
            }
            verifier
        })
        .await
        .map_err(refused)?;
    Ok(verifier.finish())
}

fn read(row: &mysql_async::Row) -> Option<Row> {
    let mut texts = Vec::with_capacity(TEXT_COLUMNS.len());
    for index in 1..=TEXT_COLUMNS.len() {
        let text: String = row.get_opt(index)?.ok()?;
        texts.push(Text::from_column(&text)?);
    }
    let checkord: Vec<u8> = row.get_opt(TEXT_COLUMNS.len() + 1)?.ok()?;
    Some(Row {
        rec_num: row.get_opt::<u32, _>(0)?.ok()?,
        texts: texts.try_into().ok()?,
        checkord: <[u8; CHECKORD_BYTES]>::try_from(checkord).ok()?,
    })
}

pub(crate) async fn rows_by_server_clock(target: &Target) -> Result<Vec<(u32, u64)>, BatchError> {
    let mut conn = open_ours(target).await?;
    let rows: Vec<(u64, u64)> = conn
        .query("SELECT unix_timestamp(sj) AS second, count(*) FROM test GROUP BY second ORDER BY second")
        .await
        .map_err(refused)?;
    let first = rows.first().map_or(0, |(second, _)| *second);
    Ok(rows.into_iter().map(|(second, n)| ((second - first) as u32, n)).collect())
}
