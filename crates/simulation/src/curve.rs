//! A rate curve in virtual time: the maximum first, then shares of it by a clock.
//!
//! Two latencies are kept per point. *Response* counts from the intended start and grows without bound where
//! more is offered than the storage takes; *service* counts from the submission, which is what the published
//! curves show, as their tool starts its clock when a thread is free.

use crate::client::ClientSpec;
use crate::result::SimulationResult;
use crate::run::{RunSpec, simulate};
use crate::target::Target;
use underlay_core::{Nanos, RootSeed};
use underlay_workload::arrivals::Arrivals;
use underlay_workload::block::Pace;
use underlay_workload::block::curve::{CurvePoint, curve_rate};

/// What to measure per point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurveSpec {
    /// Shares of the maximum, in percent.
    pub percents: Vec<u32>,
    /// Not measured, per point.
    pub warm_up: Nanos,
    /// Measured, per point.
    pub measure: Nanos,
    /// A point ends early after that many requests.
    pub requests_max: u64,
}

/// One point.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// What was offered.
    pub offered: CurvePoint,
    /// What came out.
    pub result: SimulationResult,
}

impl MeasuredPoint {
    /// Whether the storage took less than 98 % of what was offered.
    pub fn is_saturated(&self) -> bool {
        self.result.iops() < 0.98 * self.offered.rate_per_second as f64
    }
}

/// A whole curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The run without a clock.
    pub maximum: SimulationResult,
    /// The points, in the order asked for.
    pub points: Vec<MeasuredPoint>,
}

impl Curve {
    /// The point with the most requests per second, the maximum run included: requests per second and mean
    /// service time in ms.
    pub fn peak(&self) -> (f64, f64) {
        self.all()
            .map(|result| (result.iops(), service_ms(result)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((0.0, 0.0))
    }

    /// The highest rate reached with a mean service time below `limit_ms`; none when no point is below.
    pub fn rate_below(&self, limit_ms: f64) -> Option<f64> {
        self.all()
            .filter(|result| service_ms(result) < limit_ms)
            .map(SimulationResult::iops)
            .max_by(f64::total_cmp)
    }

    fn all(&self) -> impl Iterator<Item = &SimulationResult> {
        std::iter::once(&self.maximum).chain(self.points.iter().map(|point| &point.result))
    }
}

fn service_ms(result: &SimulationResult) -> f64 {
    result.total().service.mean().unwrap_or(0.0) / 1e6
}

/// Measures a curve. `fresh` gives a target in its initial state for each point.
pub fn rate_curve<T: Target>(
    mut fresh: impl FnMut() -> T,
    clients: &[ClientSpec<'_>],
    spec: &CurveSpec,
    seed: RootSeed,
) -> Curve {
    let run = RunSpec {
        begin: Nanos::ZERO,
        warm_up: spec.warm_up,
        measure: spec.measure,
        requests_max: spec.requests_max,
    };
    let with_pace = |pace: Pace| -> Vec<ClientSpec<'_>> {
        clients.iter().map(|client| ClientSpec { pace, ..client.clone() }).collect()
    };
    let maximum = simulate(&mut fresh(), &with_pace(Pace::CLOSED), &run, seed);
    let points = spec
        .percents
        .iter()
        .map(|percent| {
            let offered = curve_rate(maximum.iops(), *percent);
            let rate_per_second = offered.rate_per_second as f64 / clients.len() as f64;
            let pace = Pace::Open { rate_per_second, arrivals: Arrivals::Poisson };
            let seed = seed.child("curve", u64::from(*percent));
            let result = simulate(&mut fresh(), &with_pace(pace), &run, seed);
            MeasuredPoint { offered, result }
        })
        .collect();
    Curve { maximum, points }
}
