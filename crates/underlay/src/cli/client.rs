//! `underlay client` (hidden): the process of a load generator that runs within the limits of the server.

use crate::lab::client;
use crate::stop::Stop;
use clap::Args;
use std::path::PathBuf;

/// Arguments of the client process.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The socket of the lab that started it.
    #[arg(long)]
    socket: PathBuf,
}

/// Generates load until it is asked to stop.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    client::serve(&arguments.socket)
}
