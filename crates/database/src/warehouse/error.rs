//! Why something could not be done with the warehouse.

use super::marker::MARKER_FORMAT;
use crate::error::SessionError;

/// Why something could not be done with the warehouse.
#[derive(Debug, thiserror::Error)]
pub enum WarehouseError {
    /// There is something of that name that Underlay did not make.
    #[error(
        "there is a schema `warehouse` (on MariaDB: a non-empty database) that Underlay did not create; use another \
         database, remove it yourself, or replace it with --replace-foreign"
    )]
    Foreign,
    /// There are tables already.
    #[error(
        "the database already holds a warehouse; drop it first (`underlay drive warehouse --drop`)"
    )]
    AlreadyLoaded,
    /// There are none.
    #[error("the database holds no warehouse; load one first (`underlay drive warehouse --load`)")]
    NotLoaded,
    /// A load did not complete.
    #[error("the warehouse is incomplete: a load was interrupted; drop it and load again")]
    Incomplete,
    /// Made by a version that generated other rows.
    #[error(
        "the warehouse has format {found}, this version creates format {expected}; drop it and load again",
        expected = MARKER_FORMAT
    )]
    OtherFormat {
        /// Format in the database.
        found: i32,
    },
    /// No further rows to insert and delete.
    #[error("all refresh functions of this warehouse are used up; drop it and load again")]
    RefreshesUsedUp,
    /// The marker says what no load writes.
    #[error("the marker of the warehouse is damaged: {0}")]
    Damaged(String),
    /// The database refused something.
    #[error("{doing}: {error}")]
    Session {
        /// What was being done.
        doing: String,
        /// Why it could not be.
        error: SessionError,
    },
    /// A thread could not be started.
    #[error("could not start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<SessionError> for WarehouseError {
    fn from(error: SessionError) -> WarehouseError {
        WarehouseError::Session { doing: "the database".to_string(), error }
    }
}

impl WarehouseError {
    /// Makes an error of a refusal, with what was being done.
    pub(super) fn during<E: Into<SessionError>>(doing: &str) -> impl FnOnce(E) -> WarehouseError {
        move |error| WarehouseError::Session { doing: doing.to_string(), error: error.into() }
    }
}
