//! `underlay check`: a study's plan, or all of its problems at once. Changes nothing.

use crate::cli::overrides::Overrides;
use crate::cli::studies::{self, Form};
use crate::cli::terminal;
use crate::lab::require_emulation;
use crate::stop::Stop;
use clap::Args;
use underlay_study::{plan_json, render_plan};

/// Arguments of `underlay check`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A study file, or the name of a built-in study.
    study: String,
    #[command(flatten)]
    overrides: Overrides,
    /// Print the plan, or the problems, as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let source = studies::find(&arguments.study)?;
    let form = if arguments.json { Form::Json } else { Form::Text };
    let (_, plan) = studies::plan(&source, &arguments.overrides.to_options(None), form)?;
    match form {
        Form::Json => outln!("{:#}", plan_json(&plan)),
        Form::Text => out!("{}", render_plan(&plan, terminal::width())),
    }
    require_emulation(&plan)
}
