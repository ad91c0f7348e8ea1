//! What the hosts' storage stacks cost in the designs of a study in virtual time, and how a record says it.
//!
//! Not here: how a cost is fitted; that is `simulation::experiments`.

use std::collections::BTreeMap;
use underlay_model::target::Stack;
use underlay_simulation::databases::stack_of;
use underlay_study::{DesignPlan, Plan};

use crate::stop::{Stop, chain};

/// What the hosts' storage stacks cost, by the design; of those they are known of.
pub(super) struct Stacks(BTreeMap<String, Stack>);

impl Stacks {
    /// Fits what is known of the designs of a plan.
    ///
    /// # Errors
    /// A test bed that cannot be built.
    pub(super) fn of(plan: &Plan) -> Result<Stacks, Stop> {
        let mut known = BTreeMap::new();
        for design in plan.plans().iter().flat_map(|point| &point.designs) {
            if !known.contains_key(&design.name) {
                let stack = stack_of(plan, design);
                let stack = stack.map_err(|error| Stop::bad_input(chain(&error)))?;
                known.insert(design.name.clone(), stack.unwrap_or(Stack::NONE));
            }
        }
        known.retain(|_, stack| *stack != Stack::NONE);
        Ok(Stacks(known))
    }

    /// That of a design.
    pub(super) fn get(&self, design: &DesignPlan) -> Stack {
        self.0.get(&design.name).copied().unwrap_or(Stack::NONE)
    }

    /// For the record.
    pub(super) fn sentence(&self) -> String {
        let of_all: Vec<String> = self
            .0
            .iter()
            .map(|(design, stack)| {
                format!("{:.1} us per I/O in {design}", stack.per_io.0 as f64 / 1e3)
            })
            .collect();
        if of_all.is_empty() {
            return "Storage stacks of hosts cost no time.".to_string();
        }
        format!(
            "Storage stacks of hosts cost {}, fitted to one published block rate of the test bed.",
            of_all.join(", ")
        )
    }
}
