//! Student's t distribution: quantiles and tail probabilities.

use statrs::distribution::{ContinuousCDF, StudentsT};

fn student(degrees_of_freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees_of_freedom)
        .expect("degrees of freedom are positive: callers need two values at least")
}

/// The value exceeded in magnitude with probability `alpha` (two-sided): 2.262 for 0.05 and 9 degrees.
///
/// # Panics
/// If `degrees_of_freedom` is not positive.
pub fn upper_quantile(alpha: f64, degrees_of_freedom: f64) -> f64 {
    student(degrees_of_freedom).inverse_cdf(1.0 - alpha / 2.0)
}

/// The probability of a value at least as far from 0 as `t`.
///
/// # Panics
/// If `degrees_of_freedom` is not positive.
pub fn two_sided_p(t: f64, degrees_of_freedom: f64) -> f64 {
    (2.0 * upper_tail_p(t.abs(), degrees_of_freedom)).min(1.0)
}

/// The probability of a value above `t`.
///
/// # Panics
/// If `degrees_of_freedom` is not positive.
pub fn upper_tail_p(t: f64, degrees_of_freedom: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    student(degrees_of_freedom).sf(t)
}

#[cfg(test)]
mod tests {
    use super::{two_sided_p, upper_quantile, upper_tail_p};

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, expected) in [(1.0, 12.706), (4.0, 2.776), (9.0, 2.262), (30.0, 2.042)] {
            let t = upper_quantile(0.05, degrees);
            assert!((t - expected).abs() < 5e-4, "{degrees} degrees: {t}");
            assert!((two_sided_p(t, degrees) - 0.05).abs() < 1e-6);
        }
    }

    #[test]
    fn infinite_statistics_have_certain_probabilities() {
        assert_eq!(two_sided_p(f64::INFINITY, 3.0), 0.0);
        assert_eq!(two_sided_p(f64::NEG_INFINITY, 3.0), 0.0);
        assert_eq!(upper_tail_p(f64::NEG_INFINITY, 3.0), 1.0);
    }
}
