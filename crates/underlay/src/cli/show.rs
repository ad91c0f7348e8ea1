//! `underlay show`: a record's answer, or the text of something built in.

use crate::cli::answer;
use crate::cli::studies::Form;
use crate::stop::Stop;
use clap::Args;
use std::path::Path;
use underlay_study::{
    Builtin, DEFAULTS, builtin_designs, builtin_devices, builtin_io_profiles, builtin_studies,
};

/// Arguments of `underlay show`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A record, or the name of a built-in study, design, device or block load, or `defaults`.
    what: String,
    /// Print the analysis as JSON.
    #[arg(long)]
    json: bool,
}

/// Carries out the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    if let Some(text) = builtin_text(&arguments.what) {
        out!("{text}");
        return Ok(());
    }
    let path = Path::new(&arguments.what);
    if !path.exists() {
        return Err(Stop::bad_input(format!(
            "there is no record and nothing built in called `{}`",
            arguments.what
        ))
        .with_hint("`underlay list` names what is built in; records are files ending in .sqlite"));
    }
    let form = if arguments.json { Form::Json } else { Form::Text };
    answer::print(&answer::read(path)?, form)
}

fn builtin_text(name: &str) -> Option<&'static str> {
    if name == "defaults" {
        return Some(DEFAULTS);
    }
    let named = |list: &'static [Builtin]| list.iter().find(|builtin| builtin.name == name);
    named(builtin_studies())
        .or_else(|| named(builtin_designs()))
        .or_else(|| named(builtin_devices()))
        .or_else(|| named(builtin_io_profiles()))
        .map(|builtin| builtin.text.as_str())
}
