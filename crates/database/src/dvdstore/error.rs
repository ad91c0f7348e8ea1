//! Why something could not be done with the shop.

use underlay_workload::dvdstore::SizeError;

use super::marker::MARKER_FORMAT;
use crate::connection::RequestError;
use crate::error::SessionError;

/// Why something could not be done with the shop.
#[derive(Debug, thiserror::Error)]
pub enum DvdStoreError {
    /// There is something that Underlay did not make.
    #[error(
        "the database has a schema `dvdstore` (MariaDB: tables) that underlay did not create; use another database, \
         remove it yourself, or replace it with --replace-foreign"
    )]
    Foreign,
    /// There is a shop already.
    #[error("the database already holds a shop; drop it first (`underlay drive dvdstore --drop`)")]
    AlreadyLoaded,
    /// There is none.
    #[error("the database holds no shop; load it first (`underlay drive dvdstore --load`)")]
    NotLoaded,
    /// A load did not complete.
    #[error("the shop is incomplete: a load was interrupted; drop it and load again")]
    Incomplete,
    /// Made by a version that generated other rows.
    #[error(
        "the shop has format {found}, this version creates format {expected}; drop it and load again",
        expected = MARKER_FORMAT
    )]
    OtherFormat {
        /// Format in the database.
        found: i32,
    },
    /// The marker says what no load writes.
    #[error("the marker of the shop is damaged: {0}")]
    Damaged(#[from] SizeError),
    /// A check read something that is no number.
    #[error("a check expected a number and found `{0}`")]
    NotANumber(String),
    /// The database refused something.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A loader could not be started.
    #[error("could not start a loader: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<RequestError> for DvdStoreError {
    fn from(error: RequestError) -> DvdStoreError {
        DvdStoreError::Session(error.into())
    }
}
