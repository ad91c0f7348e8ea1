//! Batch insertion on every engine: a job that ends by itself, without a rate.
//!
//! [`insert`] recreates the table and fills it, on one or more sessions; [`verify`] compares what the table holds
//! with what was acknowledged, row by row; [`describe`] and [`drop_schema`] only touch a table that Underlay made.
//!
//! Engines differ in their SQL (`sql`). One session's part of the work, measured, is in `session`. Nothing is retried: a
//! lost transaction is a result.

mod columns;
mod described;
mod error;
mod inserter;
mod marker;
mod options;
mod report;
mod schema;
mod session;
mod sql;
mod start;
mod verification;

use std::time::Instant;

use underlay_workload::batch::{Claim, Loop, MAX_ROWS, Mode, Parameters, Verdict, slices};

use crate::dispatch::with_engine;
use crate::parallel::on_runtime;
use crate::target::Target;

pub use described::Described;
pub use error::BatchError;
use marker::Marker;
pub use options::BatchOptions;
pub use report::{BatchReport, SessionEnd, SessionReport};

/// Drops an earlier table of Underlay, creates the table and inserts the rows. Ends early when `stop` says so. Blocks; must
/// not be called from within a runtime.
///
/// # Errors
/// When the table could not be made. What happens to a session afterwards is in its report.
///
/// # Panics
/// When a number of rows or sessions is out of range.
pub fn insert(
    target: &Target,
    options: &BatchOptions,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<BatchReport, BatchError> {
    insert_watched(target, options, stop, &|_| ())
}

/// The same; the sessions' threads call `took` with the number of rows that the server accepted since the
/// last call.
///
/// # Errors
/// As [`insert`].
pub fn insert_watched(
    target: &Target,
    options: &BatchOptions,
    stop: &(dyn Fn() -> bool + Sync),
    took: &(dyn Fn(u64) + Sync),
) -> Result<BatchReport, BatchError> {
    assert!((1..=MAX_ROWS).contains(&options.parameters.rows), "a number of rows in range");
    assert!(options.sessions >= 1, "at least one session");
    let is_stream = options.mode == Mode::Bulk;
    assert!(!is_stream || options.place == Loop::Client, "a stream has no loop inside the server");
    let target = target.with_application_name("underlay-drive");
    let marker = Marker::of(options);
    on_runtime(target.stop.unless(async {
        with_engine!(target.engine, C => schema::create::<C>(&target, &marker).await)
    }))?;
    let slices = slices(options.parameters.rows, options.sessions);
    // Connecting is not inserting: all begin when all are connected.
    let start = start::Start::default();
    let (began, sessions) = std::thread::scope(|scope| {
        let mut handles = Vec::new();
        for (index, slice) in slices.iter().enumerate() {
            let (target, start) = (&target, &start);
            let work = session::Work { options, slice: *slice, stop, took };
            let named = std::thread::Builder::new().name(format!("batch-{index}"));
            match named.spawn_scoped(scope, move || work.on_thread(target, start)) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    start.abandon();
                    return Err(BatchError::Thread(error));
                }
            }
        }
        start.release(slices.len());
        let began = Instant::now();
        let join = |handle: std::thread::ScopedJoinHandle<'_, SessionReport>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok((began, handles.into_iter().map(join).collect::<Vec<_>>()))
    })?;
    let report = BatchReport::new(*options, began.elapsed(), sessions);
    if report.is_complete() {
        on_runtime(async {
            with_engine!(target.engine, C => schema::mark_complete::<C>(&target).await)
        })?;
    }
    Ok(report)
}

/// Reads the whole table in the order of its key and compares it with the generator's rows and with `claims`. Blocks.
///
/// # Errors
/// When there is no such table, or it cannot be read; violations are part of the verdict.
pub fn verify(
    target: &Target,
    parameters: &Parameters,
    claims: Vec<Claim>,
) -> Result<Verdict, BatchError> {
    on_runtime(target.stop.unless(async {
        with_engine!(target.engine, C => verification::verify::<C>(target, parameters, claims).await)
    }))
}

/// Rows per second of the column `sj`, which the server filled in: second since the first row's, rows. Seconds
/// without rows are missing. Blocks.
pub fn rows_by_server_clock(target: &Target) -> Result<Vec<(u32, u64)>, BatchError> {
    on_runtime(target.stop.unless(async {
        with_engine!(target.engine, C => verification::rows_by_server_clock::<C>(target).await)
    }))
}

/// What table a database holds. Blocks.
pub fn describe(target: &Target) -> Result<Described, BatchError> {
    on_runtime(async { with_engine!(target.engine, C => schema::marker::<C>(target).await) })?
        .described()
}

/// Removes the table, if Underlay made it. Blocks.
pub fn drop_schema(target: &Target) -> Result<(), BatchError> {
    on_runtime(
        target.stop.unless(async {
            with_engine!(target.engine, C => schema::drop_schema::<C>(target).await)
        }),
    )
}
