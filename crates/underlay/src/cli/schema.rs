//! `underlay schema`: the JSON Schema of study files, for editors.

use crate::stop::Stop;
use clap::Args;

/// Arguments of `underlay schema`.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Prints the schema.
pub fn run(_arguments: &Arguments) -> Result<(), Stop> {
    outln!("{:#}", underlay_study::json_schema());
    Ok(())
}
