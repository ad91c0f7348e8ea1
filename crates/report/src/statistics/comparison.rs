//! Ratios of designs from their runs: paired and unpaired, always on logarithms.
//!
//! Logarithms, because designs differ by factors: the interval of a ratio is then symmetric in
//! "x times" and "1/x times", and the order of the two designs does not matter.
//!
//! A few pairs may agree by luck. The interval of a paired ratio is therefore never narrower than what
//! the variation *within* the runs allows, as Roever, Knapp and Friede (2015) do for few studies in a
//! meta-analysis. It can only widen an interval: the variation between runs is not derived from it.

use super::mean::{mean, variance};
use super::student::{two_sided_p, upper_quantile};
use super::within_pairs::Spread;

/// A ratio with its interval, and what its tests need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    /// b over a (geometric mean of the ratios).
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided p of "ratio = 1".
    pub p: f64,
    /// Mean of the logarithms of the ratios.
    pub log_mean: f64,
    /// Its standard error.
    pub log_error: f64,
    /// Degrees of freedom of the error.
    pub degrees: f64,
    /// The error that varied within the runs alone, and its degrees of freedom; interval and p hold for both errors.
    pub within: Option<(f64, f64)>,
}

impl RatioEstimate {
    /// The largest p that a test gives for any of the errors, each with its degrees of freedom.
    pub(super) fn largest_p(&self, p: impl Fn(f64, f64) -> f64) -> f64 {
        let within = self.within.map_or(0.0, |(error, degrees)| p(error, degrees));
        p(self.log_error, self.degrees).max(within)
    }
}

/// b over a from pairs of runs: Student's t over `ln(b / a)`, but no narrower than what the variation
/// `within` the runs of a pair allows. The interval has the confidence `1 - alpha`.
///
/// `None` of fewer than two pairs, or if a value is not positive.
pub fn paired_log_ratio(
    pairs: &[(f64, f64)],
    within: Option<Spread>,
    alpha: f64,
) -> Option<RatioEstimate> {
    let logs = pairs
        .iter()
        .map(|(a, b)| (*a > 0.0 && *b > 0.0).then(|| (b / a).ln()))
        .collect::<Option<Vec<f64>>>()?;
    let n = logs.len() as f64;
    let log_mean = mean(&logs)?;
    let between = estimate(log_mean, (variance(&logs)? / n).sqrt(), n - 1.0, alpha);
    let Some(within) = within else { return Some(between) };
    let floor = estimate(log_mean, (within.variance / n).sqrt(), within.degrees, alpha);
    Some(RatioEstimate {
        low: between.low.min(floor.low),
        high: between.high.max(floor.high),
        // Far from 1, the few degrees of freedom between pairs count; near it, the larger error.
        p: between.p.max(floor.p),
        within: Some((floor.log_error, floor.degrees)),
        ..between
    })
}

/// b over a from independent runs: Welch's t over the logarithms.
///
/// `None` of fewer than two runs on a side, or if a value is not positive.
pub fn welch_log_ratio(a: &[f64], b: &[f64], alpha: f64) -> Option<RatioEstimate> {
    if a.iter().chain(b).any(|value| *value <= 0.0) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let (a, b) = (logs(a), logs(b));
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let (v_a, v_b) = (variance(&a)? / n_a, variance(&b)? / n_b);
    let error = v_a + v_b;
    // Welch and Satterthwaite; equal values leave nothing to estimate the degrees from.
    let degrees = if error > 0.0 {
        error * error / (v_a * v_a / (n_a - 1.0) + v_b * v_b / (n_b - 1.0))
    } else {
        n_a + n_b - 2.0
    };
    Some(estimate(mean(&b)? - mean(&a)?, error.sqrt(), degrees, alpha))
}

