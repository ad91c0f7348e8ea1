//! What limits a rung, by experiment: resources slowed one at a time under load.

use serde::Serialize;

/// A causal check of one design.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CausalCheck {
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// The run (position in [`crate::analysis::Analysis::runs`]).
    pub run: usize,
    /// How long what was slowed took, over what it takes.
    pub factor: f64,
    /// Length of a period in seconds, without the reaction to the change.
    pub period_s: f64,
    /// What was slowed, the most effective first.
    pub resources: Vec<Sensitivity>,
    /// What could not be changed here.
    pub not_perturbed: Vec<NotPerturbed>,
    /// What throughput follows most: a word of [`Sensitivity::resource`]; `null` when it follows nothing noticeably.
    pub class: Option<String>,
    /// What it follows nearly as much (within 25 %).
    pub tied: Vec<String>,
    /// What that means for the verdict from sampling.
    pub agreement: Agreement,
    /// What the answer says limits throughput: words of [`Sensitivity::resource`] by experiment, or the class from sampling
    /// where only that could be had and it has at least medium confidence. Empty where nothing can be named with confidence.
    pub named: Vec<String>,
    /// The same in words, with the numbers.
    pub sentence: String,
}

/// How a result reacts to one resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Sensitivity {
    /// `log`, `data-read`, `data-write`, `network` (of a cluster), `cpu` (of the server) or `client` (the load generator's CPU).
    pub resource: String,
    /// Periods in which it was slowed.
    pub periods: usize,
    /// By how many per cent throughput falls when the resource takes 1 % longer.
    pub throughput: Reaction,
    /// p of "throughput does not change", corrected for the number of resources (Holm): of those that sampling names, or of
    /// all others.
    pub p_adjusted: f64,
    /// By how many per cent the p95 response time grows when the resource takes 1 % longer; `null` without response times.
    pub p95: Option<Reaction>,
    /// What a 20 % faster resource does; `null` when it was not asked for.
    pub what_if: Option<WhatIf>,
}

/// A value with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Reaction {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Throughput over the present one with the resource 20 % faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WhatIf {
    /// As the periods with the slower resource predict.
    pub predicted: Reaction,
    /// As measured with the resource really that much faster; `null` where it cannot be made faster.
    pub measured: Option<Reaction>,
}

/// A resource that was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NotPerturbed {
    /// The resource.
    pub resource: String,
    /// Why not.
    pub reason: String,
}

/// What an experiment means for what was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// Throughput follows what was observed most, or nearly so.
    Confirmed,
    /// Throughput does not follow what was observed most.
    NotConfirmed,
    /// Nothing was shown, and the intervals are so wide that throughput may follow something all the same.
    TooShort,
    /// What was observed cannot be changed by itself.
    Observed,
    /// Nothing single was observed; the experiment stands alone.
    ByExperiment,
}
