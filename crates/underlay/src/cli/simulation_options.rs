//! What a simulation depends on, in addition to the study: options of `run
//! --simulate`, and what they share with others.

use crate::cli::cores::cores_of;
use crate::cli::recorded_workload::demands_of;
use crate::cli::whole_number::whole_number;
use crate::lab::simulated::How;
use crate::stop::Stop;
use clap::Args;
use std::path::PathBuf;
use underlay_simulation::databases::{Assumptions, Effort};
use underlay_study::Plan;

/// The options.
#[derive(Clone, Debug, Args)]
pub struct SimulationOptions {
    /// With a simulation: cores of hosts without a CPU limit. Default: those of this host.
    #[arg(long, value_name = "N", value_parser = whole_number, requires = "simulate")]
    cores: Option<u64>,
    /// With a simulation: the demands of transactions, as `underlay profile` writes them.
    #[arg(long, value_name = "FILE", requires = "simulate")]
    demands: Option<PathBuf>,
    /// With a simulation: every phase is as long as the study says. Otherwise a window ends when
    /// its throughput is known within 3 %, or after 60 s, and a warm-up after 20 s. Of block loads a
    /// window ends after 400,000 requests, and a warm-up after 0.5 s.
    #[arg(long, requires = "simulate")]
    full_length: bool,
}

impl SimulationOptions {
    /// How a plan is to be simulated.
    ///
    /// # Errors
    /// Values out of range, and demand profiles of no use.
    pub fn how(&self, plan: &Plan) -> Result<How, Stop> {
        let cores = cores_of(self.cores)?;
        let (demands, demands_source) = match &self.demands {
            None => (None, "the defaults of engine and workload".to_string()),
            Some(path) => (Some(demands_of(path, plan)?), path.display().to_string()),
        };
        Ok(How {
            assumed: Assumptions { demands, ..Assumptions::defaults(cores) },
            demands_source,
            effort: if self.full_length { Effort::FULL_LENGTH } else { Effort::OF_STUDIES },
        })
    }
}