fn estimate(log_mean: f64, log_error: f64, degrees: f64, alpha: f64) -> RatioEstimate {
    let half_width = upper_quantile(alpha, degrees) * log_error;
    let p = match (log_error > 0.0, log_mean == 0.0) {
        (true, _) => two_sided_p(log_mean / log_error, degrees),
        (false, true) => 1.0,
        (false, false) => 0.0,
    };
    RatioEstimate {
        ratio: log_mean.exp(),
        low: (log_mean - half_width).exp(),
        high: (log_mean + half_width).exp(),
        p,
        log_mean,
        log_error,
        degrees,
        within: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{RatioEstimate, Spread};
    use crate::synthetic_series::{normal, stream};

    fn paired_log_ratio(pairs: &[(f64, f64)]) -> Option<RatioEstimate> {
        super::paired_log_ratio(pairs, None, 0.05)
    }

    fn welch_log_ratio(a: &[f64], b: &[f64]) -> Option<RatioEstimate> {
        super::welch_log_ratio(a, b, 0.05)
    }

    #[test]
    fn pairs_that_agree_by_luck_are_no_surer_than_their_runs() {
        let lucky = [(100.0, 103.0), (100.0, 103.02)];
        let alone = super::paired_log_ratio(&lucky, None, 0.05).unwrap();
        assert!(alone.p < 0.01, "{alone:?}");
        let within = Spread { variance: 0.04_f64.powi(2), degrees: 20.0 };
        let found = super::paired_log_ratio(&lucky, Some(within), 0.05).unwrap();
        // 2.086 * 0.04 / sqrt(2) = 0.0590
        assert!((found.high / found.ratio).ln() > 0.0589 && found.p > 0.2, "{found:?}");
        // Where runs differ more than their seconds explain, nothing changes.
        let noisy = [(100.0, 110.0), (100.0, 91.0), (100.0, 105.0)];
        let with = super::paired_log_ratio(&noisy, Some(within), 0.05).unwrap();
        let without = paired_log_ratio(&noisy).unwrap();
        assert_eq!((with.low, with.high, with.p), (without.low, without.high, without.p));
        // Two pairs are two pairs, however little varied within them.
        let far = [(100.0, 300.0), (100.0, 310.0)];
        let quiet = Spread { variance: 0.1_f64.powi(2), degrees: 100.0 };
        let with = super::paired_log_ratio(&far, Some(quiet), 0.05).unwrap();
        assert_eq!(with.p, paired_log_ratio(&far).unwrap().p);
    }

    #[test]
    fn golden_pairs() {
        // ln ratios: ln 2, ln 2.2, ln 1.8 -> mean 0.689797, sd 0.100377, t(2) = 4.302653.
        let found = paired_log_ratio(&[(100.0, 200.0), (100.0, 220.0), (100.0, 180.0)]).unwrap();
        assert!((found.ratio - 1.993_311).abs() < 1e-5, "{found:?}");
        assert!((found.log_error - 0.057_953).abs() < 1e-5, "{found:?}");
        assert!((found.low - 1.5534).abs() < 1e-3 && (found.high - 2.5578).abs() < 1e-3);
    }

    #[test]
    fn the_order_of_the_designs_does_not_matter() {
        let pairs = [(90.0, 200.0), (100.0, 230.0), (95.0, 190.0)];
        let forward = paired_log_ratio(&pairs).unwrap();
        let swapped: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
        let backward = paired_log_ratio(&swapped).unwrap();
        assert!((forward.ratio * backward.ratio - 1.0).abs() < 1e-12);
        assert!((forward.low * backward.high - 1.0).abs() < 1e-12);
        assert!((forward.p - backward.p).abs() < 1e-12);
    }

    /// Runs of the same design: noise of 5 % per run, and a drift of the host shared by a pair.
    fn same_design(seed: u64, pairs: usize) -> Vec<(f64, f64)> {
        let mut random = stream("a/a", seed);
        (0..pairs)
            .map(|_| {
                let host = 1000.0 * (1.0 + 0.1 * normal(&mut random));
                let mut run = || host * (1.0 + 0.05 * normal(&mut random));
                (run(), run())
            })
            .collect()
    }

    #[test]
    fn equal_designs_are_rarely_called_different() {
        for pairs in [2, 3, 5, 8] {
            let false_alarms = (0..2000)
                .filter(|seed| paired_log_ratio(&same_design(*seed, pairs)).unwrap().p < 0.05)
                .count();
            // Nominal 5 %; three standard errors of 2000 simulations are 1.5 %.
            assert!(false_alarms <= 130, "{pairs} pairs: {false_alarms} of 2000");
        }
    }

    #[test]
    fn unpaired_equal_designs_are_rarely_called_different() {
        let false_alarms = (0..2000)
            .filter(|seed| {
                let (a, b): (Vec<f64>, Vec<f64>) = same_design(*seed, 5).into_iter().unzip();
                welch_log_ratio(&a, &b).unwrap().p < 0.05
            })
            .count();
        assert!(false_alarms <= 130, "{false_alarms} of 2000");
    }

    #[test]
    fn a_real_difference_is_found() {
        let found = (0..200)
            .filter(|seed| {
                let pairs: Vec<(f64, f64)> =
                    same_design(*seed, 5).into_iter().map(|(a, b)| (a, b * 1.3)).collect();
                paired_log_ratio(&pairs).unwrap().p < 0.05
            })
            .count();
        assert!(found >= 180, "{found} of 200");
    }

    #[test]
    fn impossible_inputs_have_no_ratio() {
        assert_eq!(paired_log_ratio(&[(1.0, 2.0)]), None);
        assert_eq!(paired_log_ratio(&[(1.0, 2.0), (0.0, 1.0)]), None);
        assert_eq!(welch_log_ratio(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn equal_values_without_noise() {
        let same = paired_log_ratio(&[(5.0, 5.0), (7.0, 7.0)]).unwrap();
        assert_eq!((same.ratio, same.p), (1.0, 1.0));
        let double = paired_log_ratio(&[(5.0, 10.0), (7.0, 14.0)]).unwrap();
        assert_eq!(double.p, 0.0);
    }
}
