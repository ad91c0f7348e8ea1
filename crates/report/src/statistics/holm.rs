//! Holm's correction (1979): of many tests made together, the chance of any false alarm stays at 5 %.

/// The corrected p values, in the order given.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut corrected = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, position) in order.into_iter().enumerate() {
        let factor = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[position] * factor).min(1.0));
        corrected[position] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::holm;
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn golden_values() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn corrected_values_never_shrink(p in proptest::collection::vec(0.0..=1.0f64, 0..20)) {
            for (raw, corrected) in p.iter().zip(holm(&p)) {
                prop_assert!(corrected >= *raw && corrected <= 1.0);
            }
        }
    }
}
