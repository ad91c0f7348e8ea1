//! Why something could not be done with the table of a batch insertion.

use super::marker::MARKER_FORMAT;
use crate::connection::RequestError;
use crate::error::SessionError;

/// Why something could not be done with the table.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// There is something of that name that Underlay did not make.
    #[error(
        "there is a schema `batch` (on MariaDB: a non-empty database) that Underlay did not create; use another \
         database, remove it yourself, or replace it with --replace-foreign"
    )]
    Foreign,
    /// There is no table.
    #[error("the database has no table of a batch insertion; create one (`underlay drive batch`)")]
    NotThere,
    /// Made by a version that generated other rows.
    #[error(
        "the table has format {found}, this version creates format {expected}; drop it and insert again",
        expected = MARKER_FORMAT
    )]
    OtherFormat {
        /// Format in the database.
        found: i32,
    },
    /// The marker says what no insertion writes.
    #[error("the marker of the table is damaged: {0}")]
    Damaged(String),
    /// The database refused something.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A session's thread could not be started.
    #[error("could not start a session: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<RequestError> for BatchError {
    fn from(error: RequestError) -> BatchError {
        BatchError::Session(error.into())
    }
}
