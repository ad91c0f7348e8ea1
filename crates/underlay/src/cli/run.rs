//! `underlay run`: runs a study, prints the result, writes the report next to the record.

use crate::cli::answer::{self, write_report};
use crate::cli::overrides::Overrides;
use crate::cli::simulation_options::SimulationOptions;
use crate::cli::studies::{self, Form};
use crate::lab::progress::{Bar, Progress};
use crate::lab::records::{Fresh, place};
use crate::lab::{Executed, execute, simulated};
use crate::stop::Stop;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `underlay run`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A study file, or the name of a built-in study such as `quickstart`.
    study: String,
    #[command(flatten)]
    overrides: Overrides,
    /// The record to write; by default a new one in `underlay-records/`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Start over instead of resuming an interrupted execution of the same study.
    #[arg(long)]
    fresh: bool,
    /// Hide the progress bar.
    #[arg(long)]
    no_progress: bool,
    /// Carry it out in virtual time on models of engine and storage: no server, no root, nothing but a record.
    #[arg(long)]
    simulate: bool,
    #[command(flatten)]
    simulation: SimulationOptions,
    /// Print the analysis as JSON instead of the summary.
    #[arg(long)]
    json: bool,
    /// Open the report in the browser afterwards.
    #[arg(long)]
    open: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let source = studies::find(&arguments.study)?;
    let options = arguments.overrides.to_options(arguments.out.clone());
    let form = if arguments.json { Form::Json } else { Form::Text };
    let (_, plan) = match arguments.simulate {
        true => studies::plan_for_any_host(&source, &options, form)?,
        false => studies::plan(&source, &options, form)?,
    };
    let simulation = match arguments.simulate {
        true => Some(arguments.simulation.how(&plan)?),
        false => None,
    };
    if let Some(how) = &simulation {
        simulated::require(&plan, &how.assumed)?;
    }
    // A simulation is never resumed: starting over takes less time than deciding whether to.
    let is_fresh = arguments.fresh || arguments.simulate;
    let fresh = if is_fresh { Fresh::Yes } else { Fresh::No };
    let place = place(&plan.name, &source, &options, fresh)?;
    let bar = if arguments.no_progress { Bar::Never } else { Bar::Automatic };
    let mut progress = Progress::new(bar);
    let executed = match &simulation {
        Some(how) => simulated::execute(&plan, how, &place, &mut progress),
        None => execute(&plan, &place, &mut progress),
    };
    drop(progress);
    let Executed { record, outcome } = executed?;

    // Show what was recorded even if the execution failed.
    let shown = answer::read(&record).and_then(|analysis| {
        answer::print(&analysis, form)?;
        let report = record.with_extension("html");
        write_report(&analysis, &report)?;
        errln!("record: {}\nreport: {}", record.display(), report.display());
        if arguments.open { answer::open_in_browser(&report) } else { Ok(()) }
    });
    // The reason why the execution ended is more important than what became of its report.
    outcome.and(shown)
}
