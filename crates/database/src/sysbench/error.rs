//! Why something could not be done with sysbench's tables.

use underlay_workload::sysbench::{ParametersError, UnknownDistribution};

use super::marker::MARKER_FORMAT;
use crate::connection::RequestError;
use crate::error::SessionError;

/// Why something could not be done with the tables.
#[derive(Debug, thiserror::Error)]
pub enum SysbenchError {
    /// There are such tables that Underlay did not make.
    #[error(
        "the database has tables of sysbench's names that underlay did not create, such as `{table}`; use another \
         database, remove them yourself, drive them as they are with --foreign-tables, or replace them with \
         --replace-foreign"
    )]
    Foreign {
        /// The first of them by name.
        table: String,
    },
    /// There is a table of such a name for bulk inserts that Underlay did not make.
    #[error(
        "the database has a table `{table}` that underlay did not create, and a bulk insert would empty it; use another database, \
         or remove it yourself"
    )]
    ForeignBulk {
        /// The first of them by name.
        table: String,
    },
    /// Tables that Underlay did not create cannot be driven as was asked.
    #[error("{}", .0.join("\n"))]
    Unfit(Vec<String>),
    /// There are tables already.
    #[error(
        "the database already holds the tables; drop them first (`underlay drive sysbench --drop`)"
    )]
    AlreadyLoaded,
    /// There are none.
    #[error("the database holds no tables; load them first (`underlay drive sysbench --load`)")]
    NotLoaded,
    /// A load did not complete.
    #[error("the tables are incomplete: a load was interrupted; drop them and load again")]
    Incomplete,
    /// Made by a version that generated other rows.
    #[error(
        "the tables have format {found}, this version creates format {expected}; drop them and load again",
        expected = MARKER_FORMAT
    )]
    OtherFormat {
        /// Format in the database.
        found: i32,
    },
    /// The marker says what no load writes.
    #[error("the marker of the tables is damaged: {0}")]
    Damaged(String),
    /// The database refused something.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A loader could not be started.
    #[error("could not start a loader: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<ParametersError> for SysbenchError {
    fn from(error: ParametersError) -> SysbenchError {
        SysbenchError::Damaged(error.to_string())
    }
}

impl From<UnknownDistribution> for SysbenchError {
    fn from(error: UnknownDistribution) -> SysbenchError {
        SysbenchError::Damaged(error.to_string())
    }
}

impl From<RequestError> for SysbenchError {
    fn from(error: RequestError) -> SysbenchError {
        SysbenchError::Session(error.into())
    }
}
