//! The database schema `dvdstore`: its marker, creation and removal.

use tokio_postgres::Client;
use underlay_workload::dvdstore::Parameters;

use super::{functions_sql, schema_sql};
use crate::dvdstore::{Described, DvdStoreError, MARKER_FORMAT, described};
use crate::error::{CommitState, SessionError};
use crate::postgres::ownership::{remove, state};
use crate::schema_ownership::{PlaceClaim, State, WorkloadTables};

impl From<tokio_postgres::Error> for DvdStoreError {
    fn from(error: tokio_postgres::Error) -> DvdStoreError {
        DvdStoreError::Session(SessionError::from_postgres(&error, CommitState::NotSent))
    }
}

const MARKER_SQL: &str = "CREATE TABLE dvdstore.underlay_dvdstore (format integer NOT NULL, \
    nominal_kb bigint NOT NULL, seed bigint NOT NULL, identity text NOT NULL, complete boolean NOT NULL)";

/// Creates schema, marker, tables, functions and the trigger, which the load does not fire.
pub(super) async fn create(
    client: &Client,
    parameters: &Parameters,
    identity: &str,
) -> Result<(), DvdStoreError> {
    let schema = match state(client, WorkloadTables::Dvdstore).await? {
        State::Absent => schema_sql().to_string(),
        State::Free => schema_sql().replace("CREATE SCHEMA dvdstore;", ""),
        State::Foreign => return Err(DvdStoreError::Foreign),
        State::Ours => return Err(DvdStoreError::AlreadyLoaded),
    };
    // One simple query is one transaction: either all of it is there, or nothing is.
    let sql = format!("{schema}\n{MARKER_SQL};\n{}", functions_sql());
    client.batch_execute(&sql).await?;
    client
        .execute(
            "INSERT INTO dvdstore.underlay_dvdstore VALUES ($1, $2, $3, $4, false)",
            &[
                &MARKER_FORMAT,
                &parameters.size.nominal_kb().cast_signed(),
                &parameters.seed.0.cast_signed(),
                &identity,
            ],
        )
        .await?;
    Ok(())
}

/// Says that the load came to its end.
pub(super) async fn mark_complete(client: &Client) -> Result<(), DvdStoreError> {
    client.execute("UPDATE dvdstore.underlay_dvdstore SET complete = true", &[]).await?;
    Ok(())
}

/// What shop a database holds.
pub async fn describe(client: &Client) -> Result<Described, DvdStoreError> {
    match state(client, WorkloadTables::Dvdstore).await? {
        State::Absent | State::Free => return Err(DvdStoreError::NotLoaded),
        State::Foreign => return Err(DvdStoreError::Foreign),
        State::Ours => {}
    }
    let row = client
        .query_opt(
            "SELECT format, nominal_kb, seed, identity, complete FROM dvdstore.underlay_dvdstore",
            &[],
        )
        .await?;
    let marker = match row {
        None => None,
        Some(row) => Some((
            row.try_get(0)?,
            row.try_get(1)?,
            row.try_get(2)?,
            row.try_get(3)?,
            row.try_get(4)?,
        )),
    };
    described(marker)
}

/// Removes tables and functions, if Underlay made them, and the schema, if it made that and nothing else is there.
pub async fn drop_tables(client: &Client) -> Result<(), DvdStoreError> {
    match state(client, WorkloadTables::Dvdstore).await? {
        State::Absent | State::Free => Err(DvdStoreError::NotLoaded),
        State::Foreign => Err(DvdStoreError::Foreign),
        State::Ours => Ok(remove(client, WorkloadTables::Dvdstore, PlaceClaim::Release).await?),
    }
}
