//! `underlay show`: a record's result, or the text of a built-in.

use crate::cli::answer;
use crate::cli::list;
use crate::cli::studies::Form;
use crate::stop::Stop;
use clap::Args;
use serde_json::json;
use std::path::Path;
use underlay_study::{
    Builtin, DEFAULTS, EngineKind, builtin_designs, builtin_devices, builtin_io_profiles,
    builtin_studies,
};

/// Arguments of `underlay show`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A record, or the name of a built-in study, design, device or block load, or `defaults`.
    what: String,
    /// Print as JSON: the analysis of a record, or the text of a built-in.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    if let Some(text) = builtin_text(&arguments.what) {
        match arguments.json {
            true => outln!("{}", json!({ "name": arguments.what, "text": text })),
            false => out!("{text}"),
        }
        return Ok(());
    }
    let path = Path::new(&arguments.what);
    if !path.exists() {
        if let Some(hint) = kind_without_text(&arguments.what) {
            return Err(Stop::bad_input(format!(
                "`{}` is built in but has no file to show",
                arguments.what
            ))
            .with_hint(hint));
        }
        return Err(Stop::bad_input(format!(
            "there is no record or built-in called `{}`",
            arguments.what
        ))
        .with_hint("`underlay list` shows all built-ins; records are files ending in .sqlite"));
    }
    let form = if arguments.json { Form::Json } else { Form::Text };
    answer::print(&answer::read(path)?, form)
}

/// What tells more of something built in that is no file.
fn kind_without_text(name: &str) -> Option<String> {
    if name == "block" {
        return Some(
            "`underlay show defaults` explains the keys of [workload.block], `underlay io --help` the command for one load"
                .to_string(),
        );
    }
    if name == "backup" {
        return Some("`underlay show defaults` explains the keys of [workload.backup]".to_string());
    }
    if list::WORKLOADS.iter().any(|(workload, _)| *workload == name) {
        return Some(format!(
            "`underlay show defaults` explains the keys of [workload.{name}], `underlay drive {name} --help` its options"
        ));
    }
    let engine = EngineKind::ALL.iter().any(|engine| engine.as_str() == name);
    engine.then(|| {
        "`underlay list engines` lists the servers found, `underlay show defaults` explains [engine]".to_string()
    })
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
