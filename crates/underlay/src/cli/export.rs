//! `underlay export`: a record's data for other programs.

use crate::cli::answer;
use crate::cli::whole_file;
use crate::stop::{Stop, chain};
use clap::Args;
use std::path::{Path, PathBuf};
use underlay_record::{ExportError, export_csv, export_json_lines};

/// Arguments of `underlay export`.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct Arguments {
    /// The record.
    #[arg(group = "input", required = true)]
    record: PathBuf,
    /// Write one CSV file per table and source into this folder.
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Write everything as JSON, one object per line, to this file.
    #[arg(long, value_name = "FILE")]
    jsonl: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    if arguments.csv.is_none() && arguments.jsonl.is_none() {
        return Err(
            Stop::bad_input("nothing to write").with_hint("use --csv DIR, --jsonl FILE, or both")
        );
    }
    let record = answer::open(&arguments.record)?;
    if let Some(folder) = &arguments.csv {
        export_csv(&record, folder).map_err(|error| stopped(&error, &arguments.record))?;
        outln!("{}", folder.display());
    }
    if let Some(path) = &arguments.jsonl {
        let mut unreadable = None;
        let written = whole_file::write(path, |file| match export_json_lines(&record, file) {
            Ok(()) => Ok(()),
            Err(ExportError::Stream(error)) => Err(error),
            Err(error) => {
                unreadable = Some(stopped(&error, &arguments.record));
                Err(std::io::Error::other("its record cannot be read"))
            }
        });
        unreadable.map_or(written, Err)?;
        outln!("{}", path.display());
    }
    Ok(())
}

/// A record that cannot be read is bad input, as it is for the commands that show it.
fn stopped(error: &ExportError, record: &Path) -> Stop {
    match error {
        ExportError::Read(error) => answer::unreadable(error, record),
        ExportError::NotEmpty { .. } => Stop::bad_input(chain(error)),
        ExportError::Write { .. } | ExportError::Stream(_) => Stop::host(chain(error)),
    }
}
