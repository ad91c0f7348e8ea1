//! Equivalence: two one-sided tests (TOST, Schuirmann 1987).
//!
//! "No difference shown" is not "equal". Equality within a margin is claimed only when both "more than the
//! margin above" and "more than the margin below" are rejected.

use super::comparison::RatioEstimate;
use super::student::upper_tail_p;

/// p of "not equivalent" for a margin such as 0.03 (ratio between 1/1.03 and 1.03): equivalence is
/// shown when it is below 0.05.
pub fn equivalence_p(estimate: &RatioEstimate, margin: f64) -> f64 {
    let bound = margin.ln_1p();
    estimate.largest_p(|error, degrees| {
        if error == 0.0 {
            return if estimate.log_mean.abs() < bound { 0.0 } else { 1.0 };
        }
        let above = (bound - estimate.log_mean) / error;
        let below = (bound + estimate.log_mean) / error;
        upper_tail_p(above.min(below), degrees)
    })
}

#[cfg(test)]
mod tests {
    use super::equivalence_p;
    use crate::statistics::RatioEstimate;

    fn paired_log_ratio(pairs: &[(f64, f64)]) -> Option<RatioEstimate> {
        crate::statistics::paired_log_ratio(pairs, None, 0.05)
    }

    #[test]
    fn tight_equal_pairs_are_equivalent() {
        let pairs = [(1000.0, 1001.0), (1002.0, 1000.0), (998.0, 999.0), (1001.0, 1001.5)];
        assert!(equivalence_p(&paired_log_ratio(&pairs).unwrap(), 0.03) < 0.001);
    }

    #[test]
    fn noisy_equal_pairs_are_not_shown_to_be_equivalent() {
        let pairs = [(1000.0, 1100.0), (1100.0, 1000.0), (1050.0, 1000.0)];
        let found = paired_log_ratio(&pairs).unwrap();
        assert!(found.p > 0.05 && equivalence_p(&found, 0.03) > 0.05);
    }

    #[test]
    fn different_pairs_are_not_equivalent() {
        let pairs = [(1000.0, 1200.0), (1002.0, 1201.0), (998.0, 1199.0)];
        assert!(equivalence_p(&paired_log_ratio(&pairs).unwrap(), 0.03) > 0.99);
    }
}
