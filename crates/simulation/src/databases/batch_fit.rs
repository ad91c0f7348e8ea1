//! How a batch insertion is fitted to its published rate: each trial simulates it from its beginning
//! to its end.
//!
//! Not here: which rate it is, and which factor is tried next.

use underlay_core::{Nanos, RootSeed};
use underlay_engine::{Scenario, WorkloadSpec};
use underlay_study::Plan;

use super::fit_point::FitPoint;
use super::ladder::{Effort, Ladder, LadderError};
use super::next_factor::{Found, NEAR, TRIALS, next};
use super::storage::DesignTarget;

/// The factor on processor times at which the published rate is simulated; `None` where no believed
/// one leads there, or the insertion does not end.
pub(super) fn fit_batch(
    point: &FitPoint,
    plan: &Plan,
    inputs: (&Scenario, RootSeed),
    goes_on: &dyn Fn() -> bool,
) -> Result<Option<Found>, LadderError> {
    let (mut factor, mut trials) = (1.0, Vec::new());
    while trials.len() < TRIALS {
        let Some(rate) = rate(point, plan, inputs, factor, goes_on)? else { return Ok(None) };
        trials.push((factor, rate));
        if point.off(rate) <= NEAR {
            break;
        }
        let Some(next) = next(point.value, &trials) else { return Ok(None) };
        factor = next;
    }
    Ok(point.nearest(&trials))
}

/// Rows per second; `None` when it did not end.
fn rate(
    fit_point: &FitPoint,
    plan: &Plan,
    (scenario, seed): (&Scenario, RootSeed),
    factor: f64,
    goes_on: &dyn Fn() -> bool,
) -> Result<Option<f64>, LadderError> {
    let point = plan.plans()[plan.point_of(fit_point.design)];
    let storage = seed.child("storage", 0);
    let Ok(target) = DesignTarget::in_study(point, fit_point.design, storage) else {
        return Ok(None);
    };
    let mut ladder = Ladder::new((target, scenario), &point.procedure, Effort::OF_STUDIES, seed)?;
    ladder.scale_cpu(factor);
    ladder.rung(fit_point.users, &mut |_, _, _| goes_on());
    let took = ladder.jobs().values().next().and_then(|job| job.ended);
    let rate = |(rows, took): (u32, Nanos)| f64::from(rows) / took.as_secs_f64();
    Ok(rows_of_batch(scenario).zip(took).map(rate))
}

/// Rows of a batch insertion that a scenario consists of.
pub(super) fn rows_of_batch(scenario: &Scenario) -> Option<u32> {
    match scenario.databases.as_slice() {
        [only] => match &only.workload {
            WorkloadSpec::Batch(batch) => Some(batch.rows),
            _ => None,
        },
        _ => None,
    }
}
