//! Batch insertion on PostgreSQL: the schema `batch`, its marker, its rows.

use futures_util::TryStreamExt;
use std::fmt::Write as _;
use std::pin::pin;
use tokio_postgres::Client;
use underlay_workload::batch::{
    CHECKORD_BYTES, Claim, Parameters, Row, TEXT_COLUMNS, Text, Verdict, Verifier,
};

use crate::batch::{BatchError, Marker};
use crate::error::{CommitState, SessionError};
use crate::postgres::ownership::{remove, state};
use crate::schema_ownership::{SchemaClaim, State, WorkloadTables};
use crate::target::Target;

/// The study's table. `clock_timestamp` is the moment of the insertion; `CURRENT_TIMESTAMP` would be that of the
/// transaction's begin, the same for all rows of an explicit transaction.
const SCHEMA_SQL: &str = "CREATE SCHEMA batch; \
    CREATE TABLE batch.underlay_batch (format integer NOT NULL, rows integer NOT NULL, seed bigint NOT NULL, \
      sessions integer NOT NULL, mode text NOT NULL, is_rollback boolean NOT NULL, is_complete boolean NOT NULL); \
    CREATE TABLE batch.test (rec_num integer PRIMARY KEY, date char(8), time char(8), reff char(10), acc char(10), \
      stock char(6), bs char(1), price char(8), qty char(8), status char(1), owflag char(3), ordrec char(8), \
      firmid char(5), checkord bytea, branchid char(5), \
      sj timestamp DEFAULT (clock_timestamp() AT TIME ZONE 'UTC'))";

/// Column names in the order of the generator: number, texts, bytes.
pub(super) fn columns() -> String {
    let texts = TEXT_COLUMNS.map(|(name, _)| name).join(", ");
    format!("rec_num, {texts}, checkord")
}

/// A block over an array of rows. Nothing in a row is or contains a quote, a comma or a parenthesis.
pub(super) fn loop_over(rows: &[Row], commits: bool) -> String {
    let mut array = String::new();
    for row in rows {
        let separator = if array.is_empty() { "" } else { "," };
        let _ = write!(array, "{separator}\"({}", row.rec_num);
        let (branch, others) = row.texts.split_last().expect("a row has texts");
        others.iter().for_each(|text| {
            let _ = write!(array, ",{}", text.as_str());
        });
        array.push_str(",\\\\\\\\x");
        row.checkord.iter().for_each(|byte| {
            let _ = write!(array, "{byte:02x}");
        });
        // The moment of the insertion is not of the row.
        let _ = write!(array, ",{},)\"", branch.as_str());
    }
    let columns = columns();
    let values: Vec<String> = columns.split(", ").map(|column| format!("r.{column}")).collect();
    let commit = if commits { "COMMIT; " } else { "" };
    format!(
        "DO $$ DECLARE r batch.test; BEGIN FOREACH r IN ARRAY '{{{array}}}'::batch.test[] LOOP \
         INSERT INTO batch.test ({columns}) VALUES ({}); {commit}END LOOP; END $$",
        values.join(", ")
    )
}

fn refused(error: tokio_postgres::Error) -> BatchError {
    SessionError::from_postgres(&error, CommitState::NotSent).into()
}

/// Whether there is a table of ours.
async fn is_there(client: &Client) -> Result<bool, BatchError> {
    match state(client, WorkloadTables::Batch).await? {
        State::Absent | State::Free => Ok(false),
        State::Foreign => Err(BatchError::Foreign),
        State::Ours => Ok(true),
    }
}

pub(crate) async fn create(target: &Target, marker: &Marker) -> Result<(), BatchError> {
    let client = target.connect().await?;
    if is_there(&client).await? {
        remove(&client, WorkloadTables::Batch, SchemaClaim::Keep).await?;
    }
    let sql = match state(&client, WorkloadTables::Batch).await? {
        State::Absent => SCHEMA_SQL.to_string(),
        // Given to Underlay, or left by it because there are foreign objects next to its table.
        _ => SCHEMA_SQL.replace("CREATE SCHEMA batch;", ""),
    };
    // One simple query is one transaction: either all of it is there, or nothing is.
    client.batch_execute(&sql).await.map_err(refused)?;
    client
        .execute(
            "INSERT INTO batch.underlay_batch VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[
                &marker.format,
                &marker.rows,
                &marker.seed,
                &marker.sessions,
                &marker.mode,
                &marker.is_rollback,
                &marker.is_complete,
            ],
        )
        .await
        .map_err(refused)?;
    Ok(())
}

