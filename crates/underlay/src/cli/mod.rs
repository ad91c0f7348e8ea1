//! The command line: one file per subcommand.
//!
//! Each file has the subcommand's arguments and a `run` function. Standard output carries
//! data, standard error carries progress, warnings and errors. Nothing here exits the process: `main`
//! turns the outcome into an exit code.

mod answer;
mod arrival_process;
mod calibrate;
mod check;
mod clean;
mod client;
mod compare;
mod complaints;
mod cores;
mod datastore_server;
mod datastore_supervisor;
mod designs;
mod doctor;
mod drive;
mod export;
mod io;
mod list;
mod overrides;
mod own_row;
mod predict;
mod profile;
mod recorded_workload;
mod report;
mod reproduce;
mod run;
mod schema;
mod show;
mod simulate;
mod simulation_options;
mod size;
mod studies;
mod target_options;
mod terminal;
mod trend;
mod volume;
mod whole_file;
mod whole_number;

use crate::exit_code;
use crate::output;
use crate::stop::Stop;
use clap::{CommandFactory, Parser, Subcommand};

/// Shows what a storage design does to a database.
#[derive(Debug, Parser)]
#[command(name = "underlay", version, propagate_version = true, after_help = after_help())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a study: a file, or a built-in one such as `quickstart`.
    Run(run::Arguments),
    /// Run published experiments at laptop size, and show published results next to ours on one page.
    Reproduce(reproduce::Arguments),
    /// Check a study and print its plan, or all of its problems. Changes nothing.
    Check(check::Arguments),
    /// List built-in studies, designs, devices, workloads and engines.
    List(list::Arguments),
    /// Show a record's result, or the text of a built-in study, design or profile.
    Show(show::Arguments),
    /// Compare two records.
    Compare(compare::Arguments),
    /// Show the throughput of many records of one study over time, and where it changed.
    Trend(trend::Arguments),
    /// Write a record's report as one HTML file.
    Report(report::Arguments),
    /// Write a record's data as CSV files.
    Export(export::Arguments),
    /// Run only the load generator, against any database.
    Drive(drive::Arguments),
    /// Run block loads on files and devices: profiles, rate curves, steady state, verification.
    Io(Box<io::Arguments>),
    /// Manage emulated volumes for any program: block devices, file systems, NBD.
    Volume(volume::Arguments),
    /// Simulate a block workload on a design, or published experiments, in virtual time.
    Simulate(simulate::Arguments),
    /// Write what transactions cost in a recorded run, for simulations of databases.
    Profile(profile::Arguments),
    /// Predict the recorded workload on other designs, next to a simulation of the record's own design.
    Predict(predict::Arguments),
    /// Find the smallest cluster of a family that carries a rate within a latency target, in virtual time.
    Size(Box<size::Arguments>),
    /// Measure a file or block device and write a device profile.
    Calibrate(calibrate::Arguments),
    /// Show this host's capabilities, and how to enable missing ones.
    Doctor(doctor::Arguments),
    /// Remove resources left behind by killed runs.
    Clean(clean::Arguments),
    /// Print the JSON Schema of study files.
    Schema(schema::Arguments),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// The process of a load generator within the server's limits (started by Underlay itself).
    #[command(hide = true)]
    Client(client::Arguments),
    /// The emulated datastore's server process (started by Underlay itself).
    #[command(hide = true)]
    DatastoreServer(datastore_server::Arguments),
    /// The process that holds a running datastore (started by `underlay volume`).
    #[command(hide = true, name = "datastore-supervisor")]
    DatastoreSupervisor(datastore_supervisor::Arguments),
}

fn after_help() -> String {
    let rows = exit_code::TABLE.iter().map(|(code, meaning)| format!("  {code:>3}  {meaning}\n"));
    format!(
        "Exit codes:\n{}\nStart with `underlay run quickstart`; write your own study from `underlay show example`.",
        rows.collect::<String>()
    )
}

/// Parses the arguments and runs the command.
///
/// # Errors
/// A [`Stop`] with its exit code. Usage errors are printed by the parser itself.
pub fn main() -> Result<(), Stop> {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { exit_code::BAD_INPUT } else { exit_code::OK };
            // Printing fails only when the reader is gone: there is no one left to report it to.
            let _ = error.print();
            return if code == exit_code::OK { Ok(()) } else { Err(Stop::silent(code)) };
        }
    };
    carry_out(cli.command)?;
    output::ended()
}

fn carry_out(command: Command) -> Result<(), Stop> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Trend(arguments) => trend::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Drive(arguments) => drive::run(&arguments),
        Command::Io(arguments) => io::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Size(arguments) => size::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Clean(arguments) => clean::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Volume(arguments) => volume::run(&arguments),
        Command::DatastoreSupervisor(arguments) => datastore_supervisor::run(&arguments),
        Command::Client(arguments) => client::run(&arguments),
        Command::DatastoreServer(arguments) => datastore_server::run(&arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "underlay", &mut script);
            out!("{}", String::from_utf8_lossy(&script));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
