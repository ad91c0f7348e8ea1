//! `underlay trend`: many records of one study over time, with the changes of the level.

use crate::cli::answer;
use crate::cli::terminal;
use crate::lab::records::ENDING;
use crate::stop::{Stop, chain};
use clap::Args;
use std::path::{Path, PathBuf};
use underlay_record::Record;
use underlay_report::{Colour, TrendError, trend, trend_summary};

/// Arguments of `underlay trend`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A folder with records (files ending in `.sqlite`).
    directory: PathBuf,
    /// Only the records of this study; needed where the folder has several.
    #[arg(long, value_name = "NAME")]
    study: Option<String>,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let records = records(&arguments.directory)?;
    let trend = trend(&records, arguments.study.as_deref()).map_err(|error| {
        let stop = Stop::bad_input(chain(&error));
        match error {
            TrendError::SeveralStudies(_) => stop.with_hint("name one with --study"),
            TrendError::NoRecord(_) => stop.with_hint(format!(
                "records are files that end in `.{ENDING}` in {}",
                arguments.directory.display()
            )),
            TrendError::Read(_) => stop,
        }
    })?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&trend).map_err(|error| Stop::internal(&error))?;
        outln!("{json}");
    } else {
        let colour = if terminal::colours_on_stdout() { Colour::Always } else { Colour::Never };
        out!("{}", trend_summary(&trend, terminal::width(), colour));
    }
    Ok(())
}

/// The records in a folder. What cannot be opened is reported and left out: one damaged file must not hide the others.
fn records(directory: &Path) -> Result<Vec<Record>, Stop> {
    let unreadable = |error: std::io::Error| {
        Stop::bad_input(format!("could not read the folder {}: {error}", directory.display()))
    };
    let entries = std::fs::read_dir(directory).map_err(unreadable)?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            paths.push(path);
        }
    }
    paths.sort();
    let open = |path: PathBuf| {
        answer::open(&path).map_err(|stop| errln!("left out: {}: {stop}", path.display())).ok()
    };
    Ok(paths.into_iter().filter_map(open).collect())
}
