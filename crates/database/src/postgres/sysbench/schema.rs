//! The tables, their marker, and their removal.

use tokio_postgres::Client;
use underlay_core::RootSeed;
use underlay_workload::sysbench::{Distribution, Parameters, Script};

use crate::error::{CommitState, SessionError};
use crate::sysbench::{
    BULK_COMMENT, Described, MARKER_FORMAT, SysbenchError, bulk_tables, numbered,
};

/// One table; `#` stands for its number. Types, defaults and names are those that sysbench gives it.
pub(super) const TABLE_SQL: &str = "CREATE TABLE sbtest# (id SERIAL NOT NULL, \
    k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL)";
/// Its keys, made after the rows.
pub(super) const KEYS_SQL: &str =
    "ALTER TABLE sbtest# ADD PRIMARY KEY (id); CREATE INDEX k_# ON sbtest# (k)";
const MARKER_SQL: &str = "CREATE TABLE underlay_sysbench (format integer NOT NULL, \
    tables integer NOT NULL, table_size integer NOT NULL, seed bigint NOT NULL, \
    distribution text NOT NULL, complete boolean NOT NULL)";

impl From<tokio_postgres::Error> for SysbenchError {
    fn from(error: tokio_postgres::Error) -> SysbenchError {
        SysbenchError::Session(SessionError::from_postgres(&error, CommitState::NotSent))
    }
}

enum State {
    Absent,
    /// With the first table by name.
    Foreign(String),
    Ours,
}

/// Whose tables there are in the search path.
///
/// # Errors
/// Also when they are in a schema of it that the user may not look into, and when he may not read all of Underlay's.
async fn state(client: &Client) -> Result<State, SysbenchError> {
    let row = client
        .query_one(
            "SELECT (SELECT min(relname::text) FROM pg_class WHERE relname ~ '^sbtest[0-9]+$' \
               AND relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_table_is_visible(oid)), to_regclass('underlay_sysbench') IS NOT NULL, \
             (SELECT min(relname::text) FROM pg_class \
               WHERE (relname ~ '^sbtest[0-9]+$' AND relkind = 'r' OR relname = 'underlay_sysbench') \
                 AND pg_table_is_visible(oid) AND NOT has_table_privilege(oid, 'SELECT')), \
             (SELECT min(nspname::text) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
               WHERE (relname ~ '^sbtest[0-9]+$' OR relname = 'underlay_sysbench') \
                 AND NOT has_schema_privilege(n.oid, 'USAGE') AND nspname = ANY \
                   (SELECT replace(btrim(part, ' \"'), '$user', current_user) \
                      FROM unnest(string_to_array(current_setting('search_path'), ',')) AS part))",
            &[],
        )
        .await?;
    let denied =
        |what: String| Err(SessionError::denial(format!("permission denied for {what}")).into());
    let (unreadable, hidden): (Option<String>, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
    match (row.try_get(0)?, row.try_get(1)?) {
        (_, true) => match unreadable {
            Some(table) => denied(format!("table {table}")),
            None => Ok(State::Ours),
        },
        (Some(table), false) => Ok(State::Foreign(table)),
        (None, false) => match hidden {
            Some(schema) => denied(format!("schema {schema}")),
            None => Ok(State::Absent),
        },
    }
}

/// Creates marker and tables, without keys.
pub(super) async fn create(client: &Client, parameters: &Parameters) -> Result<(), SysbenchError> {
    match state(client).await? {
        State::Absent => {}
        State::Foreign(table) => return Err(SysbenchError::Foreign { table }),
        State::Ours => return Err(SysbenchError::AlreadyLoaded),
    }
    // One simple query is one transaction: either all of it is there, or nothing is.
    let mut sql = format!("{MARKER_SQL};");
    for table in 1..=parameters.tables {
        sql.push_str(&numbered(TABLE_SQL, table));
        sql.push(';');
    }
    client.batch_execute(&sql).await?;
    client
        .execute(
            "INSERT INTO underlay_sysbench VALUES ($1, $2, $3, $4, $5, false)",
            &[
                &MARKER_FORMAT,
                &parameters.tables.cast_signed(),
                &parameters.table_size.cast_signed(),
                &parameters.seed.0.cast_signed(),
                &parameters.distribution.as_str(),
            ],
        )
        .await?;
    Ok(())
}

