//! The answer of `underlay size`: the designs of a family, and which of them meets the target. How it looks is decided
//! elsewhere.

use crate::cli::own_row::ModelErrors;
use underlay_simulation::databases::{Answer, Demand, HighestRate, Row};
use underlay_study::VolumePlan;

/// Everything that is said.
pub(super) struct Sized {
    pub(super) study: String,
    pub(super) base: String,
    pub(super) transactions: String,
    pub(super) unit: &'static str,
    pub(super) demands: String,
    pub(super) cores: u32,
    /// The model's errors on the recorded design, of a record.
    pub(super) errors: Option<ModelErrors>,
    /// What the model leaves out of the family.
    pub(super) left_out: Option<String>,
    pub(super) volumes: Vec<VolumePlan>,
    pub(super) demand: Demand,
    pub(super) rows: Vec<Row>,
    /// The first row that meets the target, and its highest rate.
    pub(super) smallest: Option<(usize, HighestRate)>,
}

/// How far the quantile is below its limit, as a share of it: negative where it is above.
pub(super) fn margin(sized: &Sized, row: &Row) -> Option<f64> {
    let Answer::Simulated(at) = &row.answer else { return None };
    let limit = sized.demand.target.objective.limit.0 as f64;
    at.judgement.observed.map(|observed| 1.0 - observed.0 as f64 / limit)
}

/// The word for what became of a row.
pub(super) fn outcome(row: &Row) -> &'static str {
    match &row.answer {
        Answer::NoRoom(_) => "no-room",
        Answer::Contains(_) => "not-simulated",
        Answer::Simulated(at) if at.meets => "met",
        Answer::Simulated(_) => "missed",
    }
}
