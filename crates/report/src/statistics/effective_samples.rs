//! How many independent values an autocorrelated series is worth.

use super::mean::{mean, variance};

/// Effective sample size: `n` over the integrated autocorrelation time, by Geyer's initial positive sequence
/// (1992): sums of adjacent autocorrelations are added while they are positive.
///
/// Between 1 and `n`; `None` of fewer than 4 values. A constant series counts in full.
pub fn effective_samples(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < 4 {
        return None;
    }
    let (mean, variance) = (mean(values)?, variance(values)?);
    if variance <= f64::EPSILON * mean * mean {
        return Some(n as f64);
    }
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let scale: f64 = centred.iter().map(|value| value * value).sum();
    let correlation = |lag: usize| -> f64 {
        centred[lag..].iter().zip(&centred).map(|(a, b)| a * b).sum::<f64>() / scale
    };
    let mut time = -1.0;
    // The estimates at long lags are noise; half of the series is as far as they can mean anything.
    for pair in 0..n / 4 {
        let sum = correlation(2 * pair) + correlation(2 * pair + 1);
        if sum <= 0.0 {
            break;
        }
        time += 2.0 * sum;
    }
    Some((n as f64 / time.max(1.0)).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::effective_samples;
    use crate::synthetic_series::{ar1, stream};

    #[test]
    fn independent_values_count_in_full() {
        let series = ar1(&mut stream("ess", 1), 2000, 0.0, 100.0, 1.0);
        let effective = effective_samples(&series).unwrap();
        assert!(effective > 1500.0, "{effective}");
    }

    #[test]
    fn correlated_values_count_as_theory_says() {
        // AR(1): n (1 - phi) / (1 + phi) = 2000 / 9.
        let mean: f64 = (0..20)
            .map(|seed| {
                effective_samples(&ar1(&mut stream("ess", seed), 2000, 0.8, 100.0, 1.0)).unwrap()
            })
            .sum::<f64>()
            / 20.0;
        assert!((170.0..=290.0).contains(&mean), "{mean}");
    }

    #[test]
    fn constants_and_short_series() {
        assert_eq!(effective_samples(&[5.0; 10]), Some(10.0));
        assert_eq!(effective_samples(&[1.0, 2.0, 3.0]), None);
    }
}
