//! The web shop on every engine: what they have in common, and one entry for whoever has a [`Target`].
//!
//! On PostgreSQL the shop is the schema `dvdstore` of the target's database, on MariaDB the database itself. A table of
//! Underlay's own, `underlay_dvdstore`, says that Underlay made it; without it everything there is somebody else's and is
//! neither loaded, nor driven, nor dropped. SQL and sessions are the engines' own.

pub(crate) mod check;
mod condition;
mod connector;
mod error;
mod load;
mod request;
mod rows;
mod session;

use underlay_core::RootSeed;
use underlay_workload::dvdstore::{DvdStoreAccounting, Parameters, Size};

pub use check::{CheckResult, Tally};
pub use connector::DvdStoreConnector;
pub use error::DvdStoreError;
pub use load::ShopLoad;
pub use session::Session;

pub(crate) use check::{Reader, inspect, integer_of, tally_of};
pub(crate) use load::{Counters, Piece, pieces};
pub(crate) use request::{PASSWORD, Value, customer_values, net_cents};
pub(crate) use rows::{RowText, UNIT_BYTES_MAX};

use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// Version of the rows and of the marker.
pub(crate) const MARKER_FORMAT: i32 = 1;

/// What the marker says; the behaviour is left at its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// What the rows were made from.
    pub parameters: Parameters,
    /// The identity of the population as it was loaded.
    pub identity: String,
}

/// A row of the marker: format, nominal size in kB, seed, identity, completeness.
pub(crate) type Marker = (i32, i64, i64, String, bool);

/// What a marker means; none is what an interrupted creation leaves.
pub(crate) fn described(marker: Option<Marker>) -> Result<Described, DvdStoreError> {
    let (format, nominal_kb, seed, identity, complete) = marker.ok_or(DvdStoreError::Incomplete)?;
    if format != MARKER_FORMAT {
        return Err(DvdStoreError::OtherFormat { found: format });
    }
    if !complete {
        return Err(DvdStoreError::Incomplete);
    }
    let size = Size::of_nominal_kb(nominal_kb.cast_unsigned())?;
    Ok(Described { parameters: Parameters::new(size, RootSeed(seed.cast_unsigned())), identity })
}

/// The identity of the population as an engine holds it.
pub fn population_identity(engine: Engine, parameters: &Parameters) -> String {
    match engine {
        Engine::Postgresql => postgres::dvdstore::population_identity(parameters),
        Engine::Mariadb => mariadb::dvdstore::population_identity(parameters),
    }
}

/// The identity of the workload as an engine runs it: results with different identities are not comparable.
pub fn identity(engine: Engine, parameters: &Parameters) -> String {
    match engine {
        Engine::Postgresql => postgres::dvdstore::identity(parameters),
        Engine::Mariadb => mariadb::dvdstore::identity(parameters),
    }
}

/// Creates and loads the shop, on `parallel` connections. Blocks; must not be called from within a runtime.
///
/// # Errors
/// When there is something already. After any other error the tables are there without their mark of completion: they
/// cannot be used by mistake, and can be dropped.
pub fn load(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
) -> Result<ShopLoad, DvdStoreError> {
    match target.engine {
        Engine::Postgresql => postgres::dvdstore::load(target, parameters, parallel),
        Engine::Mariadb => mariadb::dvdstore::load(target, parameters, parallel),
    }
}

/// What shop a database holds.
pub async fn describe(target: &Target) -> Result<Described, DvdStoreError> {
    match target.engine {
        Engine::Postgresql => postgres::dvdstore::describe(&target.connect().await?).await,
        Engine::Mariadb => mariadb::dvdstore::describe(target).await,
    }
}

/// Removes the shop, if Underlay made it.
pub async fn drop_tables(target: &Target) -> Result<(), DvdStoreError> {
    let work = async {
        match target.engine {
            Engine::Postgresql => postgres::dvdstore::drop_tables(&target.connect().await?).await,
            Engine::Mariadb => mariadb::dvdstore::drop_tables(target).await,
        }
    };
    target.stop.unless(work).await
}

/// Counts what a run changes.
pub async fn tally(target: &Target) -> Result<Tally, DvdStoreError> {
    match target.engine {
        Engine::Postgresql => postgres::dvdstore::tally(&target.connect().await?).await,
        Engine::Mariadb => mariadb::dvdstore::tally(target).await,
    }
}

/// Makes all checks, on one state of the database. With `run`, also those against the tally before and the accounting of
/// a run.
pub async fn check(
    target: &Target,
    parameters: &Parameters,
    run: Option<(&Tally, &DvdStoreAccounting)>,
) -> Result<Vec<CheckResult>, DvdStoreError> {
    let checks = async {
        match target.engine {
            Engine::Postgresql => {
                postgres::dvdstore::check(&target.connect().await?, parameters, run).await
            }
            Engine::Mariadb => mariadb::dvdstore::check(target, parameters, run).await,
        }
    };
    target.stop.unless(checks).await
}
