//! Batch insertion on any engine: a job that ends by itself, without a rate.
//!
//! [`insert`] recreates the table and fills it, on one or more sessions; [`verify`] compares what the table holds
//! with what was acknowledged, row by row; [`describe`] and [`drop_schema`] only touch a table that Underlay made.
//!
//! What is the same for both engines is here and in `session` (one session's part of the work, measured); what an
//! engine does by itself is in its own module. Nothing is retried: a lost transaction is a result.

mod inserter;
mod mariadb;
mod postgres;
mod report;
mod session;
mod start;

use std::time::Instant;

use underlay_core::RootSeed;
use underlay_workload::batch::{Claim, Loop, MAX_ROWS, Mode, Parameters, Row, Verdict, slices};

use crate::Engine;
use crate::error::SessionError;
use crate::target::Target;

pub use report::{BatchReport, SessionEnd, SessionReport};

/// Version of the rows and of the marker.
pub(crate) const MARKER_FORMAT: i32 = 1;

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

/// How to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// What is inserted.
    pub parameters: Parameters,
    /// How.
    pub mode: Mode,
    /// Who goes from row to row. A stream has no loop inside the server.
    pub place: Loop,
    /// Sessions, each with a part of the rows. At least 1.
    pub sessions: u32,
    /// Undo at the end instead of committing. Only where there is a transaction to undo.
    pub rollback: bool,
}

/// What the marker of a table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// What was to be inserted, and how.
    pub options: BatchOptions,
    /// Whether the insertion completed.
    pub complete: bool,
}

impl Described {
    /// What may be in the table, as far as the marker tells.
    pub fn claims(&self) -> Vec<Claim> {
        let BatchOptions { parameters, mode, sessions, rollback, .. } = self.options;
        let slices = slices(parameters.rows, sessions).into_iter();
        slices
            .map(|slice| match (self.complete, rollback) {
                (_, true) => Claim::none(slice),
                (true, false) => Claim::all(slice),
                (false, false) => Claim::unknown(slice, mode.is_all_or_nothing()),
            })
            .collect()
    }
}

/// What a marker holds, as its columns.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    pub format: i32,
    pub rows: i32,
    pub seed: i64,
    pub sessions: i32,
    pub mode: String,
    pub is_rollback: bool,
    pub is_complete: bool,
}

impl Marker {
    pub fn of(options: &BatchOptions) -> Marker {
        Marker {
            format: MARKER_FORMAT,
            rows: options.parameters.rows.cast_signed(),
            seed: options.parameters.seed.0.cast_signed(),
            sessions: options.sessions.cast_signed(),
            mode: options.mode.as_str().to_string(),
            is_rollback: options.rollback,
            is_complete: false,
        }
    }

    fn described(&self) -> Result<Described, BatchError> {
        if self.format != MARKER_FORMAT {
            return Err(BatchError::OtherFormat { found: self.format });
        }
        let damaged = |what: &str| BatchError::Damaged(what.to_string());
        let rows = u32::try_from(self.rows).ok().filter(|rows| *rows > 0);
        let sessions = u32::try_from(self.sessions).ok().filter(|sessions| *sessions > 0);
        let options = BatchOptions {
            parameters: Parameters {
                rows: rows.ok_or_else(|| damaged("no number of rows"))?,
                seed: RootSeed(self.seed.cast_unsigned()),
            },
            mode: self.mode.parse().map_err(|error: underlay_core::words::UnknownWord| {
                BatchError::Damaged(error.to_string())
            })?,
            // Nothing that is in the table depends on it.
            place: Loop::Client,
            sessions: sessions.ok_or_else(|| damaged("no number of sessions"))?,
            rollback: self.is_rollback,
        };
        Ok(Described { options, complete: self.is_complete })
    }
}

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
        match target.engine {
            Engine::Postgresql => postgres::create(&target, &marker).await,
            Engine::Mariadb => mariadb::create(&target, &marker).await,
        }
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
            match target.engine {
                Engine::Postgresql => postgres::mark_complete(&target).await,
                Engine::Mariadb => mariadb::mark_complete(&target).await,
            }
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
        match target.engine {
            Engine::Postgresql => postgres::verify(target, parameters, claims).await,
            Engine::Mariadb => mariadb::verify(target, parameters, claims).await,
        }
    }))
}

/// Rows per second of the column `sj`, which the server filled in: second since the first row's, rows. Seconds
/// without rows are missing. Blocks.
pub fn rows_by_server_clock(target: &Target) -> Result<Vec<(u32, u64)>, BatchError> {
    on_runtime(target.stop.unless(async {
        match target.engine {
            Engine::Postgresql => postgres::rows_by_server_clock(target).await,
            Engine::Mariadb => mariadb::rows_by_server_clock(target).await,
        }
    }))
}

/// What table a database holds. Blocks.
pub fn describe(target: &Target) -> Result<Described, BatchError> {
    on_runtime(async {
        match target.engine {
            Engine::Postgresql => postgres::marker(target).await,
            Engine::Mariadb => mariadb::marker(target).await,
        }
    })?
    .described()
}

/// Removes the table, if Underlay made it. Blocks.
pub fn drop_schema(target: &Target) -> Result<(), BatchError> {
    on_runtime(target.stop.unless(async {
        match target.engine {
            Engine::Postgresql => postgres::drop_schema(target).await,
            Engine::Mariadb => mariadb::drop_schema(target).await,
        }
    }))
}

/// Column names in the order of the generator: number, texts, bytes.
fn columns(engine: Engine) -> String {
    match engine {
        Engine::Postgresql => postgres::columns(),
        Engine::Mariadb => mariadb::columns(),
    }
}

/// A block that the server carries out: it inserts these rows one after the other, each in a transaction of its own if
/// `commits`.
fn loop_over(engine: Engine, rows: &[Row], commits: bool) -> String {
    match engine {
        Engine::Postgresql => postgres::loop_over(rows, commits),
        Engine::Mariadb => mariadb::loop_over(rows, commits),
    }
}

/// Settings of the sessions that insert.
fn settings(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::Postgresql => &[],
        Engine::Mariadb => mariadb::SETTINGS,
    }
}

fn on_runtime<T>(work: impl Future<Output = Result<T, BatchError>>) -> Result<T, BatchError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
