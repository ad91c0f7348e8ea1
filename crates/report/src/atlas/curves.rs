//! Mean latency against the delivered rate: the points that a publication prints of its rate curves, with ours.
//!
//! Rates are multiples of each origin's own maximum on one design, because sizes differ. Latencies are what they are.
//!
//! What it deliberately does not do: show points of an overloaded open loop. Their response times grow without bound, and the
//! curves of publications, which are of service times, have nothing that compares with them.

use crate::analysis::{CurvePoint, RateCurve};
use crate::observed::LIMIT_NS;

use super::experiment::{AtlasCurve, AtlasCurvePoint, AtlasCurves, LineOrigin};

/// What the page calls the point at the limit.
const AT_LIMIT: &str = "at 1 ms";

/// The points of a curve that the storage kept up with.
pub(super) fn kept_points(curve: &RateCurve) -> Vec<AtlasCurvePoint> {
    let kept = curve.points.iter().filter(|point| !point.saturated);
    let point = |point: &CurvePoint| {
        let (rate, latency_ns) = (point.done_per_second.value?, point.mean_ns.value?);
        let label = point.label.clone();
        Some(AtlasCurvePoint { label, is_maximum: false, rate, multiple: None, latency_ns })
    };
    kept.filter_map(point).collect()
}

/// The point at the limit, and the maximum with its latency. Of a curve that ends below the limit, the rate at the limit is
/// that of its end, and no point.
pub(super) fn known_points(
    rate_at_limit: Option<f64>,
    maximum: Option<(f64, f64)>,
) -> Vec<AtlasCurvePoint> {
    let limit_ns = LIMIT_NS as f64;
    let point = |label: &str, rate: f64, latency_ns: f64| AtlasCurvePoint {
        label: label.to_string(),
        is_maximum: label != AT_LIMIT,
        rate,
        multiple: None,
        latency_ns,
    };
    let ends_below = maximum.is_some_and(|(_, latency_ns)| latency_ns < limit_ns);
    let at_limit = rate_at_limit.filter(|_| !ends_below);
    let at_limit = at_limit.map(|rate| point(AT_LIMIT, rate, limit_ns));
    let maximum = maximum.map(|(rate, latency_ns)| point("maximum", rate, latency_ns));
    at_limit.into_iter().chain(maximum).collect()
}

/// The lines as one figure; `None` where nothing is published.
pub(super) fn together(mut lines: Vec<AtlasCurve>) -> Option<AtlasCurves> {
    if !lines.iter().any(|line| line.origin == LineOrigin::Published) {
        return None;
    }
    let (reference, ones) = reference(&lines);
    for line in &mut lines {
        let one = ones.iter().find(|(origin, _)| *origin == line.origin).map(|(_, one)| *one);
        for point in &mut line.points {
            point.multiple = one.map(|one| point.rate / one);
        }
    }
    Some(AtlasCurves { limit_ns: LIMIT_NS, reference, lines })
}

/// The first design that has a maximum of every origin, with those maxima.
fn reference(lines: &[AtlasCurve]) -> (String, Vec<(LineOrigin, f64)>) {
    let maximum = |design: usize, origin: LineOrigin| {
        let line = lines.iter().find(|line| (line.design, line.origin) == (design, origin))?;
        let point = line.points.iter().find(|point| point.is_maximum && point.rate > 0.0)?;
        Some((origin, point.rate))
    };
    let mut origins: Vec<LineOrigin> = Vec::new();
    for line in lines {
        if !origins.contains(&line.origin) {
            origins.push(line.origin);
        }
    }
    let of_all = |line: &AtlasCurve| {
        let maxima: Option<Vec<(LineOrigin, f64)>> =
            origins.iter().map(|origin| maximum(line.design, *origin)).collect();
        Some((line.title.clone(), maxima?))
    };
    lines.iter().find_map(of_all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{AtlasCurve, LineOrigin, known_points, together};

    fn line(design: usize, origin: LineOrigin, maximum: Option<(f64, f64)>) -> AtlasCurve {
        let points = known_points(Some(100.0), maximum);
        AtlasCurve { design, title: format!("design {design}"), origin, points }
    }

    #[test]
    fn a_curve_that_ends_below_the_limit_has_no_point_at_it() {
        let labels = |maximum| -> Vec<String> {
            let points = known_points(Some(100.0), maximum);
            points.into_iter().map(|point| point.label).collect()
        };
        assert_eq!(labels(Some((200.0, 5e6))), ["at 1 ms", "maximum"]);
        assert_eq!(labels(Some((100.0, 0.6e6))), ["maximum"]);
        assert_eq!(labels(None), ["at 1 ms"]);
    }

    #[test]
    fn rates_are_multiples_of_the_first_design_that_everybody_has() {
        let (published, ours) = (LineOrigin::Published, LineOrigin::Ours);
        let lines = vec![
            line(0, published, Some((400.0, 5e6))),
            line(0, ours, None),
            line(1, published, Some((200.0, 5e6))),
            line(1, ours, Some((50.0, 5e6))),
        ];
        let curves = together(lines.clone()).expect("published points");
        assert_eq!(curves.reference, "design 1");
        let multiples: Vec<Option<f64>> = curves
            .lines
            .iter()
            .map(|line| line.points.last().and_then(|point| point.multiple))
            .collect();
        assert_eq!(multiples, [Some(2.0), Some(2.0), Some(1.0), Some(1.0)]);
        let alone = together(lines[..2].to_vec()).expect("published points");
        assert_eq!(alone.reference, "");
        assert!(alone.lines.iter().flat_map(|it| &it.points).all(|it| it.multiple.is_none()));
        assert_eq!(together(lines[1..2].to_vec()), None, "nothing is published");
    }
}
