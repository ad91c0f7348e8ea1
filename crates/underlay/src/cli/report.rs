//! `underlay report`: a record's report as one HTML file.

use crate::cli::answer;
use crate::stop::Stop;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `underlay report`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The record.
    record: PathBuf,
    /// Where to write the page; by default next to the record.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Open it in the browser.
    #[arg(long)]
    open: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let analysis = answer::read(&arguments.record)?;
    let out = arguments.out.clone().unwrap_or_else(|| arguments.record.with_extension("html"));
    answer::write_report(&analysis, &out)?;
    outln!("{}", out.display());
    if arguments.open { answer::open_in_browser(&out) } else { Ok(()) }
}
