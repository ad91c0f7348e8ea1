//! Sysbench's OLTP tables and transactions, on every engine.
//!
//! The tables are those that `sysbench oltp_* prepare` creates, under the names that it looks for: either program can drive
//! what the other loaded. The marker table `underlay_sysbench` says that Underlay created them. Without it they are neither
//! overwritten nor dropped, and driven only on request. Engines differ only in their SQL (`sql`).

mod check;
mod connector;
mod error;
mod load;
mod marker;
mod names;
mod others;
mod schema;
mod session;
mod sql;
mod statement;

use underlay_workload::sysbench::{Parameters, SysbenchAccounting};

pub use crate::load_report::LoadReport;
pub use check::{Check, CheckResult, Tally};
pub use connector::SysbenchConnector;
pub use error::SysbenchError;
pub use marker::Described;
pub use others::others;
pub use session::Session;

pub use sql::identity;

use crate::dispatch::with_engine;
use crate::target::Target;

/// Creates and loads the tables, on `parallel` connections. Blocks; must not be called from within a runtime.
///
/// # Errors
/// When there are such tables already. After any other error they are there without their mark of completion:
/// they cannot be used by mistake, and can be dropped.
pub fn load(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
) -> Result<LoadReport, SysbenchError> {
    with_engine!(target.engine, C => load::load::<C>(target, parameters, parallel))
}

/// What tables of Underlay's a database holds.
pub async fn describe(target: &Target) -> Result<Described, SysbenchError> {
    with_engine!(target.engine, C => schema::describe::<C>(target).await)
}

/// Counts all tables.
pub async fn tally(target: &Target, parameters: &Parameters) -> Result<Tally, SysbenchError> {
    with_engine!(target.engine, C => check::tally::<C>(target, parameters).await)
}

/// Makes all checks. With `run`, also those against the tally before and the accounting of a run.
pub async fn check(
    target: &Target,
    parameters: &Parameters,
    run: Option<(&Tally, &SysbenchAccounting)>,
) -> Result<Vec<CheckResult>, SysbenchError> {
    let checks = async {
        with_engine!(target.engine, C => check::check::<C>(target, parameters, run).await)
    };
    target.stop.unless(checks).await
}

/// Removes the tables, if Underlay created them.
pub async fn drop_tables(target: &Target) -> Result<(), SysbenchError> {
    let work = async { with_engine!(target.engine, C => schema::drop_tables::<C>(target).await) };
    target.stop.unless(work).await
}

/// Removes the tables for bulk inserts that Underlay created, also next to tables that it did not create, and gives their number.
pub async fn drop_bulk_tables(target: &Target) -> Result<u64, SysbenchError> {
    let work =
        async { with_engine!(target.engine, C => schema::drop_bulk_tables::<C>(target).await) };
    target.stop.unless(work).await
}

/// Gives each of `users` users an empty table for bulk inserts.
///
/// # Errors
/// When one of them is there already and not Underlay's; then none of them is touched.
pub async fn prepare_bulk(target: &Target, users: u32) -> Result<(), SysbenchError> {
    with_engine!(target.engine, C => schema::prepare_bulk::<C>(target, users).await)
}
