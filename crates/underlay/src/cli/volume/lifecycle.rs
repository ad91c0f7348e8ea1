//! `underlay volume start`, `stop` and `rm`.

use super::data_directory::{data_directory, program, running, stop as stopped_by};
use super::show;
use crate::lab::interrupt;
use crate::stop::Stop;
use clap::Args;
use std::path::PathBuf;
use underlay_datastore::persistent::Forced;

/// Arguments of `underlay volume start`.
#[derive(Debug, Args)]
pub struct StartArguments {
    /// The directory of the datastore.
    directory: PathBuf,
    /// Print the datastore as JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `underlay volume stop`.
#[derive(Debug, Args)]
pub struct StopArguments {
    /// The directory of the datastore.
    directory: PathBuf,
    /// Stop even if volumes are in use; their users get I/O errors.
    #[arg(long)]
    force: bool,
}

/// Arguments of `underlay volume rm`.
#[derive(Debug, Args)]
pub struct RmArguments {
    /// The directory of the datastore.
    directory: PathBuf,
    /// The volume.
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    /// The whole datastore: all volumes, all data, the directory.
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// Starts a datastore; an interrupt stops it again.
pub fn start(arguments: &StartArguments) -> Result<(), Stop> {
    interrupt::install();
    let connection = data_directory(&arguments.directory)?
        .start(&program()?, &interrupt::requested)
        .map_err(|error| stopped_by(&error))?;
    let status = connection.status().map_err(|error| stopped_by(&error))?;
    if arguments.json {
        show::json(&status)?;
    } else {
        show::datastore(&status);
    }
    let unmounted: Vec<&str> =
        status.volumes.iter().flat_map(|volume| &volume.warnings).map(String::as_str).collect();
    if unmounted.is_empty() {
        return Ok(());
    }
    Err(Stop::run_failed(format!("the datastore runs, but {}", unmounted.join("\n"))))
}

/// Stops a datastore; succeeds if it does not run.
pub fn stop(arguments: &StopArguments) -> Result<(), Stop> {
    let forced = if arguments.force { Forced::Yes } else { Forced::No };
    data_directory(&arguments.directory)?.stop(forced).map_err(|error| stopped_by(&error))
}

/// Removes a volume or everything.
pub fn remove(arguments: &RmArguments) -> Result<(), Stop> {
    if let Some(name) = &arguments.name {
        let connection = running(&arguments.directory)?;
        return connection.remove(name).map_err(|error| stopped_by(&error));
    }
    data_directory(&arguments.directory)?.remove().map_err(|error| stopped_by(&error))
}
