//! Changes of the mix of transactions while the load runs: which weights, when, and in which designs.
//!
//! Part of the plan, therefore without serde. Names of types were checked against the workload when the plan was made.

use underlay_core::Nanos;
use underlay_workload::transactional::Weights;

use crate::fault_plan::FaultPhase;

/// Weights that are set at a moment of every run of some designs.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightsPlan {
    /// The weights.
    pub weights: Weights,
    /// The same in words: `new_order=10, payment=90`.
    pub text: String,
    /// When they are set, since the beginning of the phase.
    pub at: Nanos,
    /// The phase.
    pub phase: FaultPhase,
    /// The rung, where the phase comes once per rung.
    pub users: Option<u32>,
    /// After this time the workload's own mix returns; `None` = they stay for the rest of the run.
    pub lasts: Option<Nanos>,
    /// The designs concerned, by position.
    pub designs: Vec<usize>,
    /// Line of the study file.
    pub line: usize,
}
