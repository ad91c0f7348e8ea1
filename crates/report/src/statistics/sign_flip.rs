//! The sign-flip permutation test: a check on the t-test that assumes no distribution.
//!
//! If two designs are equal, each pair's log-ratio could as well have the opposite sign. The p value is the
//! share of all sign patterns whose mean is at least as extreme as the one seen; it cannot be smaller
//! than `2 / 2^pairs`, so that fewer than 6 pairs can never reach 0.05.

/// Pairs above which not all patterns are enumerated; no study repeats more often.
const MOST_PAIRS: usize = 20;

/// Two-sided p of "equal", from the log-ratios of all pairs; `None` of none, or of more than 20.
pub fn sign_flip_p(log_ratios: &[f64]) -> Option<f64> {
    let n = log_ratios.len();
    if n == 0 || n > MOST_PAIRS {
        return None;
    }
    let seen = log_ratios.iter().sum::<f64>().abs();
    let patterns = 1u32 << n;
    let extreme = (0..patterns)
        .filter(|pattern| {
            let sum: f64 = log_ratios
                .iter()
                .enumerate()
                .map(|(i, ratio)| if pattern >> i & 1 == 0 { *ratio } else { -ratio })
                .sum();
            // The tolerance counts the seen pattern itself in spite of rounding.
            sum.abs() >= seen * (1.0 - 1e-12)
        })
        .count();
    Some(extreme as f64 / f64::from(patterns))
}

#[cfg(test)]
mod tests {
    use super::sign_flip_p;

    #[test]
    fn golden_patterns() {
        assert_eq!(sign_flip_p(&[0.5, 0.6]), Some(0.5));
        assert_eq!(sign_flip_p(&[0.5, 0.6, 0.7, 0.4, 0.5, 0.6]), Some(2.0 / 64.0));
        // Sums of the 8 patterns of 1, 2, -4: |-1| is reached or exceeded by all.
        assert_eq!(sign_flip_p(&[1.0, 2.0, -4.0]), Some(1.0));
        assert_eq!(sign_flip_p(&[]), None);
    }
}
