//! What is fitted to published numbers before a study at full size is simulated, and how a record
//! says it: the cost of the hosts' storage stacks, and processor times.
//!
//! Not here: how a cost is fitted; that is `simulation::experiments` and
//! `simulation::databases::processor_fit`.

use std::collections::BTreeMap;
use underlay_model::target::Stack;
use underlay_simulation::databases::{FitPoint, ProcessorFit, stack_of};
use underlay_study::{DesignPlan, Plan};

use super::{How, seed_of};
use crate::lab::interrupt;
use crate::stop::{Stop, chain};

/// What is known of the test bed of a study.
pub(super) struct Bed {
    /// What the hosts' storage stacks cost, by the design; of those they are known of.
    stacks: BTreeMap<String, Stack>,
    processors: Option<ProcessorFit>,
}

impl Bed {
    /// Fits what is known of the designs of a plan. Demands that were measured stay as they are.
    ///
    /// # Errors
    /// A test bed that cannot be built, a request to stop.
    pub(super) fn of(plan: &Plan, how: &How) -> Result<Bed, Stop> {
        let mut stacks = BTreeMap::new();
        for design in plan.plans().iter().flat_map(|point| &point.designs) {
            if !stacks.contains_key(&design.name) {
                let stack = stack_of(plan, design);
                let stack = stack.map_err(|error| Stop::bad_input(chain(&error)))?;
                stacks.insert(design.name.clone(), stack.unwrap_or(Stack::NONE));
            }
        }
        stacks.retain(|_, stack| *stack != Stack::NONE);
        let mut bed = Bed { stacks, processors: None };
        let point = FitPoint::of(plan).filter(|_| how.assumed.demands.is_none());
        if let Some(point) = point {
            let stack = bed.stack(&plan.designs[point.design]);
            let goes_on = || !interrupt::requested();
            let fit = point.fit(plan, &how.assumed, stack, seed_of(plan, 0), &goes_on);
            bed.processors = fit.map_err(|error| Stop::bad_input(chain(&error)))?;
            if !goes_on() {
                return Err(Stop::interrupted("stopped before the first run".to_string()));
            }
        }
        Ok(bed)
    }

    /// The stack of a design's hosts.
    pub(super) fn stack(&self, design: &DesignPlan) -> Stack {
        self.stacks.get(&design.name).copied().unwrap_or(Stack::NONE)
    }

    /// Processor times are so many times those of the demands.
    pub(super) fn factor(&self) -> f64 {
        self.processors.as_ref().map_or(1.0, |fit| fit.factor)
    }

    /// For the record.
    pub(super) fn sentences(&self, plan: &Plan) -> String {
        let of_all: Vec<String> = self
            .stacks
            .iter()
            .map(|(design, stack)| {
                format!("{:.1} us per I/O in {design}", stack.per_io.0 as f64 / 1e3)
            })
            .collect();
        let stacks = match of_all.is_empty() {
            true => "Storage stacks of hosts cost no time.".to_string(),
            false => format!(
                "Storage stacks of hosts cost {}, fitted to one published block rate of the test \
                 bed.",
                of_all.join(", ")
            ),
        };
        let Some(fit) = &self.processors else { return stacks };
        let ProcessorFit { factor, point, .. } = fit;
        format!(
            "{stacks} Processor times are {factor:.2} times those of the demands, fitted to one \
             published number: {} at {} users in {}.",
            point.value, point.users, plan.designs[point.design].title
        )
    }
}
