//! The data warehouse derived from TPC-H, on every engine.
//!
//! [`load()`] makes and fills the tables, [`power_run`] and [`throughput_run`] ask the queries and carry out the refresh
//! functions, [`check()`] compares what is there, and the answers to all 22 queries, with the rows and answers that the
//! crate `workload` computes without SQL. Engines differ only in their SQL (`sql`), and there in little: types, keys and
//! settings.

mod check;
mod error;
mod load;
mod marker;
mod refresh;
mod rows;
mod run;
mod schema;
mod sql;

use underlay_workload::warehouse::Population;

pub use crate::load_report::LoadReport;
pub use check::Checked;
pub use error::WarehouseError;
pub use marker::Described;
pub(crate) use rows::TABLE_NAMES;
pub use run::{Measured, Step, Took};

use crate::dispatch::with_engine;
use crate::parallel::on_runtime;
use crate::target::Target;

/// Creates the tables and loads the population, on `parallel` connections. Blocks; must not be called from within a
/// runtime.
///
/// # Errors
/// When there are tables already. After any other error they are there without their mark of completion: they cannot
/// be used by mistake, and can be dropped.
pub fn load(
    target: &Target,
    population: &Population,
    parallel: usize,
) -> Result<LoadReport, WarehouseError> {
    with_engine!(target.engine, C => load::load::<C>(target, population, parallel))
}

/// What warehouse a database holds. Blocks.
pub fn describe(target: &Target) -> Result<Described, WarehouseError> {
    on_runtime(async { with_engine!(target.engine, C => schema::describe::<C>(target).await) })
}

/// Removes the tables, if Underlay made them, and schema or database, if it made that and nothing else is there. Blocks.
pub fn drop_schema(target: &Target) -> Result<(), WarehouseError> {
    on_runtime(
        target.stop.unless(async {
            with_engine!(target.engine, C => schema::drop_schema::<C>(target).await)
        }),
    )
}

/// Makes all comparisons. Blocks. The data must not change meanwhile.
///
/// # Errors
/// When the database refuses a question; what is wrong in the data is part of the result.
pub fn check(target: &Target, described: &Described) -> Result<Vec<Checked>, WarehouseError> {
    with_engine!(target.engine, C => check::check::<C>(target, described))
}

/// One stream alone: the insertion of orders, the 22 queries in the order of stream 0, the deletion. Blocks.
///
/// # Errors
/// At the first step that the database refuses.
pub fn power_run(
    target: &Target,
    population: &Population,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Measured, WarehouseError> {
    power_run_watched(target, population, stop, &|_, _| ())
}

/// The same, telling of every step.
///
/// # Errors
/// As [`power_run`].
pub fn power_run_watched(
    target: &Target,
    population: &Population,
    stop: &(dyn Fn() -> bool + Sync),
    took: &Took<'_>,
) -> Result<Measured, WarehouseError> {
    with_engine!(target.engine, C => run::power_run::<C>(target, population, (stop, took)))
}

/// Streams side by side, numbered from 1, each with the 22 queries in its own order and values; beside them one that
/// inserts and deletes orders as often as there are streams. Blocks.
///
/// # Errors
/// The first error of any stream, when all have ended.
pub fn throughput_run(
    target: &Target,
    population: &Population,
    streams: u32,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Measured, WarehouseError> {
    throughput_run_watched(target, population, streams, (stop, &|_, _| ()))
}

/// The same, telling of every step.
///
/// # Errors
/// As [`throughput_run`].
pub fn throughput_run_watched(
    target: &Target,
    population: &Population,
    streams: u32,
    watched: (&(dyn Fn() -> bool + Sync), &Took<'_>),
) -> Result<Measured, WarehouseError> {
    with_engine!(target.engine, C => run::throughput_run::<C>(target, population, streams, watched))
}
