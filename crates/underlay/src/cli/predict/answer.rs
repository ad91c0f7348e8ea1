//! The answer of `underlay predict`. How it is found and how it looks is decided elsewhere.

use underlay_simulation::databases::{Change, NoMeaning, Observation, Prediction};

use super::highest_rates::HighestRates;
use crate::cli::own_row::OwnRow;

/// A design at a number of users.
pub(super) struct Row {
    pub(super) users: u32,
    pub(super) simulated: Observation,
    pub(super) headline: Option<Prediction>,
    pub(super) p95: Option<Prediction>,
}

/// A predicted design.
pub(super) struct Predicted {
    pub(super) name: String,
    pub(super) rows: Vec<Row>,
}

/// What a change does to a design at the most users, as a ratio of throughput and of p99.
pub(super) struct WhatIf {
    pub(super) design: String,
    pub(super) change: Change,
    pub(super) ratios: Result<(f64, Option<f64>), NoMeaning>,
}

/// Everything that is said.
pub(super) struct Answer {
    pub(super) study: String,
    pub(super) own: String,
    /// What its storage is in the model, where it was said.
    pub(super) measured_as: Option<String>,
    pub(super) evidence: &'static str,
    pub(super) unit: &'static str,
    pub(super) demands: String,
    pub(super) cores: u32,
    /// What the model leaves out of these designs.
    pub(super) left_out: Option<String>,
    pub(super) own_rows: Vec<OwnRow>,
    pub(super) designs: Vec<Predicted>,
    pub(super) what_ifs: Vec<WhatIf>,
    pub(super) highest_rates: Option<HighestRates>,
}
