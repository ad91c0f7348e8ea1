//! The end of the warm-up: MSER-5.
//!
//! White (1997): cut the begin so that the standard error of the mean of the rest is smallest, on means of
//! 5 values. It finds warm-ups, and misses drifts and late steps: see [`super::drift`] and
//! [`super::change_points`].

use super::mean::mean;

/// Values averaged before the search.
const GROUP: usize = 5;
/// Groups below which the search means nothing.
const FEWEST_GROUPS: usize = 10;

/// Where the warm-up ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Values to cut from the begin, a multiple of 5.
    pub values: usize,
    /// Whether less than half of the series would be cut; otherwise the series never settles.
    pub settled: bool,
}

/// The cut that MSER-5 makes; `None` of fewer than 50 values.
pub fn mser5(values: &[f64]) -> Option<Trim> {
    let groups: Vec<f64> = values.chunks_exact(GROUP).filter_map(mean).collect();
    let n = groups.len();
    if n < FEWEST_GROUPS {
        return None;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    // Relative to a middle value, so that the squares keep their digits.
    let origin = groups[n / 2];
    let mut best = (f64::INFINITY, 0);
    for cut in (0..n).rev() {
        let value = groups[cut] - origin;
        sum += value;
        squares += value * value;
        let rest = (n - cut) as f64;
        // Below this the statistic is a matter of luck (a few equal values look perfect).
        if n - cut < FEWEST_GROUPS / 2 {
            continue;
        }
        let statistic = (squares - sum * sum / rest).max(0.0) / (rest * rest);
        if statistic <= best.0 {
            best = (statistic, cut);
        }
    }
    Some(Trim { values: best.1 * GROUP, settled: best.1 * 2 < n })
}

#[cfg(test)]
mod tests {
    use super::mser5;
    use crate::synthetic_series::{ar1, stream};

    fn trims(shape: impl Fn(f64) -> f64) -> Vec<usize> {
        let mut trims: Vec<usize> = (0..100)
            .map(|seed| {
                let noise = ar1(&mut stream("mser", seed), 1200, 0.7, 1.0, 0.04);
                let series: Vec<f64> = noise
                    .iter()
                    .enumerate()
                    .map(|(second, noise)| noise * shape(second as f64))
                    .collect();
                mser5(&series).unwrap().values
            })
            .collect();
        trims.sort_unstable();
        trims
    }

    #[test]
    fn leaves_a_steady_series_alone() {
        let trims = trims(|_| 1.0);
        assert!(trims[50] <= 10, "median {}", trims[50]);
        assert!(trims[90] <= 100, "p90 {}", trims[90]);
    }

    #[test]
    fn cuts_an_exponential_warm_up() {
        let median = trims(|t| 1.0 - 0.4 * (-t / 60.0).exp())[50];
        assert!((90..=220).contains(&median), "median {median}");
        let median = trims(|t| 1.0 - 0.4 * (-t / 200.0).exp())[50];
        assert!((300..=560).contains(&median), "median {median}");
    }

    #[test]
    fn cuts_an_overshoot() {
        let median = trims(|t| if t < 120.0 { 1.5 } else { 1.0 })[50];
        assert!((115..=135).contains(&median), "median {median}");
    }

    #[test]
    fn a_series_that_never_settles_says_so() {
        let climbing: Vec<f64> = (0..200).map(|i| (f64::from(i) / 20.0).exp()).collect();
        assert!(!mser5(&climbing).unwrap().settled || mser5(&climbing).unwrap().values == 0);
        let late: Vec<f64> = (0..200).map(|i| if i < 150 { 1.0 } else { 9.0 }).collect();
        assert!(!mser5(&late).unwrap().settled);
        assert_eq!(mser5(&[1.0; 49]), None);
    }
}
