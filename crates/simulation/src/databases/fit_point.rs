//! The published number to which processor times of a study are fitted.
//!
//! It is the first that the study has of what its workload counts, at the largest number of users:
//! where processors matter most. A number with a unit, such as a percentage of another run, is none.
//! Of a batch insertion it is the highest rate, for the same reason. Everything else stays a
//! prediction. Other jobs read and write more than they compute, and have none. Not here: the fit.

use underlay_study::{Plan, PublishedSeries, WorkloadKind};

use super::next_factor::Found;

/// Words of studies for what the workload counts.
const HEADLINES: [&str; 2] = ["nopm", RATE_OF_JOB];
/// The word for what a job achieves: rows per second of a batch insertion.
const RATE_OF_JOB: &str = "result";

/// The published number that processor times are fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct FitPoint {
    /// Its design, by position in the plan.
    pub design: usize,
    /// Users, those of each database.
    pub users: u32,
    /// The number, in the unit of the workload.
    pub value: f64,
}

impl FitPoint {
    /// That of a study at the size of its publication; `None` where nothing suitable is published.
    pub fn of(plan: &Plan) -> Option<FitPoint> {
        if plan.scale.divisor != 1 {
            return None;
        }
        match plan.workload.kind {
            WorkloadKind::Batch(_) => FitPoint::of_batch(plan),
            _ => FitPoint::of_users(plan),
        }
    }

    fn of_users(plan: &Plan) -> Option<FitPoint> {
        let series = plan.published.iter().find(|series| {
            let is_headline = HEADLINES.contains(&series.metric.as_str());
            is_headline && series.unit.is_empty() && series.database.is_empty()
        })?;
        let design = design_of(plan, series)?;
        let printed = series.users.iter().zip(&series.values);
        let (users, value) = printed.max_by_key(|(users, _)| **users)?;
        let point = plan.plans()[plan.point_of(design)];
        let is_rung = point.procedure.users.contains(users);
        is_rung.then_some(FitPoint { design, users: *users, value: value * series.factor })
    }

    /// The highest rate, where the least time goes by in waiting for storage.
    fn of_batch(plan: &Plan) -> Option<FitPoint> {
        let rates = plan
            .published
            .iter()
            .filter(|series| series.metric == RATE_OF_JOB && series.database.is_empty());
        let rates =
            rates.filter_map(|series| Some((series, series.values.first()? * series.factor)));
        let (series, value) = rates.max_by(|one, other| one.1.total_cmp(&other.1))?;
        let design = design_of(plan, series)?;
        let point = plan.plans()[plan.point_of(design)];
        Some(FitPoint { design, users: point.procedure.users_at_once(), value })
    }

    /// How far from the published number, as a logarithm.
    pub(super) fn off(&self, simulated: f64) -> f64 {
        (self.value / simulated).ln().abs()
    }

    /// The factor whose simulated number is nearest to the published one.
    pub(super) fn nearest(&self, trials: &[(f64, f64)]) -> Option<Found> {
        let off = |trial: &&(f64, f64)| self.off(trial.1);
        let nearest = trials.iter().min_by(|one, other| off(one).total_cmp(&off(other)))?;
        Some(Found { factor: nearest.0, simulated: nearest.1 })
    }
}

/// The number of the design in the plan, at its point of the axes.
fn design_of(plan: &Plan, series: &PublishedSeries) -> Option<usize> {
    plan.designs.iter().position(|design| match &design.variant {
        None => design.name == series.design,
        Some(variant) => {
            let points = plan.axes.iter().zip(&variant.coordinates);
            let at = points.map(|(axis, point)| (&axis.name, &axis.points[*point].name));
            variant.design == series.design
                && series.at.iter().map(|(axis, point)| (axis, point)).eq(at)
        }
    })
}
