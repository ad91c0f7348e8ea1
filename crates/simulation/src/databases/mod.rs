//! Studies of databases in virtual time: the plan of `study` as a scenario of `engine` on the
//! storage of `model`.
//!
//! [`problems`] says what cannot be simulated, all of it at once. [`scenario`] and [`DesignTarget`]
//! map a design at a number of users; a [`Ladder`] lets them work, rung by rung.
//! [`Bed`] offers rates to a design and searches the highest within a latency target; [`Family`] has
//! the designs among which the smallest is looked for.
//! Deliberately not here: records, files, threads, and what transactions cost
//! ([`underlay_engine::DemandProfile`]).

mod background;

mod batch_fit;
mod bottleneck;

mod highest_rate;

mod demand_file;
mod demand_fit;

mod family;

mod fit_point;
mod ladder;

mod mapping;

mod next_factor;
mod observation;

mod offered;

mod prediction;

mod processor_fit;

mod refusals;

mod sizing;

mod space;

mod storage;

mod vary;

mod what_if;

#[cfg(test)]
mod tests;

pub use background::BackgroundSchedule;
pub use bottleneck::Bottleneck;
pub use demand_file::{DemandFile, DemandFileError, Observed};
pub use demand_fit::{DemandFit, cpu_scales, fitted};
pub use family::{Family, FamilyProblem, Member};
pub use fit_point::FitPoint;
pub use highest_rate::{AtRate, Bed, HighestRate, Target};
pub use ladder::{Each, Effort, Ladder, LadderError, Rung, Second, Stage, counted};
pub use mapping::{Assumptions, default_demands, scenario};
pub use next_factor::{FACTORS, Found};
pub use observation::{Costs, Observation, Observing, Range, TypeCosts};
pub use offered::{Offer, Offered};
pub use prediction::{
    Prediction, SinglePlan, SinglePlanError, error_of, predicted_rate, predicted_time,
};
pub use processor_fit::{ProcessorFit, scale};
pub(crate) use refusals::of_plan;
pub use refusals::problems;
pub use sizing::{Answer, Demand, Row, sized};
pub use space::{Space, space};
pub use storage::{DesignTarget, StorageError};
pub use vary::{Values, Varied, Vary, VaryError};
pub use what_if::{Change, NoMeaning};

use underlay_core::Evidence;
use underlay_study::{Plan, TimeDilation};

/// The plan with the kind of evidence that a simulation is. What only a real host needs is left
/// out, the null twin and time dilation, and what comes after the load.
pub fn as_simulated(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    relabel(&mut plan);
    plan
}

fn relabel(plan: &mut Plan) {
    plan.evidence = Evidence::Simulated;
    plan.designs.iter_mut().for_each(|design| design.evidence = Evidence::Simulated);
    plan.procedure.null_twin = false;
    plan.procedure.time_dilation = TimeDilation::NONE;
    plan.procedure.cool_down = None;
    plan.points.iter_mut().for_each(relabel);
}
