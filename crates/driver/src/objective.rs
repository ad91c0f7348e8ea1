//! A latency target against the ticks of a measured window. Pure.
//!
//! The statistics are `workload::judgement`'s; what only the load generator knows is added here: whether it delivered the
//! load, whether it was busy itself, and what became of sessions.

use underlay_core::Nanos;
pub use underlay_workload::judgement::{Judgement, Verdict};
use underlay_workload::judgement::{LateShare, Span};
pub use underlay_workload::objective::{Objective, ObjectiveError};

use crate::saturation::{Saturation, SaturationVerdict};
use crate::summary::{Delivery, DeliveryVerdict};
use crate::tick::{ConnectTick, DriveTick};

/// Judges the ticks of one window; `before` is what became of sessions in the unmeasured time before it, whose queues
/// the window would inherit.
pub fn judge(objective: &Objective, before: &ConnectTick, ticks: &[DriveTick]) -> Judgement {
    let mut window = DriveTick::default();
    for tick in ticks {
        if window.types.is_empty() {
            window.begin = tick.begin;
        }
        window.append(tick);
    }
    let response = window.response();
    let transactions = response.count();
    let spans: Vec<Span> = ticks
        .iter()
        .map(|tick| {
            let response = tick.response();
            Span { late: response.count_above(objective.limit.0), all: response.count() }
        })
        .collect();
    let late = LateShare::of(&spans);
    let delivered = Delivery::of(&window).map(|delivery| delivery.verdict);
    let verdict = if Saturation::of(&window).verdict != SaturationVerdict::Clear {
        Verdict::GeneratorSaturated
    } else if delivered == Some(DeliveryVerdict::Missed) || transactions == 0 {
        Verdict::NotDelivered
    } else {
        late.verdict(objective)
    };
    Judgement {
        verdict,
        transactions,
        delivered_per_second: transactions as f64 / window.length().as_secs_f64().max(1e-9),
        observed: response.quantile(objective.quantile).map(Nanos),
        late_share: late.share,
        late_share_bounds: late.bounds,
        connections_lost: has_lost(before) || has_lost(&window.connects),
    }
}

fn has_lost(connects: &ConnectTick) -> bool {
    connects.lost > 0 || connects.errors.total() > 0
}

#[cfg(test)]
mod tests {
    use super::{Objective, Verdict, judge};
    use crate::tick::{ArrivalTick, ConnectTick, DriveTick, TypeTick};
    use underlay_core::Nanos;

    fn objective() -> Objective {
        "p99=10ms".parse().unwrap()
    }

    /// A second of a thousand transactions of which `late` were late.
    fn second(number: u64, late: u64) -> DriveTick {
        let mut kind = TypeTick { committed: 1_000, ..TypeTick::default() };
        kind.response.record_n(1_000_000, 1_000 - late);
        kind.response.record_n(50_000_000, late);
        DriveTick {
            begin: Nanos::from_secs(number),
            end: Nanos::from_secs(number + 1),
            types: vec![kind],
            arrivals: ArrivalTick { due: 1_000, taken: 1_000, ..ArrivalTick::default() },
            ..DriveTick::default()
        }
    }

    #[test]
    fn undelivered_load_and_a_busy_generator_are_no_answer() {
        let mut ticks: Vec<DriveTick> = (0..20).map(|at| second(at, 0)).collect();
        let judge = |ticks: &[DriveTick]| judge(&objective(), &ConnectTick::default(), ticks);
        assert_eq!(judge(&ticks).verdict, Verdict::Met);
        ticks[4].arrivals.overflowed = 1;
        assert_eq!(judge(&ticks).verdict, Verdict::NotDelivered);
        ticks[4].arrivals.overflowed = 0;
        for tick in &mut ticks {
            tick.busiest.cpu_ns = 950_000_000;
        }
        assert_eq!(judge(&ticks).verdict, Verdict::GeneratorSaturated);
        assert_eq!(judge(&[]).verdict, Verdict::NotDelivered);
    }
    #[test]
    fn lost_sessions_are_noticed_in_the_window_and_before_it() {
        let lost = ConnectTick { lost: 1, ..ConnectTick::default() };
        let quiet: Vec<DriveTick> = (0..20).map(|at| second(at, 30)).collect();
        let seen = |before: &ConnectTick, ticks: &[DriveTick]| {
            judge(&objective(), before, ticks).connections_lost
        };
        assert!(!seen(&ConnectTick::default(), &quiet));
        assert!(seen(&lost, &quiet));
        let mut cut = quiet;
        cut[7].connects = lost;
        assert!(seen(&ConnectTick::default(), &cut));
    }
}
