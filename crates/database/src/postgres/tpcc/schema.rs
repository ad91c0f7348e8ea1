//! The database schema `tpcc`: its marker, creation and removal.
//!
//! The marker is a table that says that Underlay made the schema, and with which parameters. A schema
//! without it is somebody else's: it is neither loaded, nor dropped, nor driven.

use tokio_postgres::Client;
use underlay_core::RootSeed;
use underlay_workload::tpcc::{Entropy, Parameters};

use super::{Described, TpccError, procedures_sql, schema_sql};
use crate::error::{CommitState, SessionError};
use crate::postgres::ownership::{remove, state};
use crate::schema_ownership::{PlaceClaim, State, WorkloadTables};
use crate::tpcc::MARKER_FORMAT;

impl From<tokio_postgres::Error> for TpccError {
    fn from(error: tokio_postgres::Error) -> TpccError {
        TpccError::Session(SessionError::from_postgres(&error, CommitState::NotSent))
    }
}

const MARKER_SQL: &str = "CREATE TABLE tpcc.underlay_population ( \
    format integer NOT NULL, warehouses integer NOT NULL, seed bigint NOT NULL, entropy smallint NOT NULL, \
    identity text NOT NULL, complete boolean NOT NULL)";

/// Creates schema, marker, tables and functions.
pub(super) async fn create(
    client: &Client,
    parameters: &Parameters,
    identity: &str,
) -> Result<(), TpccError> {
    let schema = match state(client, WorkloadTables::Tpcc).await? {
        State::Absent => schema_sql().to_string(),
        State::Free => schema_sql().replace("CREATE SCHEMA tpcc;", ""),
        State::Foreign => return Err(TpccError::Foreign),
        State::Ours => return Err(TpccError::AlreadyLoaded),
    };
    // One simple query is one transaction: either all of it is there, or nothing is.
    client.batch_execute(&format!("{schema}\n{MARKER_SQL};\n{}", procedures_sql())).await?;
    client
        .execute(
            "INSERT INTO tpcc.underlay_population VALUES ($1, $2, $3, $4, $5, false)",
            &[
                &MARKER_FORMAT,
                &parameters.warehouses.cast_signed(),
                &parameters.seed.0.cast_signed(),
                &i16::from(parameters.entropy.percent()),
                &identity,
            ],
        )
        .await?;
    Ok(())
}

/// Says that the load came to its end.
pub(super) async fn mark_complete(client: &Client) -> Result<(), TpccError> {
    client.execute("UPDATE tpcc.underlay_population SET complete = true", &[]).await?;
    Ok(())
}

/// What population a database holds.
pub async fn describe(client: &Client) -> Result<Described, TpccError> {
    match state(client, WorkloadTables::Tpcc).await? {
        State::Absent | State::Free => return Err(TpccError::NotLoaded),
        State::Foreign => return Err(TpccError::Foreign),
        State::Ours => {}
    }
    let row = client
        .query_opt("SELECT format, warehouses, seed, entropy, identity, complete FROM tpcc.underlay_population", &[])
        .await?
        .ok_or(TpccError::Incomplete)?;
    let format: i32 = row.try_get(0)?;
    if format != MARKER_FORMAT {
        return Err(TpccError::OtherFormat { found: format, expected: MARKER_FORMAT });
    }
    let complete: bool = row.try_get(5)?;
    if !complete {
        return Err(TpccError::Incomplete);
    }
    let warehouses: i32 = row.try_get(1)?;
    let seed: i64 = row.try_get(2)?;
    let entropy: i16 = row.try_get(3)?;
    let entropy = Entropy::new(u8::try_from(entropy).unwrap_or(u8::MAX))?;
    let parameters =
        Parameters::new(warehouses.cast_unsigned(), RootSeed(seed.cast_unsigned()), entropy)?;
    Ok(Described { parameters, identity: row.try_get(4)? })
}

/// Removes tables and functions, if Underlay made them, and the schema, if it made that and nothing else is there.
pub async fn drop_schema(client: &Client) -> Result<(), TpccError> {
    match state(client, WorkloadTables::Tpcc).await? {
        State::Absent | State::Free => Err(TpccError::NotLoaded),
        State::Foreign => Err(TpccError::Foreign),
        State::Ours => Ok(remove(client, WorkloadTables::Tpcc, PlaceClaim::Release).await?),
    }
}
