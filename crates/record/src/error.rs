//! Errors per family of operations: opening, writing, reading, exporting.

use std::path::PathBuf;

use crate::entities::RunId;

/// Why a record could not be created, resumed or opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path is taken.
    #[error("`{}` already exists; choose another path", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// There is no such file.
    #[error("there is no record at `{}`", path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("`{}` is not an Underlay record", path.display())]
    NotARecord {
        /// The path.
        path: PathBuf,
    },
    /// A later version of Underlay wrote it.
    #[error(
        "the record `{}` has format {found}, and this program reads formats up to {supported}; \
         use the version of Underlay that wrote it, or a later one",
        path.display()
    )]
    NewerFormat {
        /// The path.
        path: PathBuf,
        /// The format found.
        found: i64,
        /// The latest format this program reads.
        supported: i64,
    },
    /// A finished execution has nothing to resume.
    #[error("the record `{}` is finished; there is nothing to resume", path.display())]
    Finished {
        /// The path.
        path: PathBuf,
    },
    /// Another process writes it.
    #[error("the record `{}` is being written by another process; wait until it ends", path.display())]
    Busy {
        /// The path.
        path: PathBuf,
    },
    /// The directory cannot be used.
    #[error("could not use the directory of the record `{}`", path.display())]
    Directory {
        /// The path of the record.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("could not open the record `{}`", path.display())]
    Sqlite {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// What is in it does not fit together.
    #[error("the record `{}` is damaged: {problem}", path.display())]
    Damaged {
        /// The path.
        path: PathBuf,
        /// What does not fit.
        problem: String,
    },
    /// The manifest could not be read.
    #[error("could not read the manifest of the record `{}`", path.display())]
    Manifest {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: Box<ReadError>,
    },
}

/// Why something could not be written to a record.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file system of the record is full.
    #[error("the disk of the record is full while writing {what}; free some space and resume")]
    DiskFull {
        /// What was being written.
        what: &'static str,
    },
    /// SQLite refused.
    #[error("could not write {what} to the record")]
    Sqlite {
        /// What was being written.
        what: &'static str,
        /// The cause.
        source: rusqlite::Error,
    },
    /// A number beyond what the format stores (2^63 - 1).
    #[error("{what} is too large to be stored: {value}")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// The value.
        value: u64,
    },
    /// The pair of design and repeat is already there.
    #[error("run {} has already finished design {design}, repeat {repeat}", finished.0)]
    AlreadyFinished {
        /// Index of the design.
        design: u32,
        /// The repeat.
        repeat: u32,
        /// The run that finished it.
        finished: RunId,
    },
    /// There is no such run or phase, or it has ended.
    #[error("{what} {id} is not running")]
    NotRunning {
        /// `run` or `phase`.
        what: &'static str,
        /// Its id.
        id: i64,
    },
    /// A tick for a source that was not declared in this run.
    #[error("source {source_index} was not declared for run {}", run.0)]
    UnknownSource {
        /// The run.
        run: RunId,
        /// The source.
        source_index: u32,
    },
    /// A tick with more values than its source declares.
    #[error("a tick of source `{name}` has {values} values, and only {series} series are declared")]
    TooManyValues {
        /// The source.
        name: String,
        /// Values given.
        values: usize,
        /// Series declared.
        series: usize,
    },
    /// A source was declared again with other series in place of the known ones.
    #[error("source `{name}` was declared again with a different series at position {position}")]
    SeriesChanged {
        /// The source.
        name: String,
        /// The first series that differs, from 0.
        position: usize,
    },
}

/// Why something could not be read from a record.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// SQLite refused.
    #[error("could not read {what} from the record")]
    Sqlite {
        /// What was being read.
        what: &'static str,
        /// The cause.
        source: rusqlite::Error,
    },
    /// A word that is not in its set.
    #[error("the record has `{word}` in place of {what}; it may be damaged")]
    UnknownWord {
        /// What belongs there.
        what: &'static str,
        /// What was found.
        word: String,
    },
    /// A negative number where none can be, or one out of range.
    #[error("the record has {value} as {what}, which is out of range; it may be damaged")]
    OutOfRange {
        /// What it is.
        what: &'static str,
        /// What was found.
        value: i64,
    },
    /// A document that is no JSON.
    #[error("{what} is not valid JSON; the record may be damaged")]
    Json {
        /// What was being read.
        what: &'static str,
        /// The cause.
        source: serde_json::Error,
    },
    /// A histogram that cannot be decoded.
    #[error("a histogram of {what} cannot be decoded; the record may be damaged")]
    Histogram {
        /// What it belongs to.
        what: &'static str,
        /// The cause.
        source: underlay_core::histogram::DecodeError,
    },
    /// A row of values whose length is no multiple of eight bytes.
    #[error("a tick has {bytes} bytes, which is not a multiple of 8; the record may be damaged")]
    RaggedRow {
        /// Its length.
        bytes: usize,
    },
}

/// Why a record could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The record could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output could not be written.
    #[error("could not write `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The output stream could not be written.
    #[error("could not write the lines")]
    Stream(#[source] std::io::Error),
    /// The directory holds something already.
    #[error("the directory `{}` is not empty; choose one that does not exist yet", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
}
