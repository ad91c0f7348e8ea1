//! `underlay volume`: emulated volumes for any program, in a directory of the user's choice.

mod create;
mod data_directory;
mod fault;
mod lifecycle;
mod list;
mod show;
mod stat;
mod stat_cluster;

use crate::stop::Stop;
use clap::{Args, Subcommand};

/// Arguments of `underlay volume`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "A datastore is stored in a directory: its devices, its volumes and all their data. The \
first `create` creates it. It runs until `stop`, also after this program has ended; `start` starts it again with all \
its data.

Example:
  underlay volume create /srv/store data --size 20GiB --device dc1500m-960 --format ext4
  \
underlay volume create /srv/store vm --size 8GiB
  underlay volume stat /srv/store
  underlay volume fault /srv/store \
slow dc1500m-960 --factor 10
  underlay volume stop /srv/store";

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a volume, and its datastore if there is none yet.
    Create(create::Arguments),
    /// Show a datastore's devices and volumes, and how to reach them.
    List(list::Arguments),
    /// Show IOPS, MB/s and latencies of the volumes, over an interval and since the start.
    Stat(stat::Arguments),
    /// Inject or repair a fault: a slow, stuck, failing or lost device, a power cut.
    Fault(fault::Arguments),
    /// Remove a volume, or with `--all` the whole datastore, and its data.
    Rm(lifecycle::RmArguments),
    /// Start a datastore with all its volumes.
    Start(lifecycle::StartArguments),
    /// Stop a datastore; its data stays.
    Stop(lifecycle::StopArguments),
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    match &arguments.command {
        Command::Create(arguments) => create::run(arguments),
        Command::List(arguments) => list::run(arguments),
        Command::Stat(arguments) => stat::run(arguments),
        Command::Fault(arguments) => fault::run(arguments),
        Command::Rm(arguments) => lifecycle::remove(arguments),
        Command::Start(arguments) => lifecycle::start(arguments),
        Command::Stop(arguments) => lifecycle::stop(arguments),
    }
}
