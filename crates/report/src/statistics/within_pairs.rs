//! How far the ratio of two runs could be off by what varied within them.
//!
//! A lower bound of the error: what differs from run to run (the host's day, the layout of the files) is
//! not in it.

use super::effective_samples::effective_samples;
use super::mean::{mean, variance};

/// The variance of a mean, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Variance of the logarithm of one pair's ratio.
    pub variance: f64,
    /// Degrees of freedom of that variance, at least 1.
    pub degrees: f64,
}

/// The spread of one pair's ratio, averaged over the pairs: each is the throughput of the two runs, second by
/// second.
///
/// Seconds of the two runs are set against each other, so that what happens to both at the same time
/// (a warm-up, a checkpoint) does not count; and they count as often as they are independent. Pairs with
/// fewer than four seconds, or without throughput, are left out; `None` if none remains.
pub fn within_pairs(pairs: &[(&[f64], &[f64])]) -> Option<Spread> {
    let spreads: Vec<Spread> = pairs.iter().filter_map(|(a, b)| within_pair(a, b)).collect();
    let variances: Vec<f64> = spreads.iter().map(|spread| spread.variance).collect();
    Some(Spread {
        variance: mean(&variances)?,
        degrees: spreads.iter().map(|spread| spread.degrees).sum(),
    })
}

fn within_pair(a: &[f64], b: &[f64]) -> Option<Spread> {
    let (mean_a, mean_b) = (mean(a)?, mean(b)?);
    if mean_a <= 0.0 || mean_b <= 0.0 {
        return None;
    }
    // The logarithm of the ratio of two means is this far from its expectation, to first order.
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b / mean_b - a / mean_a).collect();
    let effective = effective_samples(&differences)?;
    Some(Spread {
        variance: variance(&differences)? / effective,
        degrees: (effective - 1.0).max(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::within_pairs;
    use crate::statistics::mean::{mean, variance};
    use crate::synthetic_series::{ar1, dips, stream};

    fn series(seed: u64) -> Vec<f64> {
        ar1(&mut stream("within", seed), 240, 0.6, 1000.0, 100.0)
    }

    #[test]
    fn is_the_variance_of_the_ratio_when_only_seconds_vary() {
        let pairs: Vec<(Vec<f64>, Vec<f64>)> =
            (0..300).map(|seed| (series(2 * seed), series(2 * seed + 1))).collect();
        let logs: Vec<f64> =
            pairs.iter().map(|(a, b)| (mean(b).unwrap() / mean(a).unwrap()).ln()).collect();
        let borrowed: Vec<(&[f64], &[f64])> =
            pairs.iter().map(|(a, b)| (a.as_slice(), b.as_slice())).collect();
        let found = within_pairs(&borrowed).unwrap().variance / variance(&logs).unwrap();
        assert!((0.7..=1.3).contains(&found), "{found}");
    }

    #[test]
    fn what_both_runs_do_at_the_same_time_does_not_count() {
        let dip = |seed| dips::series(&mut stream("within dips", seed), 240);
        let (a, b) = (dip(1), dip(2));
        let found = within_pairs(&[(a.as_slice(), b.as_slice())]).unwrap();
        // 50 / 900 per second and run, over 240 seconds.
        let expected = 2.0 * (50.0f64 / 900.0).powi(2) / 240.0;
        assert!((0.4..=2.5).contains(&(found.variance / expected)), "{found:?}");
    }

    #[test]
    fn too_short_or_idle_pairs_are_left_out() {
        assert_eq!(within_pairs(&[(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0])]), None);
        assert_eq!(within_pairs(&[(&[0.0; 9], &[1.0; 9])]), None);
        assert_eq!(within_pairs(&[]), None);
    }
}
