//! What was measured in each period of a causal check.
//!
//! What follows from it is decided elsewhere (`verdict::causal`).

use serde_json::Value;
use underlay_core::Resource;
use underlay_record::TransactionTick;
use underlay_record::conventions::document;

use super::run::ObservedRun;
use super::window::merged;
use crate::workload_view::WorkloadView;

/// A causal check of one run.
#[derive(Clone, Debug)]
pub(crate) struct CausalFacts {
    /// Position of the run.
    pub(crate) run: usize,
    pub(crate) design: usize,
    pub(crate) users: u32,
    /// In their order.
    pub(crate) periods: Vec<CausalPeriod>,
    /// What could not be changed, and why.
    pub(crate) not_perturbed: Vec<(Resource, String)>,
}

/// One period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CausalPeriod {
    pub(crate) resource: Option<Resource>,
    /// Of the service time; 1 where nothing was changed.
    pub(crate) factor: f64,
    pub(crate) seconds: f64,
    /// Transactions carried out per second.
    pub(crate) rate: f64,
    /// Response time of what the headline counts.
    pub(crate) p95_ns: Option<u64>,
}

impl CausalFacts {
    /// The check of a run, if it made one.
    pub(crate) fn of(run: &ObservedRun, workload: &WorkloadView) -> Option<CausalFacts> {
        let said = run.documents.get(document::CAUSAL_CHECK)?;
        let list = |key: &str| said[key].as_array().cloned().unwrap_or_default();
        let fixed = |entry: &Value| {
            let resource = Resource::from_word(entry["resource"].as_str()?)?;
            Some((resource, entry["reason"].as_str().unwrap_or_default().to_string()))
        };
        let periods = list("periods");
        Some(CausalFacts {
            run: run.position,
            design: run.run.design as usize,
            users: u32::try_from(said["users"].as_u64()?).ok()?,
            periods: periods.iter().filter_map(|said| period(said, run, workload)).collect(),
            not_perturbed: list("not_perturbed").iter().filter_map(fixed).collect(),
        })
    }
}

fn period(said: &Value, run: &ObservedRun, workload: &WorkloadView) -> Option<CausalPeriod> {
    let (begin, end) = (said["begin_ns"].as_u64()?, said["end_ns"].as_u64()?);
    let within =
        |tick: &&TransactionTick| tick.interval.begin.0 >= begin && tick.interval.end.0 <= end;
    let ticks: Vec<&TransactionTick> = run.transactions.iter().filter(within).collect();
    let carried_out: u64 = ticks.iter().map(|tick| tick.committed + tick.rolled_back).sum();
    let counted = ticks.iter().filter(|tick| workload.counts(&tick.transaction));
    let responses = merged(counted.map(|tick| &tick.response));
    let seconds = end.saturating_sub(begin) as f64 / 1e9;
    Some(CausalPeriod {
        resource: said["resource"].as_str().and_then(Resource::from_word),
        factor: said["factor"].as_f64()?,
        seconds: (seconds > 0.0).then_some(seconds)?,
        rate: carried_out as f64 / seconds,
        p95_ns: responses.quantile(0.95),
    })
}
