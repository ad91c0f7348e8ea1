//! What is fitted to published numbers before a study at full size is simulated, and how a record
//! says it: processor times.
//!
//! Not here: how they are fitted; that is `simulation::databases::processor_fit`.

use serde_json::{Value, json};
use underlay_simulation::databases::{Effort, FACTORS, FitPoint, Found, ProcessorFit};
use underlay_study::Plan;

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

    /// What the numbers rest on, in words and as data.
    pub(super) fn described(&self, how: &How, plan: &Plan, stacks: &str) -> (String, Value) {
        let Effort { precision, window_at_most, .. } = how.effort;
        let windows = match precision {
            Some(share) => format!(
                "A window ends when the 95 % interval of its throughput is within {:.0} % of it, or after {window_at_most}.",
                share * 100.0
            ),
            None => "Windows last as long as the study says.".to_string(),
        };
        let text = format!(
            "Simulated in virtual time by models of engine and storage. Processors without a limit: \
             {} cores. Demands: {}. {windows} {}",
            how.assumed.cores,
            how.demands_source,
            self.sentences(plan, stacks)
        );
        let data = json!({
            "cores": how.assumed.cores,
            "demands": how.demands_source,
            "precision": precision,
            "processor_factor": self.factor(),
        });
        (text, data)
    }

    fn sentences(&self, plan: &Plan, stacks: &str) -> String {
        let Some(fit) = &self.processors else { return stacks.to_string() };
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
