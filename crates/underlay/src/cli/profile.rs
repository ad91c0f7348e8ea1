//! `underlay profile`: what transactions cost in a recorded run, as a file for simulations.

use crate::cli::recorded_workload::{RecordedWorkload, Taken};
use crate::cli::whole_file;
use crate::cli::whole_number::whole_number;
use crate::stop::Stop;
use clap::Args;
use std::path::PathBuf;
use underlay_simulation::databases::Effort;

/// Arguments of `underlay profile`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The record of a study with one database.
    record: PathBuf,
    /// The design whose runs are taken; by default the first of the study.
    #[arg(long, value_name = "NAME")]
    design: Option<String>,
    /// What the storage of that design is like: a design, a device, or a file, such as one that
    /// `underlay calibrate` wrote. Needed if it is real storage.
    #[arg(long, value_name = "DESIGN")]
    measured_as: Option<String>,
    /// Only the windows at this number of users; by default all.
    #[arg(long, value_name = "N", value_parser = whole_number)]
    users: Option<u64>,
    /// Cores of the host that the record was made on, where the server had no CPU limit. Default:
    /// those in the record.
    #[arg(long, value_name = "N", value_parser = whole_number)]
    cores: Option<u64>,
    /// Write the profile here instead of printing it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let taken = Taken {
        design: arguments.design.as_deref(),
        storage: arguments.measured_as.as_deref(),
        cores: arguments.cores,
    };
    let workload = RecordedWorkload::read(&arguments.record, taken)?;
    let mut rungs = workload.rungs();
    if let Some(users) = arguments.users {
        let known: Vec<String> = rungs.iter().map(u32::to_string).collect();
        rungs.retain(|rung| u64::from(*rung) == users);
        if rungs.is_empty() {
            return Err(Stop::bad_input(format!("no window has {users} users"))
                .with_hint(format!("measured were {} users", known.join(", "))));
        }
    }
    let file = workload.profile(&rungs, Effort::PRECISE)?.file;
    let text = file.to_toml();
    match &arguments.out {
        None => out!("{text}"),
        Some(path) => whole_file::write(path, |file| file.write_all(text.as_bytes()))?,
    }
    Ok(())
}
