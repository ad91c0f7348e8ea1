//! TPC-C on every engine: what they have in common, and one entry for whoever has a [`Target`].
//!
//! Schema, SQL and sessions are the engines' own; see `postgres::tpcc` and `mariadb::tpcc`.

pub(crate) mod check;
mod connector;
mod inputs;
mod load;
mod others;
mod session;

use underlay_workload::tpcc::{Identity, Parameters, Tpcc};

pub use crate::load_report::LoadReport;
pub use check::{CheckMoment, CheckOptions, CheckReport, CheckResult, OrderNumbers, TableNames};
pub use connector::TpccConnector;
pub use load::{LoadOptions, LoadProgress, LoadStage};
pub use others::others;
pub use session::Session;
pub use underlay_core::{CallMode as Mode, CheckOutcome};
pub use underlay_workload::tpcc::Outcome;

pub(crate) use crate::parallel::on_runtime;
pub(crate) use inputs::{SortedLines, int, selector, small};
pub(crate) use load::{Counters, Piece, pieces};
pub(crate) use session::{no_population, require_mode, require_population};

use crate::error::SessionError;
use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// Version of the population and of the marker. A change makes older databases unusable for new runs.
pub(crate) const MARKER_FORMAT: i32 = 1;

/// Why something could not be done with the TPC-C schema.
#[derive(Debug, thiserror::Error)]
pub enum TpccError {
    /// There is a schema `tpcc` that Underlay did not make.
    #[error(
        "the database has a schema `tpcc` (MariaDB: tables) that underlay did not create; use another \
         database, remove it yourself, or have it replaced with --replace-foreign"
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
    /// There are no tables of somebody else either.
    #[error("the database has no table `warehouse` with rows, so no tables of TPC-C to check")]
    NoTables,
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

/// The identity of the workload as an engine runs it: results with different identities are not
/// comparable.
pub fn identity(engine: Engine, parameters: &Parameters, mode: Mode) -> Identity {
    match engine {
        Engine::Postgresql => postgres::tpcc::identity(parameters, mode),
        Engine::Mariadb => mariadb::tpcc::identity(parameters, mode),
    }
}

/// The identity of a workload of any profile; that of the specification is [`identity`].
pub fn identity_for(engine: Engine, workload: &Tpcc, mode: Mode) -> Identity {
    match engine {
        Engine::Postgresql => postgres::tpcc::identity_for(workload, mode),
        Engine::Mariadb => mariadb::tpcc::identity_for(workload, mode),
    }
}

/// Creates the schema and loads the population. Blocks; must not be called from within a runtime.
///
/// # Errors
/// When there is a population or something else's schema already.
pub fn load(
    target: &Target,
    parameters: &Parameters,
    options: &LoadOptions<'_>,
) -> Result<LoadReport, TpccError> {
    match target.engine {
        Engine::Postgresql => postgres::tpcc::load(target, parameters, options),
        Engine::Mariadb => mariadb::tpcc::load(target, parameters, options),
    }
}

/// Makes all checks. Must be called within a tokio runtime.
///
/// # Errors
/// Only when the database cannot be reached at all; everything else is an outcome of a check.
pub async fn check(
    target: &Target,
    options: CheckOptions<'_>,
) -> Result<CheckReport, SessionError> {
    let checks = async {
        match target.engine {
            Engine::Postgresql => postgres::tpcc::check(target, options).await,
            Engine::Mariadb => mariadb::tpcc::check(target, options).await,
        }
    };
    target.stop.unless(checks).await
}

/// Reads D_NEXT_O_ID of all districts.
pub async fn order_numbers(
    target: &Target,
    tables: &TableNames,
) -> Result<OrderNumbers, SessionError> {
    match target.engine {
        Engine::Postgresql => {
            let client = target.connect().await?;
            postgres::tpcc::order_numbers(&client, tables).await
        }
        Engine::Mariadb => mariadb::tpcc::order_numbers(target, tables).await,
    }
}

/// What population a database holds.
pub async fn describe(target: &Target) -> Result<Described, TpccError> {
    match target.engine {
        Engine::Postgresql => postgres::tpcc::describe(&target.connect().await?).await,
        Engine::Mariadb => mariadb::tpcc::describe(target).await,
    }
}

/// Removes the population, if Underlay made it.
pub async fn drop_schema(target: &Target) -> Result<(), TpccError> {
    let work = async {
        match target.engine {
            Engine::Postgresql => postgres::tpcc::drop_schema(&target.connect().await?).await,
            Engine::Mariadb => mariadb::tpcc::drop_schema(target).await,
        }
    };
    target.stop.unless(work).await
}
