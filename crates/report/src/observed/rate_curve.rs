//! The points of a rate curve among the loads of a run, and where they cross the limit of the mean response time.
//!
//! The limit is that of the published curves. A rate is read between the two points around the limit, on a logarithmic scale of
//! time, because response times of an overloaded open loop grow by orders of magnitude from one point to the next.

use crate::analysis::BlockLoad;

/// The limit of the mean response time.
pub(crate) const LIMIT_NS: u64 = 1_000_000;

/// What a curve says of its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Crossing {
    /// It is reached at this rate.
    At(f64),
    /// It is not reached up to this rate.
    Beyond(f64),
    /// The lowest rate is above it.
    Never,
}

/// The points of a curve among the loads of a run: offered by a clock, measured to their end, in their order.
pub(crate) fn curve_points(loads: &[BlockLoad]) -> impl Iterator<Item = &BlockLoad> {
    let is_point =
        |load: &&BlockLoad| load.offered_per_second.is_some() && !load.counts && !load.ended_early;
    loads.iter().filter(is_point)
}

/// The mean response time where a curve has its maximum; `None` of what is no curve. That load is a closed loop, in which response
/// time and service time are the same. The tools of publications show service times, and points of an overloaded open loop have
/// no response time that compares with them.
pub(crate) fn latency_at_peak(loads: &[BlockLoad]) -> Option<f64> {
    curve_points(loads).next()?;
    let is_closed =
        |load: &&BlockLoad| load.offered_per_second.is_none() && load.counts && !load.ended_early;
    let closed = loads.iter().filter(is_closed);
    closed.max_by(|a, b| a.done_per_second.total_cmp(&b.done_per_second))?.mean_ns
}

/// Where the points of a run cross the limit; `None` of what is no curve.
pub(crate) fn crossing(loads: &[BlockLoad]) -> Option<Crossing> {
    let limit = LIMIT_NS as f64;
    let mut before: Option<(f64, f64)> = None;
    for load in curve_points(loads) {
        let (rate, mean) = (load.done_per_second, load.mean_ns?);
        if mean > limit {
            let Some((low_rate, low_mean)) = before else { return Some(Crossing::Never) };
            let way = (limit / low_mean).ln() / (mean / low_mean).ln();
            // Beyond saturation less may be done than before: what was kept is not unlearned.
            return Some(Crossing::At(low_rate + way * (rate - low_rate).max(0.0)));
        }
        // Of points with the same rate the last one counts.
        let highest = before.map_or(rate, |(highest, _)| rate.max(highest));
        before = Some((highest, mean));
    }
    before.map(|(rate, _)| Crossing::Beyond(rate))
}
