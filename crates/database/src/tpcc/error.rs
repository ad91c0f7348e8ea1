//! Why something could not be done with the TPC-C schema. Errors of single transactions are a session's.

use crate::connection::RequestError;
use crate::error::SessionError;

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

impl From<RequestError> for TpccError {
    fn from(error: RequestError) -> TpccError {
        TpccError::Session(error.into())
    }
}
