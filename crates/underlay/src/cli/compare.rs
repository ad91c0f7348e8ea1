//! `underlay compare`: two records side by side, with all other differences between them.

use crate::cli::answer;
use crate::cli::studies::Form;
use crate::cli::terminal;
use crate::stop::{Stop, chain};
use clap::Args;
use std::path::PathBuf;
use underlay_report::{
    Colour, CompareError, CompareOptions, IdentityPolicy, compare, comparison_summary,
};

/// Arguments of `underlay compare`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The first record: the baseline.
    a: PathBuf,
    /// The second record.
    b: PathBuf,
    /// One design of each record; by default, all designs with the same name in both.
    #[arg(long, value_name = "A,B", value_parser = design_pair)]
    designs: Option<(String, String)>,
    /// Compare even when the workloads differ (other schema, procedures, size, seed).
    #[arg(long)]
    allow_different_workloads: bool,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let (a, b) = (answer::open(&arguments.a)?, answer::open(&arguments.b)?);
    let identity = if arguments.allow_different_workloads {
        IdentityPolicy::AllowDifferent
    } else {
        IdentityPolicy::RequireEqual
    };
    let comparison =
        compare(&a, &b, &CompareOptions { identity, designs: arguments.designs.clone() })
            .map_err(|error| refused(&error))?;
    match if arguments.json { Form::Json } else { Form::Text } {
        Form::Json => {
            let json = serde_json::to_string_pretty(&comparison)
                .map_err(|error| Stop::internal(&error))?;
            outln!("{json}");
        }
        Form::Text => {
            let colour = if terminal::colours_on_stdout() { Colour::Always } else { Colour::Never };
            out!("{}", comparison_summary(&comparison, terminal::width(), colour));
        }
    }
    Ok(())
}

/// Why the records are not compared, and what would.
fn refused(error: &CompareError) -> Stop {
    let stop = Stop::not_comparable(chain(error));
    match error {
        CompareError::DifferentWorkload { is_same_measure: true, .. } => {
            stop.with_hint("to compare them anyway, add --allow-different-workloads")
        }
        CompareError::DifferentWorkload { is_same_measure: false, .. } => stop.with_hint(
            "their headline metrics count different things, so a ratio would have no meaning",
        ),
        _ => stop,
    }
}

/// One design of each record, separated by a comma.
fn design_pair(text: &str) -> Result<(String, String), String> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [a, b] if !a.is_empty() && !b.is_empty() => Ok((a.to_string(), b.to_string())),
        _ => Err("give one design of each record, separated by a comma: `nvme,sata`".to_string()),
    }
}
