//! How many repeats an interval of a given width takes.

use super::comparison::RatioEstimate;
use super::student::upper_quantile;

/// More repeats than this are no advice.
const MOST: usize = 1000;

/// Whether both ends of the interval are within `margin` of the ratio: 0.05 = from ratio / 1.05 to ratio * 1.05.
pub fn is_as_narrow_as(estimate: &RatioEstimate, margin: f64) -> bool {
    (estimate.high / estimate.ratio).ln() <= margin.ln_1p()
}

/// The pairs (or runs of each side) that would make the interval as narrow as `margin`, if they vary as the `now` that there
/// are. At least one more than now; `None` beyond 1,000, and where the interval is as narrow already.
pub fn repeats_needed(
    estimate: &RatioEstimate,
    now: usize,
    margin: f64,
    alpha: f64,
) -> Option<usize> {
    if is_as_narrow_as(estimate, margin) {
        return None;
    }
    let error = estimate.within.map_or(0.0, |(error, _)| error).max(estimate.log_error);
    let spread = error * (now as f64).sqrt();
    (now + 1..=MOST).find(|n| {
        let half_width = upper_quantile(alpha, *n as f64 - 1.0) * spread / (*n as f64).sqrt();
        half_width <= margin.ln_1p()
    })
}

#[cfg(test)]
mod tests {
    use super::repeats_needed;
    use crate::statistics::paired_log_ratio;

    #[test]
    fn golden_repeats() {
        // The logarithms deviate by 0.0707: t * 0.0707 / sqrt(n) <= 0.04879 at n = 11 (2.228 * 0.0213).
        let pairs = [(1.0, 0.05f64.exp()), (1.0, (-0.05f64).exp())];
        let found = paired_log_ratio(&pairs, None, 0.05).unwrap();
        assert_eq!(repeats_needed(&found, 2, 0.05, 0.05), Some(11));
        assert_eq!(repeats_needed(&found, 2, 3.0, 0.05), None, "narrow enough");
        assert_eq!(repeats_needed(&found, 2, 0.001, 0.05), None, "no advice");
    }
}
