//! `underlay datastore-server` (hidden): the process that serves the volumes of an emulated datastore.

use crate::stop::{Stop, chain};
use clap::Args;
use std::path::PathBuf;

/// Arguments of the server process.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The configuration that the lab wrote.
    #[arg(long)]
    config: PathBuf,
}

/// Serves until it is asked to stop.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    underlay_datastore::serve(&arguments.config).map_err(|error| Stop::run_failed(chain(&error)))
}
