//! `underlay datastore-supervisor` (hidden): the process that holds a persistent datastore while it runs.

use crate::lab::interrupt;
use crate::stop::{Stop, chain};
use clap::Args;
use std::path::PathBuf;

/// Arguments of the supervisor process.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of the datastore.
    #[arg(long)]
    directory: PathBuf,
}

/// Holds the datastore until it is asked to stop.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    interrupt::install();
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let program = std::env::current_exe()
        .map_err(|error| Stop::host(format!("could not find this program's own file: {error}")))?;
    underlay_datastore::persistent::keep(&arguments.directory, &program, &interrupt::requested)
        .map_err(|error| Stop::run_failed(chain(&error)))
}
