//! What a causal check is to do. What can be changed is told by the place of the run.

use underlay_core::RootSeed;
use underlay_study::CausalPlan;

/// A check that a run is to make.
#[derive(Clone, Copy, Debug)]
pub struct CausalSpec {
    /// What the study asks for.
    pub plan: CausalPlan,
    /// Connections that users share, if they do.
    pub connections: Option<u32>,
    /// Decides the order of the resources.
    pub seed: RootSeed,
}
