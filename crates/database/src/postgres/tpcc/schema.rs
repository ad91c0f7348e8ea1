//! The database schema `tpcc`: its marker, creation and removal.
//!
//! The marker is a table that says that Underlay made the schema, and with which parameters. A schema
//! without it is somebody else's: it is neither loaded, nor dropped, nor driven.

use tokio_postgres::Client;
use underlay_core::RootSeed;
use underlay_workload::tpcc::{Entropy, Parameters};

use super::{procedures_sql, schema_sql};
use crate::error::{CommitState, SessionError};

/// Version of the population and of the marker. A change makes older databases unusable for new runs.
const MARKER_FORMAT: i32 = 1;

/// Why something could not be done with the TPC-C schema.
#[derive(Debug, thiserror::Error)]
pub enum TpccError {
    /// There is a schema `tpcc` that Underlay did not make.
    #[error(
        "the database has a schema `tpcc` that underlay did not create; use another database, or remove the schema yourself"
    )]
    Foreign,
    /// There is one already.
    #[error(
        "the database already holds a population; drop it first (`underlay drive tpcc --drop`)"
    )]
    AlreadyLoaded,
    /// There is none.
    #[error("the database holds no population; load it first (`underlay drive tpcc --load`)")]
    NotLoaded,
    /// A load did not come to its end.
    #[error("the population is incomplete: a load was interrupted; drop it and load again")]
    Incomplete,
    /// Made by a version that generated other data.
    #[error(
        "the population has format {found}, this version makes format {expected}; drop it and load again"
    )]
    OtherFormat {
        /// Format in the database.
        found: i32,
        /// Format of this version.
        expected: i32,
    },
    /// The marker carries parameters that no population can have.
    #[error("the population's marker is damaged: {0}")]
    Damaged(#[from] underlay_workload::tpcc::ParametersError),
    /// The database refused something.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The load's own threads could not be started.
    #[error("could not start a loader: {0}")]
    Thread(#[source] std::io::Error),
}

impl From<tokio_postgres::Error> for TpccError {
    fn from(error: tokio_postgres::Error) -> TpccError {
        TpccError::Session(SessionError::from_postgres(&error, CommitState::NotSent))
    }
}

/// What the marker says.
#[derive(Clone, Debug)]
pub struct Described {
    /// What the population was made from.
    pub parameters: Parameters,
    /// Identity of the population as given when it was loaded.
    pub identity: String,
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
    match state(client).await? {
        State::Absent => {}
        State::Foreign => return Err(TpccError::Foreign),
        State::Ours => return Err(TpccError::AlreadyLoaded),
    }
    // One simple query is one transaction: either all of it is there, or nothing is.
    client.batch_execute(&format!("{}\n{MARKER_SQL};\n{}", schema_sql(), procedures_sql())).await?;
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

enum State {
    Absent,
    Foreign,
    Ours,
}

async fn state(client: &Client) -> Result<State, TpccError> {
    let row = client
        .query_one(
            "SELECT to_regnamespace('tpcc') IS NOT NULL, to_regclass('tpcc.underlay_population') IS NOT NULL",
            &[],
        )
        .await?;
    Ok(match (row.try_get(0)?, row.try_get(1)?) {
        (false, _) => State::Absent,
        (true, false) => State::Foreign,
        (true, true) => State::Ours,
    })
}

/// What population a database holds.
pub async fn describe(client: &Client) -> Result<Described, TpccError> {
    match state(client).await? {
        State::Absent => return Err(TpccError::NotLoaded),
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

/// Removes the schema, if Underlay made it.
pub async fn drop_schema(client: &Client) -> Result<(), TpccError> {
    match state(client).await? {
        State::Absent => Err(TpccError::NotLoaded),
        State::Foreign => Err(TpccError::Foreign),
        State::Ours => Ok(client.batch_execute("DROP SCHEMA tpcc CASCADE").await?),
    }
}
