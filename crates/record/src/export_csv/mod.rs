//! Export to a directory of CSV files: one per table, one per source of ticks.
//!
//! RFC 4180: comma, CRLF-free (`\n`), quotes doubled. Missing values are empty. Times are nanoseconds
//! on the run's clock. `COLUMNS.md` in the directory documents every column; it is generated from the same
//! declarations as the headers, so that the two cannot differ.

mod columns;
mod csv_file;
mod events;
mod execution;
mod measurements;

use std::path::{Path, PathBuf};

use crate::error::ExportError;
use crate::record::Record;

use csv_file::Directory;
use events::export_events;
use execution::{export_execution, export_runs};
use measurements::{export_distributions, export_ticks, export_transactions, export_waits};

/// Writes the record into `directory`, which must not exist yet or be empty. Returns the files written.
pub fn export_csv(record: &Record, directory: &Path) -> Result<Vec<PathBuf>, ExportError> {
    let mut out = Directory::open(directory)?;
    let runs = record.runs()?;
    export_execution(record, &mut out)?;
    export_runs(record, &runs, &mut out)?;
    export_events(record, &runs, &mut out)?;
    export_transactions(record, &runs, &mut out)?;
    export_distributions(record, &runs, &mut out)?;
    export_waits(record, &runs, &mut out)?;
    export_ticks(record, &runs, &mut out)?;
    out.finish()
}
