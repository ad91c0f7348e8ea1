//! Rate curves of designs, over their runs: how the mean response time rises with the rate that is delivered, and the rate at
//! which it reaches 1 ms.
//!
//! What it deliberately does not do: read a single run's curve (`observed::rate_curve`).

use std::collections::BTreeMap;

use crate::analysis::{BlockLoad, BlockLoads, CurvePoint, CurveReading, RateCurve};
use crate::estimates::over_runs;
use crate::observed::{Crossing, LIMIT_NS, crossing, curve_points};

/// One curve per design, over its runs.
pub(crate) fn all(loads: &[BlockLoads]) -> Vec<RateCurve> {
    let mut designs: BTreeMap<usize, Vec<&BlockLoads>> = BTreeMap::new();
    for run in loads {
        designs.entry(run.design).or_default().push(run);
    }
    designs.into_iter().filter_map(|(design, runs)| curve(design, &runs)).collect()
}

fn curve(design: usize, runs: &[&BlockLoads]) -> Option<RateCurve> {
    let crossings: Vec<Crossing> = runs.iter().filter_map(|run| crossing(&run.loads)).collect();
    let found = if crossings.is_empty() {
        return None;
    } else if crossings.contains(&Crossing::Never) {
        CurveReading::Never
    } else if crossings.iter().any(|crossing| matches!(crossing, Crossing::Beyond(_))) {
        CurveReading::AtLeast
    } else {
        CurveReading::Interpolated
    };
    let rate = |crossing: &Crossing| match *crossing {
        Crossing::At(rate) | Crossing::Beyond(rate) if found != CurveReading::Never => Some(rate),
        _ => None,
    };
    let mut rate_at_limit = over_runs(crossings.iter().map(rate).collect(), None);
    if found == CurveReading::AtLeast {
        // A bound from below has no interval.
        (rate_at_limit.low, rate_at_limit.high) = (None, None);
    }
    let first = runs.iter().max_by_key(|run| curve_points(&run.loads).count())?;
    let point = |label: &str| {
        let same = || {
            runs.iter()
                .filter_map(|run| curve_points(&run.loads).find(|point| point.label == label))
        };
        let of =
            |number: fn(&BlockLoad) -> Option<f64>| over_runs(same().map(number).collect(), None);
        CurvePoint {
            label: label.to_string(),
            offered_per_second: of(|load| load.offered_per_second),
            done_per_second: of(|load| Some(load.done_per_second)),
            bytes_per_second: of(|load| Some(load.bytes_per_second)),
            mean_ns: of(|load| load.mean_ns),
            p99_ns: of(|load| load.p99_ns.map(|ns| ns as f64)),
            saturated: same().any(|load| load.saturated == Some(true)),
        }
    };
    Some(RateCurve {
        design,
        limit_ns: LIMIT_NS,
        rate_at_limit,
        found,
        points: curve_points(&first.loads).map(|load| point(&load.label)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Crossing, all, crossing};
    use crate::analysis::{BlockLoad, BlockLoads, CurveReading};
    use crate::observed::latency_at_peak;

    fn load(label: &str, offered: Option<f64>, done: f64, mean_ms: f64) -> BlockLoad {
        BlockLoad {
            label: label.to_string(),
            in_flight: 8,
            counts: offered.is_none(),
            offered_per_second: offered,
            done_per_second: done,
            bytes_per_second: done * 4096.0,
            mean_ns: Some(mean_ms * 1e6),
            p50_ns: None,
            p95_ns: None,
            p99_ns: Some(5_000_000),
            p999_ns: None,
            saturated: Some(offered.is_some_and(|offered| done < 0.98 * offered)),
            ended_early: false,
        }
    }

    fn run(run: usize, design: usize, points: &[(f64, f64, f64)]) -> BlockLoads {
        let mut loads = vec![load("maximum", None, 1000.0, 8.0)];
        loads.extend(points.iter().map(|(offered, done, mean)| {
            load(&format!("{} %", offered / 10.0), Some(*offered), *done, *mean)
        }));
        BlockLoads {
            run,
            design,
            steady: None,
            steady_state: None,
            planned: Some(3),
            interrupted: false,
            delivery: None,
            errors: 0,
            generator_busy: false,
            loads,
        }
    }

    #[test]
    fn the_rate_at_the_limit_lies_between_two_points() {
        let curve = run(0, 0, &[(100.0, 100.0, 0.5), (500.0, 500.0, 2.0)]);
        let Some(Crossing::At(rate)) = crossing(&curve.loads) else { panic!("crossed") };
        // Half of the way from 0.5 to 2 ms by factors.
        assert!((rate - 300.0).abs() < 1e-6, "{rate}");
        let collapse = run(0, 0, &[(900.0, 900.0, 0.9), (1200.0, 700.0, 90.0)]);
        assert_eq!(crossing(&collapse.loads), Some(Crossing::At(900.0)));
    }

    #[test]
    fn a_curve_on_one_side_of_the_limit_is_a_bound() {
        let fast = run(0, 0, &[(100.0, 100.0, 0.1), (1000.0, 990.0, 0.4)]);
        assert_eq!(crossing(&fast.loads), Some(Crossing::Beyond(990.0)));
        let slow = run(0, 0, &[(100.0, 100.0, 4.0), (1000.0, 700.0, 400.0)]);
        assert_eq!(crossing(&slow.loads), Some(Crossing::Never));
        assert_eq!(crossing(&fast.loads[..1]), None, "the maximum alone is no curve");
    }

    #[test]
    fn the_latency_at_the_peak_is_that_of_the_closed_loop() {
        // More was done of an offer beyond the maximum, and every request waited for its start.
        let overloaded = run(0, 0, &[(500.0, 500.0, 2.0), (1200.0, 1010.0, 90.0)]);
        assert_eq!(latency_at_peak(&overloaded.loads), Some(8e6));
        assert_eq!(latency_at_peak(&overloaded.loads[..1]), None, "no curve");
        assert_eq!(latency_at_peak(&overloaded.loads[1..]), None, "no maximum");
    }

    #[test]
    fn curves_are_pooled_over_the_runs_of_a_design() {
        let points = |scale: f64| [(100.0, 100.0 * scale, 0.5), (500.0, 500.0 * scale, 2.0)];
        let runs = [run(0, 0, &points(1.0)), run(1, 1, &points(2.0)), run(2, 0, &points(1.2))];
        let curves = all(&runs);
        assert_eq!(curves.iter().map(|curve| curve.design).collect::<Vec<_>>(), [0, 1]);
        let first = &curves[0];
        assert_eq!((first.points.len(), first.found), (2, CurveReading::Interpolated));
        assert_eq!(first.points[1].done_per_second.value, Some(550.0));
        let rate = first.rate_at_limit.value.expect("a rate");
        assert!((rate - 330.0).abs() < 1e-6, "{rate}");
        assert!(first.rate_at_limit.low.is_some() && curves[1].rate_at_limit.low.is_none());
        let mixed = [run(0, 0, &points(1.0)), run(1, 0, &[(100.0, 100.0, 0.1)])];
        let bound = &all(&mixed)[0];
        assert_eq!((bound.found, bound.rate_at_limit.low), (CurveReading::AtLeast, None));
        let never = [run(0, 0, &[(100.0, 100.0, 3.0)]), run(1, 0, &points(1.0))];
        assert_eq!(all(&never)[0].rate_at_limit.value, None);
    }
}
