//! What a simulation depends on beside the plan, and what it draws its random numbers from. Simulates nothing.

use underlay_core::RootSeed;
use underlay_simulation::databases::{Assumptions, Effort};
use underlay_study::Plan;

/// What an execution in virtual time depends on, beside the plan.
#[derive(Clone, Debug)]
pub struct How {
    /// What the study leaves open.
    pub assumed: Assumptions,
    /// Where the demands come from, for the record.
    pub demands_source: String,
    /// How much is simulated.
    pub effort: Effort,
}

/// The seed of a repeat: the same transactions for all designs, others in each repeat.
pub fn seed_of(plan: &Plan, repeat: u32) -> RootSeed {
    plan.seed.child("simulated-repeat", u64::from(repeat))
}
