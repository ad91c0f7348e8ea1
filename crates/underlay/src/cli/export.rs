//! `underlay export`: a record's data for other programs.

use crate::cli::answer;
use crate::stop::{Stop, chain};
use clap::Args;
use std::path::PathBuf;
use underlay_record::{export_csv, export_json_lines};

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
        export_csv(&record, folder).map_err(|error| Stop::host(chain(&error)))?;
        outln!("{}", folder.display());
    }
    if let Some(path) = &arguments.jsonl {
        let file = std::fs::File::create(path)
            .map_err(|error| Stop::host(format!("could not write {}: {error}", path.display())))?;
        export_json_lines(&record, &mut std::io::BufWriter::new(file))
            .map_err(|error| Stop::host(chain(&error)))?;
        outln!("{}", path.display());
    }
    Ok(())
}
