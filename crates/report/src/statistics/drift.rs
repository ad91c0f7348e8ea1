//! A trend within a window: Theil-Sen slope, and Mann-Kendall's test corrected for autocorrelation.

use super::effective_samples::effective_samples;
use super::mean::mean;

/// Points above which the series is averaged first: both methods look at every pair.
const MOST_POINTS: usize = 600;

/// A trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Change along the trend over the whole series, relative to its mean: -0.1 = 10 % lost.
    pub relative: f64,
    /// Two-sided p of "no trend".
    pub p: f64,
}

/// The trend of a series; `None` of fewer than 10 values or a mean of 0.
///
/// The slope is the median slope of all pairs (Theil 1950, Sen 1968). The variance of Kendall's S is that of
/// independent values, inflated by n / (effective sample size of the residuals) as in Hamed and
/// Rao (1998).
pub fn drift(values: &[f64]) -> Option<Drift> {
    if values.len() < 10 {
        return None;
    }
    let points = averaged(values);
    let n = points.len();
    let mean = mean(&points)?;
    if mean == 0.0 {
        return None;
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut concordance = 0.0;
    for (i, a) in points.iter().enumerate() {
        for (j, b) in points.iter().enumerate().skip(i + 1) {
            slopes.push((b - a) / (j - i) as f64);
            concordance += (b - a).partial_cmp(&0.0).map_or(0.0, |order| order as i8 as f64);
        }
    }
    let middle = slopes.len() / 2;
    let slope = *slopes.select_nth_unstable_by(middle, f64::total_cmp).1;
    let residuals: Vec<f64> =
        points.iter().enumerate().map(|(i, value)| value - slope * i as f64).collect();
    let effective = effective_samples(&residuals)?;
    let size = n as f64;
    let variance =
        (size * (size - 1.0) * (2.0 * size + 5.0) - ties(&points)) / 18.0 * (size / effective);
    let p = match variance {
        v if v > 0.0 => normal_two_sided_p((concordance.abs() - 1.0).max(0.0) / v.sqrt()),
        _ => 1.0,
    };
    Some(Drift { relative: slope * size / mean, p })
}

/// The correction of the variance for equal values.
fn ties(points: &[f64]) -> f64 {
    let mut sorted = points.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
        .chunk_by(|a, b| a == b)
        .map(|equal| equal.len() as f64)
        .map(|t| t * (t - 1.0) * (2.0 * t + 5.0))
        .sum()
}

/// Means of equally many neighbours, so that at most [`MOST_POINTS`] remain.
pub(super) fn averaged(values: &[f64]) -> Vec<f64> {
    let size = values.len().div_ceil(MOST_POINTS);
    values.chunks(size).filter_map(mean).collect()
}

fn normal_two_sided_p(z: f64) -> f64 {
    statrs::function::erf::erfc(z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::drift;
    use crate::synthetic_series::{ar1, stream};

    fn drifting(seed: u64, by: f64) -> Vec<f64> {
        let noise = ar1(&mut stream("drift", seed), 1200, 0.7, 1.0, 0.04);
        noise.iter().enumerate().map(|(i, noise)| noise * (1.0 + by * i as f64 / 1200.0)).collect()
    }

    #[test]
    fn finds_a_drift_of_ten_percent() {
        for seed in 0..20 {
            let found = drift(&drifting(seed, -0.1)).unwrap();
            assert!((-0.14..=-0.07).contains(&found.relative), "{found:?}");
            assert!(found.p < 0.01, "{found:?}");
        }
    }

    #[test]
    fn rarely_finds_one_that_is_not_there() {
        let false_alarms = (0..200)
            .filter(|seed| {
                let found = drift(&drifting(*seed, 0.0)).unwrap();
                found.p < 0.01 && found.relative.abs() >= 0.02
            })
            .count();
        assert!(false_alarms <= 6, "{false_alarms} of 200");
    }

    #[test]
    fn golden_kendall() {
        // A strictly rising series of 10: S = 45, variance 125 for independent values.
        let rising: Vec<f64> = (1..=10).map(f64::from).collect();
        let found = drift(&rising).unwrap();
        assert!((found.relative - 10.0 / 5.5).abs() < 1e-9);
        assert!((found.p - 8.3e-5).abs() < 2e-6, "{}", found.p);
        assert_eq!(drift(&[1.0; 9]), None);
    }
}
