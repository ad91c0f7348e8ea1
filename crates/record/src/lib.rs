//! The evidence: one SQLite file with the plan, events, series, histograms and findings.
//!
//! **One file per execution of a study.** It holds all runs (design x repeat) of that execution and not
//! one file per run, because the interleaved repeats (A B B A) are one experiment: the comparison, the
//! order of the runs and what happened between them belong to the result, and a file that is copied
//! elsewhere must still be able to answer the study's question.
//!
//! **Raw values only.** Counters are stored as they were read, with the window in which they were
//! read; latencies as histograms per second and type. Rates, percentiles and intervals are computed on
//! reading, so that a better method can be applied to an old record.
//!
//! **Nothing committed is lost.** WAL mode: a `kill -9` at any moment leaves a readable file with
//! every committed tick. Ticks are committed with `synchronous=NORMAL` (no fsync each second, which would
//! disturb the storage under test if the record lies on it); milestones (begin and end of runs and phases,
//! checks, findings, documents) are committed with `synchronous=FULL`, which also makes all earlier
//! ticks durable, so that a power cut loses at most the ticks since the last milestone.
//!
//! **Nothing is deleted.** A resumed execution repeats its unfinished runs; what they replace stays in the
//! file, marked as superseded.
//!
//! Times in a run are nanoseconds since the writer's clock origin; each run carries the wall clock
//! time of that origin ([`Run::origin_wall_ns`]).
//!
//! What this crate deliberately does not do: statistics, verdicts, pages (see `underlay-report`),
//! threads (the caller owns the one writer thread and commits once per second), or knowledge of a database,
//! a datastore or the plan, which it keeps as the JSON it was given.

mod columns;
pub mod conventions;
mod entities;
mod error;
mod export_csv;
mod export_json_lines;
mod format;
mod lock;
mod manifest;
mod record;
mod recorder;
mod stored_histogram;
mod tick_row;
mod words;

pub use columns::{Column, Table};
pub use entities::{
    Check, Design, Document, Event, Finding, HistogramRow, Interval, NewPhase, NewRun, Phase,
    PhaseId, Run, RunEnd, RunId, Source, TransactionTick, WaitCount, WaitKey, WaitWindow,
};
pub use error::{ExportError, OpenError, ReadError, WriteError};
pub use export_csv::export_csv;
pub use export_json_lines::export_json_lines;
pub use format::FORMAT;
pub use manifest::{Execution, Manifest};
pub use record::Record;
pub use recorder::Recorder;
pub use stored_histogram::StoredHistogram;
pub use underlay_core::CheckOutcome;
pub use words::{
    CheckMoment, ExecutionStatus, PhaseKind, PhaseStatus, RunStatus, Severity, SourceStatus,
};
