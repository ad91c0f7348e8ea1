//! The web shop (DVD Store), on every engine.
//!
//! On PostgreSQL the shop is the schema `dvdstore` of the target's database, on MariaDB the database itself. The marker
//! table `underlay_dvdstore` says that Underlay created it. Without the marker, the content is foreign and is neither
//! loaded, nor driven, nor dropped. Engines differ only in their SQL (`sql`).

mod check;
mod condition;
mod connector;
mod error;
mod load;
mod marker;
mod request;
mod rows;
mod schema;
mod session;
mod sql;

use underlay_workload::dvdstore::{DvdStoreAccounting, Parameters};

pub use check::{CheckResult, Tally};
pub use connector::DvdStoreConnector;
pub use error::DvdStoreError;
pub use load::ShopLoad;
pub use marker::Described;
pub use session::Session;
pub use sql::{identity, population_identity};

use crate::dispatch::with_engine;
use crate::target::Target;

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
    with_engine!(target.engine, C => load::load::<C>(target, parameters, parallel))
}

/// What shop a database holds.
pub async fn describe(target: &Target) -> Result<Described, DvdStoreError> {
    with_engine!(target.engine, C => schema::describe::<C>(target).await)
}

/// Removes the shop, if Underlay created it.
pub async fn drop_tables(target: &Target) -> Result<(), DvdStoreError> {
    let work = async { with_engine!(target.engine, C => schema::drop_tables::<C>(target).await) };
    target.stop.unless(work).await
}

/// Counts what a run changes.
pub async fn tally(target: &Target) -> Result<Tally, DvdStoreError> {
    with_engine!(target.engine, C => check::tally::<C>(target).await)
}

/// Makes all checks, on one state of the database. With `run`, also those against the tally before and the accounting of a
/// run.
pub async fn check(
    target: &Target,
    parameters: &Parameters,
    run: Option<(&Tally, &DvdStoreAccounting)>,
) -> Result<Vec<CheckResult>, DvdStoreError> {
    let checks = async {
        with_engine!(target.engine, C => check::check::<C>(target, parameters, run).await)
    };
    target.stop.unless(checks).await
}

/// Makes all checks in a transaction that `begin` begins, perhaps with damage, and that is never committed: for tests of the
/// checks. Tables are named without their schema.
#[doc(hidden)]
pub async fn check_after(
    target: &Target,
    parameters: &Parameters,
    run: Option<(&Tally, &DvdStoreAccounting)>,
    begin: &[&str],
) -> Result<Vec<CheckResult>, DvdStoreError> {
    with_engine!(target.engine, C => {
        check::check_after::<C>(target, parameters, run, begin).await
    })
}
