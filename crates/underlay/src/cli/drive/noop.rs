//! The load generator alone (`--noop`): what it could do at most with a database that takes no time. Sends nothing.

use serde_json::json;
use underlay_core::Nanos;
use underlay_driver::noop_ceiling;
use underlay_workload::transactional::Workload as WorkloadTrait;

use super::command::Command;
use crate::stop::{Stop, chain};

pub(super) fn run_noop<W: WorkloadTrait>(command: &Command<'_>, workload: W) -> Result<(), Stop> {
    let Some(users) = command.users else { return Ok(()) };
    let shape = workload.shape();
    let seed = command.common.seed();
    let ceiling = noop_ceiling(workload, seed, users.users(), users.duration().into())
        .map_err(|error| Stop::bad_input(chain(&error)))?;
    if command.common.json {
        outln!(
            "{:#}",
            json!({
                "transactions_per_second": ceiling.transactions_per_second,
                shape.headline.unit.to_lowercase(): ceiling.headline_rate,
                "cpu_ns_per_transaction": ceiling.cpu_ns_per_transaction,
            })
        );
    } else {
        outln!(
            "the generator alone: {:.0} transactions/s ({:.0} {}), {} of CPU per transaction",
            ceiling.transactions_per_second,
            ceiling.headline_rate,
            shape.headline.unit,
            Nanos(ceiling.cpu_ns_per_transaction as u64)
        );
    }
    Ok(())
}
