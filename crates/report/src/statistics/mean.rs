//! Mean, variance, and the t-interval of independent values.

use super::student::upper_quantile;

/// A mean with its two-sided 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval.
    pub half_width: f64,
    /// Independent values (or batches) behind it.
    pub n: usize,
}

/// The arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The unbiased variance; `None` of fewer than two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

/// Student's 95 % interval for the mean of independent values; `None` of fewer than two.
pub fn t_interval(values: &[f64]) -> Option<MeanInterval> {
    let n = values.len();
    let standard_error = (variance(values)? / n as f64).sqrt();
    Some(MeanInterval {
        mean: mean(values)?,
        half_width: upper_quantile(0.05, (n - 1) as f64) * standard_error,
        n,
    })
}

#[cfg(test)]
mod tests {
    use super::{mean, t_interval, variance};

    #[test]
    fn golden_values() {
        let values = [10.0, 12.0, 11.0, 13.0, 14.0];
        assert_eq!(mean(&values), Some(12.0));
        assert_eq!(variance(&values), Some(2.5));
        let interval = t_interval(&values).unwrap();
        // 2.776445 * sqrt(2.5 / 5)
        assert!((interval.half_width - 1.963243).abs() < 1e-5, "{interval:?}");
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(t_interval(&[1.0]), None);
        assert_eq!(mean(&[]), None);
    }
}
