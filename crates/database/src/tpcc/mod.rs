//! TPC-C, on every engine.
//!
//! On PostgreSQL everything is in the schema `tpcc` of the target's database, on MariaDB in the database itself. The marker
//! table `underlay_population` says that Underlay created it. Engines differ in their SQL (`sql`, and `check/sql`
//! of the checks).

mod check;
mod connector;
mod error;
mod failure;
mod inputs;
mod load;
mod marker;
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
pub use error::TpccError;
pub use load::{LoadOptions, LoadProgress, LoadStage};
pub use marker::Described;
pub use others::others;
pub use session::Session;
pub use underlay_core::{CallMode as Mode, CheckOutcome};
pub use underlay_workload::tpcc::Outcome;

pub use sql::{identity, identity_for, schema_sql};

use crate::dispatch::with_engine;
use crate::error::SessionError;
use crate::target::Target;

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
    let work = async { with_engine!(target.engine, C => check::check::<C>(target, options).await) };
    target.stop.unless(work).await
}

/// Reads D_NEXT_O_ID of all districts.
pub async fn order_numbers(
    target: &Target,
    tables: &TableNames,
) -> Result<OrderNumbers, SessionError> {
    with_engine!(target.engine, C => check::order_numbers::<C>(target, tables).await)
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
