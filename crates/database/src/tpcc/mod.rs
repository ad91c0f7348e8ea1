//! TPC-C, on every engine.
//!
//! On PostgreSQL everything is in the schema `tpcc` of the target's database, on MariaDB in the database itself. The marker
//! table `underlay_population` says that Underlay created it. Engines differ in their SQL (`sql`), and in the queries that
//! check the population (`check`).

mod check;
mod connector;
mod inputs;
mod load;
mod others;
mod procedures;
mod rows;
mod schema;
mod session;
mod sql;
mod statements;

use underlay_workload::tpcc::Parameters;

pub use crate::load_report::LoadReport;
pub use check::{CheckMoment, CheckOptions, CheckReport, CheckResult, OrderNumbers, TableNames};
pub use connector::TpccConnector;
pub use load::{LoadOptions, LoadProgress, LoadStage};
pub use others::others;
pub use session::Session;
pub use underlay_core::{CallMode as Mode, CheckOutcome};
pub use underlay_workload::tpcc::Outcome;

pub use sql::{identity, identity_for, schema_sql};

use crate::connection::RequestError;
use crate::dispatch::with_engine;
use crate::error::{CommitState, SessionError};
use crate::target::Target;

/// Version of the population and of the marker. A change makes older databases unusable for new runs.
pub(crate) const MARKER_FORMAT: i32 = 1;

/// Why something could not be done with the TPC-C schema.
#[derive(Debug, thiserror::Error)]
pub enum TpccError {
    /// There is a schema `tpcc` that Underlay did not make.
    #[error(
        "the database has a schema `tpcc` (MariaDB: tables) that underlay did not create; use another database, \
         remove it yourself, or replace it with --replace-foreign"
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
    /// There are no foreign tables either.
    #[error("the database has no table `warehouse` with rows, so no tables of TPC-C to check")]
    NoTables,
    /// A load did not complete.
    #[error("the population is incomplete: a load was interrupted; drop it and load again")]
    Incomplete,
    /// Made by a version that generated other data.
    #[error(
        "the population has format {found}, this version creates format {expected}; drop it and load again"
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
    Thread(#[from] std::io::Error),
}

/// What the marker says.
#[derive(Clone, Debug)]
pub struct Described {
    /// What the population was made from.
    pub parameters: Parameters,
    /// Identity of the population as given when it was loaded.
    pub identity: String,
}

/// Creates the schema and loads the population. Blocks; must not be called from within a runtime.
///
/// # Errors
/// When there is a population or something else's schema already. After any other error the tables are there without their
/// mark of completion: they cannot be used by mistake, and can be dropped.
pub fn load(
    target: &Target,
    parameters: &Parameters,
    options: &LoadOptions<'_>,
) -> Result<LoadReport, TpccError> {
    with_engine!(target.engine, C => load::load::<C>(target, parameters, options))
}

/// Makes all checks. Must be called within a tokio runtime.
///
/// # Errors
/// Only when the database cannot be reached at all, or its user may not make the temporary tables without which no check can be made;
/// everything else is an outcome of a check.
pub async fn check(
    target: &Target,
    options: CheckOptions<'_>,
) -> Result<CheckReport, SessionError> {
    target.stop.unless(check::check(target, options)).await
}

/// Reads D_NEXT_O_ID of all districts.
pub async fn order_numbers(
    target: &Target,
    tables: &TableNames,
) -> Result<OrderNumbers, SessionError> {
    check::order_numbers(target, tables).await
}

/// What population a database holds.
pub async fn describe(target: &Target) -> Result<Described, TpccError> {
    with_engine!(target.engine, C => schema::describe::<C>(target).await)
}

/// Removes the population, if Underlay created it.
pub async fn drop_schema(target: &Target) -> Result<(), TpccError> {
    let work = async { with_engine!(target.engine, C => schema::drop_schema::<C>(target).await) };
    target.stop.unless(work).await
}

impl From<RequestError> for TpccError {
    fn from(error: RequestError) -> TpccError {
        TpccError::Session(error.into())
    }
}

impl From<tokio_postgres::Error> for TpccError {
    fn from(error: tokio_postgres::Error) -> TpccError {
        TpccError::Session(SessionError::from_postgres(&error, CommitState::NotSent))
    }
}
