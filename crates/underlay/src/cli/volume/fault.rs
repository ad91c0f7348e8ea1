//! `underlay volume fault`: breaks something of a running datastore, or mends it.

use super::{running, stop};
use crate::stop::Stop;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use underlay_model::DeviceCondition;

/// Arguments of `underlay volume fault`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of the datastore.
    directory: PathBuf,
    #[command(subcommand)]
    fault: Fault,
}

#[derive(Debug, Subcommand)]
enum Fault {
    /// Everything the device does takes longer.
    Slow {
        /// The device.
        device: String,
        /// How many times as long.
        #[arg(long)]
        factor: f64,
    },
    /// The device accepts requests and answers none, until it is mended.
    Stuck {
        /// The device.
        device: String,
    },
    /// The device fails requests now and then.
    Erroring {
        /// The device.
        device: String,
        /// How often: 0.01 = one request in a hundred.
        #[arg(long)]
        probability: f64,
    },
    /// The device is gone: every request fails.
    Lost {
        /// The device.
        device: String,
    },
    /// The device works again as its profile says. What was lost is back with its data.
    Mend {
        /// The device.
        device: String,
    },
    /// Cut the power: what is volatile is lost or torn, and all I/O fails.
    PowerCut,
    /// Restore the power, and mount the volumes again. Nothing may hold files on them open.
    PowerOn,
}

/// Carries out the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let connection = running(&arguments.directory)?;
    let set = |device: &str, condition: DeviceCondition| {
        if let Some(problem) = condition.problem() {
            return Err(Stop::bad_input(problem));
        }
        connection.set_condition(device, condition).map_err(|error| stop(&error))
    };
    match &arguments.fault {
        Fault::Slow { device, factor } => set(device, DeviceCondition::Slow { factor: *factor }),
        Fault::Stuck { device } => set(device, DeviceCondition::Stuck),
        Fault::Erroring { device, probability } => {
            set(device, DeviceCondition::Erroring { probability: *probability })
        }
        Fault::Lost { device } => set(device, DeviceCondition::Lost),
        Fault::Mend { device } => set(device, DeviceCondition::Healthy),
        Fault::PowerCut => connection.power_cut().map_err(|error| stop(&error)),
        Fault::PowerOn => connection.power_on().map_err(|error| stop(&error)),
    }
}
