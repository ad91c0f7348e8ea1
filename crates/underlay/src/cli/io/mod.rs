//! `underlay io`: block loads on files and devices, and verification of the data they wrote.
//!
//! In reading order: the request ([`options`], [`load_options`]), its targets ([`targets`], [`medium`]), its
//! execution ([`session`], which the lab's block loads carry out), and its result ([`text`], [`json`], [`recording`]).

mod json;
mod load_options;
mod medium;
mod options;
mod progress;
mod recording;
mod session;
mod targets;
mod text;
mod verify;

use crate::cli::complaints::Complaints;
use crate::exit_code;
use crate::lab::block::{Outcome, stop};
use crate::lab::interrupt;
use crate::stop::Stop;
use clap::{Args, Subcommand};

/// Arguments of `underlay io`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Targets:\n  a folder   a file of --size is created in it, filled, and removed at the end (--keep: not)\n  a \
    file or a block device   it is only read, unless the load writes; what is there is then destroyed, so a \
    file, or a device that holds anything known, must be named again with --destroy\n\nLoads are listed by \
    `underlay list io-profiles`; `underlay show NAME` prints one as a file to start your own from."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    load: options::LoadArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// After a crash or a power cut: compare targets with the journal written by `--journal`.
    Verify(verify::Arguments),
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    interrupt::install();
    if let Some(Command::Verify(arguments)) = &arguments.command {
        return verify::run(arguments);
    }
    let options = &arguments.load;
    let mut complaints = Complaints::default();
    let profile = load_options::profile(options, &mut complaints)?;
    options.check(&profile, &mut complaints);
    complaints.settle()?;
    let (outcome, left) = targets::with_targets(options, &profile, |targets, keep| {
        session::run(options, &profile, targets, keep)
    })?;
    match options.json {
        true => outln!("{:#}", json::outcome(options, &profile, &outcome)),
        false => out!("{}", text::outcome(options, &profile, &outcome)),
    }
    left.and(verdict(options, &outcome))
}

/// The exit code that the outcome deserves, the gravest first.
fn verdict(options: &options::LoadArguments, outcome: &Outcome) -> Result<(), Stop> {
    let wrong = outcome.violation_count();
    if wrong > 0 {
        return Err(Stop::check_violated(format!(
            "{wrong} blocks did not contain the data written to them: see above"
        )));
    }
    if let Some(failure) = outcome.failure() {
        return Err(Stop::run_failed(failure));
    }
    if outcome.interrupted {
        return Err(Stop::silent(exit_code::INTERRUPTED));
    }
    let (due, undelivered) = outcome.delivery();
    // The points of a curve above 100 % are meant to be more than the target can do.
    if !options.curve && undelivered as f64 > 0.01 * due as f64 {
        return Err(Stop::load_not_delivered(format!(
            "{undelivered} of {due} requests that were due were never started: the target did not keep up"
        ))
        .with_hint("lower --rate, or allow more in flight with --threads or --queue-depth"));
    }
    Ok(())
}
