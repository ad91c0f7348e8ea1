//! A rate curve in virtual time: the maximum first, then shares of it by a clock.
//!
//! Two latencies are kept per point. *Response* counts from the intended start and grows without bound where
//! more is offered than the storage takes; *service* counts from the submission, which is what the published
//! curves show, as their tool starts its clock when a thread is free.
//!
//! A curve is read in two ways. What the storage *keeps* is read from open-loop points without overload, by response
//! time. *As published* is the reading that published numbers stand for: by service, over all points, since that is
//! what was plotted. The two must not be mixed: an overloaded point has a fine service time.

use crate::client::ClientSpec;
use crate::result::SimulationResult;
use crate::run::{RunSpec, simulate};
use underlay_core::{Nanos, RootSeed};
use underlay_model::target::Target;
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
    /// The run without a clock ends early after that many.
    pub requests_max_closed: u64,
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
    /// Whether the storage could not keep up with what arrived.
    pub fn is_saturated(&self) -> bool {
        self.result.is_overloaded()
    }

    /// Mean response time, ms; none when nothing was measured.
    pub fn response_ms(&self) -> Option<f64> {
        self.result.mean_response_ns().map(|ns| ns / 1e6)
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
    /// The point with the most requests per second that the storage kept up with; none when it kept up with none.
    pub fn highest_kept(&self) -> Option<&MeasuredPoint> {
        self.kept().max_by(|a, b| a.result.iops().total_cmp(&b.result.iops()))
    }

    /// Of the points that the storage kept up with, the one with the most requests per second among those with a mean
    /// response time below `limit_ms`.
    pub fn highest_kept_below(&self, limit_ms: f64) -> Option<&MeasuredPoint> {
        self.kept()
            .filter(|point| point.response_ms().is_some_and(|ms| ms < limit_ms))
            .max_by(|a, b| a.result.iops().total_cmp(&b.result.iops()))
    }

    fn kept(&self) -> impl Iterator<Item = &MeasuredPoint> {
        let kept = self.points.iter().filter(|point| !point.is_saturated());
        kept.filter(|point| point.response_ms().is_some())
    }

    /// As published: the point with the most requests per second, the maximum run included: requests per second and mean
    /// service time in ms.
    pub fn peak_as_published(&self) -> (f64, f64) {
        self.all()
            .map(|result| (result.iops(), service_ms(result)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((0.0, 0.0))
    }

    /// As published: the highest rate reached with a mean service time below `limit_ms`; none when no point is below.
    pub fn rate_below_as_published(&self, limit_ms: f64) -> Option<f64> {
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
    let closed = RunSpec { requests_max: spec.requests_max_closed, ..run };
    let maximum = simulate(&mut fresh(), &with_pace(Pace::CLOSED), &closed, seed);
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