/// Says that the load came to its end.
pub(super) async fn mark_complete(client: &Client) -> Result<(), SysbenchError> {
    client.execute("UPDATE underlay_sysbench SET complete = true", &[]).await?;
    Ok(())
}

/// What tables of Underlay's a database holds.
pub async fn describe(client: &Client) -> Result<Described, SysbenchError> {
    match state(client).await? {
        State::Absent => return Err(SysbenchError::NotLoaded),
        State::Foreign(table) => return Err(SysbenchError::Foreign { table }),
        State::Ours => {}
    }
    let row = client
        .query_opt(
            "SELECT format, tables, table_size, seed, distribution, complete FROM underlay_sysbench",
            &[],
        )
        .await?
        .ok_or(SysbenchError::Incomplete)?;
    let found: i32 = row.try_get(0)?;
    if found != MARKER_FORMAT {
        return Err(SysbenchError::OtherFormat { found });
    }
    if !row.try_get::<_, bool>(5)? {
        return Err(SysbenchError::Incomplete);
    }
    let (tables, table_size): (i32, i32) = (row.try_get(1)?, row.try_get(2)?);
    let seed: i64 = row.try_get(3)?;
    let distribution: Distribution = row.try_get::<_, &str>(4)?.parse()?;
    let parameters = Parameters::new(
        tables.cast_unsigned(),
        table_size.cast_unsigned(),
        RootSeed(seed.cast_unsigned()),
        distribution,
        Script::ReadWrite,
    )?;
    Ok(Described { parameters })
}

/// Removes the tables, if Underlay made them.
pub async fn drop_tables(client: &Client) -> Result<(), SysbenchError> {
    match state(client).await? {
        State::Absent => return Err(SysbenchError::NotLoaded),
        State::Foreign(table) => return Err(SysbenchError::Foreign { table }),
        State::Ours => {}
    }
    // Only what a load or a bulk insert of ours made: the marker says how many, the names are fixed.
    let row = client.query_opt("SELECT tables FROM underlay_sysbench", &[]).await?;
    let tables: i32 = row.map(|row| row.try_get(0)).transpose()?.unwrap_or(0);
    let mut sql = String::new();
    for table in 1..=tables {
        sql.push_str(&format!("DROP TABLE IF EXISTS sbtest{table};"));
    }
    for table in bulk_of_ours(client).await? {
        sql.push_str(&format!("DROP TABLE {table};"));
    }
    sql.push_str("DROP TABLE underlay_sysbench");
    Ok(client.batch_execute(&sql).await?)
}

/// Removes the tables for bulk inserts that Underlay made, whoever made those beside them; gives their number.
pub async fn drop_bulk_tables(client: &Client) -> Result<u64, SysbenchError> {
    let tables = bulk_of_ours(client).await?;
    if !tables.is_empty() {
        client.batch_execute(&format!("DROP TABLE {}", tables.join(", "))).await?;
    }
    Ok(tables.len() as u64)
}

async fn bulk_of_ours(client: &Client) -> Result<Vec<String>, SysbenchError> {
    let rows = client
        .query(
            "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relname ~ '^sbtest_bulk[0-9]+$' \
             AND pg_table_is_visible(oid) AND obj_description(oid, 'pg_class') = $1",
            &[&BULK_COMMENT],
        )
        .await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Gives each of `users` users an empty table for bulk inserts.
pub async fn prepare_bulk(client: &Client, users: u32) -> Result<(), SysbenchError> {
    let tables = bulk_tables(users);
    let foreign = client
        .query_opt(
            "SELECT min(relname::text) FROM pg_class WHERE relname = ANY($1) AND pg_table_is_visible(oid) \
             AND obj_description(oid, 'pg_class') IS DISTINCT FROM $2 HAVING count(*) > 0",
            &[&tables, &BULK_COMMENT],
        )
        .await?;
    if let Some(row) = foreign {
        return Err(SysbenchError::ForeignBulk { table: row.try_get(0)? });
    }
    let mut sql = String::new();
    for table in tables {
        sql.push_str(&format!(
            "CREATE TABLE IF NOT EXISTS {table} (id INTEGER NOT NULL PRIMARY KEY, \
             k INTEGER DEFAULT 0 NOT NULL); COMMENT ON TABLE {table} IS '{BULK_COMMENT}'; TRUNCATE {table};"
        ));
    }
    Ok(client.batch_execute(&sql).await?)
}