pub(crate) async fn mark_complete(target: &Target) -> Result<(), BatchError> {
    let client = target.connect().await?;
    client
        .batch_execute("UPDATE batch.underlay_batch SET is_complete = true")
        .await
        .map_err(refused)
}

pub(crate) async fn marker(target: &Target) -> Result<Marker, BatchError> {
    let client = target.connect().await?;
    if !is_there(&client).await? {
        return Err(BatchError::NotThere);
    }
    let row = client
        .query_opt(
            "SELECT format, rows, seed, sessions, mode, is_rollback, is_complete FROM batch.underlay_batch",
            &[],
        )
        .await
        .map_err(refused)?
        .ok_or_else(|| BatchError::Damaged("it is empty".to_string()))?;
    let read = || {
        Ok::<_, tokio_postgres::Error>(Marker {
            format: row.try_get(0)?,
            rows: row.try_get(1)?,
            seed: row.try_get(2)?,
            sessions: row.try_get(3)?,
            mode: row.try_get(4)?,
            is_rollback: row.try_get(5)?,
            is_complete: row.try_get(6)?,
        })
    };
    read().map_err(refused)
}

pub(crate) async fn drop_schema(target: &Target) -> Result<(), BatchError> {
    let client = target.connect().await?;
    if !is_there(&client).await? {
        return Err(BatchError::NotThere);
    }
    Ok(remove(&client, WorkloadTables::Batch, SchemaClaim::Release).await?)
}

pub(crate) async fn verify(
    target: &Target,
    parameters: &Parameters,
    claims: Vec<Claim>,
) -> Result<Verdict, BatchError> {
    let client = target.connect().await?;
    if !is_there(&client).await? {
        return Err(BatchError::NotThere);
    }
    let sql = format!("SELECT {} FROM batch.test ORDER BY rec_num", columns());
    let none: [&str; 0] = [];
    let mut rows = pin!(client.query_raw(&sql, none).await.map_err(refused)?);
    let mut verifier = Verifier::new(*parameters, claims);
    while let Some(row) = rows.try_next().await.map_err(refused)? {
        match read(&row) {
            Some(row) => verifier.row(&row),
            None => {
                verifier.impossible(&format!("a row has no value, or one of a wrong size: {row:?}"))
            }
        }
    }
    Ok(verifier.finish())
}

fn read(row: &tokio_postgres::Row) -> Option<Row> {
    let rec_num: i32 = row.try_get(0).ok()?;
    let mut texts = Vec::with_capacity(TEXT_COLUMNS.len());
    for index in 1..=TEXT_COLUMNS.len() {
        texts.push(Text::from_column(row.try_get(index).ok()?)?);
    }
    let checkord: &[u8] = row.try_get(TEXT_COLUMNS.len() + 1).ok()?;
    Some(Row {
        rec_num: u32::try_from(rec_num).ok()?,
        texts: texts.try_into().ok()?,
        checkord: <[u8; CHECKORD_BYTES]>::try_from(checkord).ok()?,
    })
}

pub(crate) async fn rows_by_server_clock(target: &Target) -> Result<Vec<(u32, u64)>, BatchError> {
    let client = target.connect().await?;
    let rows = client
        .query(
            "SELECT (second - min(second) OVER ())::integer, n FROM \
             (SELECT floor(extract(epoch FROM sj))::bigint AS second, count(*) AS n FROM batch.test GROUP BY 1) \
             AS t (second, n) ORDER BY 1",
            &[],
        )
        .await
        .map_err(refused)?;
    let second = |row: &tokio_postgres::Row| {
        (row.get::<_, i32>(0).cast_unsigned(), row.get::<_, i64>(1).cast_unsigned())
    };
    Ok(rows.iter().map(second).collect())
}
