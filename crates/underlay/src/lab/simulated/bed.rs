//! What is fitted to published numbers before a study at full size is simulated, and how a record
//! says it: processor times.
//!
//! Not here: how they are fitted; that is `simulation::databases::processor_fit`.

use std::collections::BTreeMap;
use underlay_simulation::databases::{FACTORS, FitPoint, Found, ProcessorFit};
use underlay_study::{DatastoreKind, Plan};

use super::inputs::{How, seed_of};
use crate::lab::interrupt;
use crate::stop::{Stop, chain};

/// Processor times, and what they were fitted to.
pub(super) struct Bed {
    processors: Option<ProcessorFit>,
}

impl Bed {
    /// Fits processor times to a published number of the plan. Demands that were measured stay as they are.
    ///
    /// # Errors
    /// A scenario that cannot be simulated, a request to stop.
    pub(super) fn of(plan: &Plan, how: &How) -> Result<Bed, Stop> {
        let point = FitPoint::of(plan).filter(|_| how.assumed.demands.is_none());
        let Some(point) = point else { return Ok(Bed { processors: None }) };
        let goes_on = || !interrupt::requested();
        let fit = point.fit(plan, &how.assumed, seed_of(plan, 0), &goes_on);
        let processors = fit.map_err(|error| Stop::bad_input(chain(&error)))?;
        if !goes_on() {
            return Err(Stop::interrupted("stopped before the first run".to_string()));
        }
        Ok(Bed { processors })
    }

    /// Processor times are so many times those of the demands.
    pub(super) fn factor(&self) -> f64 {
        self.processors.as_ref().and_then(|fit| fit.found).map_or(1.0, |found| found.factor)
    }

    /// For the record.
    pub(super) fn sentences(&self, plan: &Plan) -> String {
        let stacks: BTreeMap<&str, f64> = plan
            .plans()
            .iter()
            .flat_map(|point| &point.designs)
            .filter_map(|design| match &design.kind {
                DatastoreKind::Cluster(cluster) => {
                    let per_io = cluster.spec.settings.stack.per_io.0 as f64 / 1e3;
                    (per_io > 0.0).then_some((design.name.as_str(), per_io))
                }
                DatastoreKind::Path { .. } | DatastoreKind::Emulated { .. } => None,
            })
            .collect();
        let of_all: Vec<String> = stacks
            .iter()
            .map(|(design, per_io)| format!("{per_io:.1} us per I/O in {design}"))
            .collect();
        let stacks = match of_all.is_empty() {
            true => "Storage stacks of hosts cost no time.".to_string(),
            false => format!("Storage stacks of hosts cost {}.", of_all.join(", ")),
        };
        let Some(fit) = &self.processors else { return stacks };
        let ProcessorFit { point, found } = fit;
        let users = match plan.workload.kind.job_sessions() {
            Some(_) => String::new(),
            None => format!(" at {} users", point.users),
        };
        let number = format!("{}{users} in {}", point.value, plan.designs[point.design].title);
        match found {
            Some(Found { factor, .. }) => format!(
                "{stacks} Processor times are {factor:.2} times those of the demands, fitted to \
                 one published number: {number}."
            ),
            None => format!(
                "{stacks} Processor times are those of the demands: no factor from {} to {} gives \
                 the published {number}.",
                FACTORS.0, FACTORS.1
            ),
        }
    }
}
