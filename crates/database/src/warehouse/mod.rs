//! The data warehouse derived from TPC-H, on any engine.
//!
//! [`load`] makes and fills the tables, [`power_run`] and [`throughput_run`] ask the queries and carry out the refresh
//! functions, [`check`] compares what is there, and the answers to all 22 queries, with the rows and answers that the
//! crate `workload` computes without SQL. The SQL is the same for both engines but for a few types; what differs is how
//! rows are streamed in and how results come back (`connection`).

mod check;
mod connection;
mod load;
mod mariadb;
mod postgres;
mod queries;
mod refresh;
mod rows;
mod run;
mod schema;

use underlay_core::RootSeed;
use underlay_workload::warehouse::{Population, Refreshed, Scale};

use crate::error::SessionError;
use crate::parallel::on_runtime;

pub use crate::load_report::LoadReport;
pub use check::{Checked, check};
pub(crate) use connection::Rows;
pub use load::load;
pub use queries::sql;
pub(crate) use rows::TABLE_NAMES;
pub use run::{
    Measured, Step, Took, power_run, power_run_watched, throughput_run, throughput_run_watched,
};
pub use schema::{describe, drop_schema};

/// Version of the rows and of the marker.
pub(crate) const MARKER_FORMAT: i32 = 1;

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

/// What a database holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// What was loaded.
    pub population: Population,
    /// What refresh functions did since.
    pub refreshed: Refreshed,
}

impl Described {
    fn new(
        hundredths: i64,
        seed: i64,
        inserted: i64,
        deleted: i64,
    ) -> Result<Described, WarehouseError> {
        let damaged = |what: &str| WarehouseError::Damaged(what.to_string());
        let scale = u32::try_from(hundredths)
            .ok()
            .and_then(|hundredths| Scale::from_hundredths(hundredths).ok())
            .ok_or_else(|| damaged("no scale factor"))?;
        let sets =
            |number: i64| u32::try_from(number).map_err(|_| damaged("no number of refreshes"));
        Ok(Described {
            population: Population { scale, seed: RootSeed(seed.cast_unsigned()) },
            refreshed: Refreshed { inserted: sets(inserted)?, deleted: sets(deleted)? },
        })
    }
}
